"""Densities of rows as graphs: stable logarithms, arithmetic that never fails, and rows that stay apart."""

import itertools
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.shape import Shape_i

import pymc_dp as dp
from pymc_dp.gradients.compiled_rows import compiled_rows
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.made_by_pymc import without_arrays
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.taint import NUMBER_OF_ROWS, trace_rows

pytestmark = pytest.mark.usefixtures("interpreted")
X = pt.vector("x")


LEAST = np.iinfo(np.int64).min
WHOLE = [0, 1, -1, 2, 5, -3, 63, -64, 2**62, LEAST, 2**63 - 1]
FLOATS = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -3.5, 0.5, 1.0]


def hostile(*kinds):
    """Return columns with every combination of these values."""
    return [np.array(column) for column in zip(*itertools.product(*kinds), strict=True)]


def by_numba(inputs, outputs):
    return compiled_rows(inputs, outputs, "NUMBA")


def by_numpy(inputs, outputs):
    return compiled(inputs, outputs)


def evaluated(build, *kinds, dtypes, by=by_numba):
    inputs = [pt.vector(f"column_{i}", dtype=dtype) for i, dtype in enumerate(dtypes)]
    with np.errstate(all="ignore"):
        columns = [column.astype(dtype) for column, dtype in zip(hostile(*kinds), dtypes, strict=True)]
        (result,) = by(inputs, [build(*inputs)])(*columns)
    return columns, result


@pytest.mark.few(3)
@pytest.mark.parametrize("by", [by_numba, by_numpy])
@pytest.mark.parametrize("base", ["float64", "float32", "int64", "int8", "uint8", "bool"])
def test_powers_of_whole_numbers_have_a_result(base, by):
    values = FLOATS if base.startswith("float") else WHOLE
    (bases, exponents), found = evaluated(lambda x, k: x**k, values, WHOLE, dtypes=[base, "int64"], by=by)
    assert len(found) == len(bases)
    small = (np.abs(exponents) < 6) & (exponents >= 0) & (np.abs(bases.astype(float)) <= 5)
    expected = bases[small].astype(float) ** exponents[small]
    np.testing.assert_allclose(found[small].astype(float), expected, rtol=1e-6)


REMAINDERS = """
import numpy as np, pytensor.tensor as pt
import pymc_dp as dp
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.gradients.compiled_rows import compiled_rows
inputs, outputs, values = [], [], []
for dtype in ("int8", "int32", "int64"):
    least = np.iinfo(dtype).min
    x, k = pt.vector("x", dtype=dtype), pt.vector("k", dtype=dtype)
    inputs += [x, k]
    outputs += [x % k, x % pt.constant(-1, dtype=dtype)]
    rows = zip((least, -1), (5, -1), (5, 0), (-7, 3), (7, -3))
    values += [np.array(list(column), dtype=dtype) for column in rows]
found = compiled_rows(inputs, outputs, "NUMBA")(*values)
for by_column, by_constant in zip(found[::2], found[1::2]):
    print(*by_column, *by_constant)
"""


