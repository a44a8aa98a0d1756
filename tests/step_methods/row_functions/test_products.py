"""Products of matrices over rows are sums entry by entry: what one row gives depends on no other row."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.math import Dot

from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.row_density import written_out
from pymc_dp.step_methods.row_functions import RowFunction, vectorised
from pymc_dp.transforms.prior_model import prior_model

N = 40


def products(graph, rows):
    """Operations of linear algebra that rows reach."""
    cores = [(node, getattr(node.op, "core_op", node.op)) for node in toposort([graph])]
    return [node for node, core in cores if isinstance(core, Dot) and set(rows) & set(ancestors(node.inputs))]


SHAPES = {"two vectors": ((4,), (4,)), "vector and matrix": ((4,), (4, 3)), "matrix and vector": ((3, 4), (4,))}
SHAPES |= {"two matrices": ((3, 4), (4, 2)), "a number": ((), (4,))}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "product"), [*((name, pt.dot) for name in SHAPES), *((name, pt.matmul) for name in list(SHAPES)[:-1])]
)
def test_products_of_a_row_are_those_of_linear_algebra(name, product, rng):
    own, other = SHAPES[name]
    row, many = pt.TensorType("float64", own)("row"), pt.TensorType("float64", (None, *own))("rows")
    held = rng.normal(size=other)
    graph = product(row, pt.constant(held))
    for whole in (vectorised(graph, {row: many}), written_out(graph, [row])):
        assert not products(whole, [row, many])
    rows = rng.normal(size=(N, *own))
    found = vectorised(graph, {row: many}).eval({many: rows})
    np.testing.assert_allclose(found, [np.dot(one, held) for one in rows], rtol=1e-12)


def test_products_of_parameters_are_left_alone():
    row, one = pt.vector("row", shape=(3,)), pt.matrix("one", shape=(3, 3))
    (node,) = [
        node for node in toposort([written_out((pt.dot(one, one) * row).sum(), [row])]) if isinstance(node.op, Dot)
    ]
    assert node.inputs == [one, one]


def test_no_likelihood_of_rows_reaches_a_library_of_linear_algebra(rng):
    """One row more would choose other instructions for all: a steep density made of the last digits 42 of ε = 1."""
    with pm.Model() as model:
        b, w = pm.Normal("b", shape=3), pm.Normal("w", shape=(3, 4))
        x = pm.Data("x", rng.normal(size=(N, 3)))
        pm.Bernoulli("y", logit_p=pt.clip(1e18 * pt.dot(x, b), -2, 2), observed=np.arange(N) % 2)
        pm.Categorical("k", logit_p=x @ w, observed=np.arange(N) % 4)
    inspection = inspect(model).rows
    found = RowFunction.of(inspection, prior_model(inspection))
    assert not products(found.over_rows(found.total), found.many)