def test_remainders_have_a_result_and_end_no_process():
    done = subprocess.run([sys.executable, "-c", REMAINDERS], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["0 0 0 2 -2 0 0 0 0 0"] * 3


class Failing(ps.UnaryScalarOp):
    """An operation of a user's own, which fails for negative numbers."""

    def impl(self, x):
        if x < 0:
            raise ValueError("negative")
        return x


def test_scalar_operations_that_are_not_of_pytensor_are_refused():
    operation = Elemwise(Failing(ps.upgrade_to_float, name="failing"))
    with pm.Model() as model:
        b = pm.Normal("b")
        pm.Normal("y", b * operation(pm.Data("x", np.ones(5))), 1.0, observed=np.zeros(5))
    inspection = inspect(model, dp.Domain(bounds={"x": (-1, 1), "y": (-1, 1)})).rows
    assert any("is not one of PyTensor's or PyMC's own" in problem.what for problem in inspection.problems)


I, J = pt.lvector("i"), pt.lvector("j")
P = pt.vector("p", shape=(3,))
S = pt.scalar("s")
LATENT = pt.vector("latent")
WIDE, FACTOR = pt.matrix("wide", shape=(None, 3)), pt.matrix("factor", shape=(3, 3))
MATRICES = pt.tensor3("matrices", shape=(None, 3, 3))
ROWS = {X: 0, I: 0, J: 0, WIDE: 0, MATRICES: 0}
COUPLED = {
    "centred": (X - X.mean(), "shape"),
    "sum": (X.sum(), "runs over the rows"),
    "cumulated": (pt.cumsum(X), "runs over the rows"),
    "multiplied on": (pt.cumprod(WIDE, axis=0), "runs over the rows"),
    "softmax over rows": (pt.special.softmax(X, axis=0), "runs over the rows"),
    "every pair": (X[:, None] - X[None, :], "different axes"),
    "shifted": (X[1:], "picks some rows"),
    "reversed": (X[::-1], "picks some rows"),
    "first row": (X[0], "picks some rows"),
    "row picked by a row": (X[I], "picks or reorders"),
    "sorted": (pt.sort(X), "not known"),
    "number of rows": (S * X.shape[0], "number of rows"),
    "number of rows counted from the end": (S * WIDE.shape[-2], "number of rows"),
    "whole shape": (WIDE.shape, "number of rows"),
    "whole shape in a sum": (WIDE.shape.sum() * S, "number of rows"),
    "part of the shape": (WIDE.shape[:1], "number of rows"),
    "length picked by a parameter": (WIDE.shape[pt.iscalar("place")], "number of rows"),
    "rows solved together": (pt.linalg.solve_triangular(FACTOR, WIDE.T, b_ndim=2), "not known"),
    "matrices of rows solved": (pt.linalg.solve_triangular(MATRICES, P, b_ndim=1), "not known"),
    "latent per row": (X * LATENT, "one latent per row"),
    "mask": (P[(X > 0)], "mask"),
    "rows joined to rows": (pt.concatenate([X, X]), "appends rows"),
    "sum of products": (X @ X, "sums over rows"),
    "matrix of rows": (pt.outer(X, X), "sums over rows"),
    "repeated": (pt.repeat(X, 2), "not known"),
    "written into": (pt.set_subtensor(P[I], 1.0), "not known"),
    "one row's index": (P[I[0]], "picks some rows"),
    "slice to a row's value": (P[: I[0]], "picks some rows"),
}


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_expressions_are_refused_by_name(name):
    expression, text = COUPLED[name]
    problems = trace_rows([expression], ROWS).problems
    assert any(text in problem for problem in problems), problems


@pytest.mark.parametrize("place", [0, -2])
def test_the_number_of_rows_is_found_from_either_end(place):
    x = pt.matrix("x")
    assert trace_rows([x * Shape_i(place)(x)], {x: 0}).problems == [NUMBER_OF_ROWS]


RNG = np.random.default_rng(20)
X_MADE_BY_PYMC, Y, GROUP = RNG.uniform(0.1, 0.7, (30, 2)), RNG.normal(size=30), RNG.integers(0, 6, 30)
BOUNDS = {"X": (0, 1), "y": (-4, 4)}


@pytest.mark.parametrize(
    "joined",
    [
        lambda eta: pt.concatenate([pt.zeros((30, 1)), eta], axis=1),
        lambda eta: pt.concatenate([eta, pt.full((30, 2), 1.5)], axis=1),
        lambda eta: pt.stack([pt.zeros(30), eta[:, 0]], axis=1),
        lambda eta: pt.stack([eta[:, 0], pt.ones(30), eta[:, 1]]).T,
    ],
)
def test_a_number_beside_columns_is_as_long_as_they_are(joined):
    """A category that others are compared with; its length, which a graph has as a number, is of the table."""
    rows = pt.matrix("rows", shape=(None, 2))
    written = joined(rows)
    (same,) = without_arrays([written])
    np.testing.assert_array_equal(same.eval({rows: X_MADE_BY_PYMC}), written.eval({rows: X_MADE_BY_PYMC}))
    assert len(same.eval({rows: X_MADE_BY_PYMC[:7]})) == 7, "any number of rows"
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Categorical("y", logit_p=joined(b * pm.Data("X", X_MADE_BY_PYMC)), observed=GROUP % 2)
    assert not inspect(model, dp.Domain(bounds=BOUNDS)).rows.problems
