"""Functions that NumPy evaluates: stable formulas, and no operation that is called once per number."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise
from scipy import special

from pymc_dp.inspection.interpreted import stable
from pymc_dp.step_methods.numpy_functions import NUMPY_FORMS, compiled

X = pt.vector("x")
WIDE = np.array([-800.0, -40.0, -3.0, -1e-9, 1e-9, 0.5, 3.0, 40.0, 800.0])
FORMS = {
    "softplus": (pt.softplus(X), WIDE, lambda x: np.logaddexp(0, x)),
    "log1mexp": (
        pt.log1mexp(X),
        -np.abs(WIDE),
        lambda x: np.where(x < -0.7, np.log1p(-np.exp(x)), np.log(-np.expm1(x))),
    ),
    "tri_gamma": (pt.tri_gamma(X), np.abs(WIDE), lambda x: special.polygamma(1, x)),
    "clip": (pt.clip(X, -2.0, 5.0), WIDE, lambda x: np.clip(x, -2.0, 5.0)),
    "log of sigmoid": (pt.log(pt.sigmoid(X)), WIDE, lambda x: -np.logaddexp(0, -x)),
    "log of 1 - sigmoid": (pt.log(1 - pt.sigmoid(X)), WIDE, lambda x: -np.logaddexp(0, x)),
    "log1p of -sigmoid": (pt.log1p(-pt.sigmoid(X)), WIDE, lambda x: -np.logaddexp(0, x)),
    "slope of softplus": (pytensor.grad(pt.softplus(X).sum(), X), WIDE, special.expit),
}


@pytest.mark.parametrize("name", FORMS)
def test_values_are_finite_and_right_to_the_ends(name):
    graph, places, wanted = FORMS[name]
    function = compiled([X], [graph])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(function(places)[0], wanted(places), rtol=1e-13, atol=1e-300)
    scalars = [node.op.scalar_op for node in function.maker.fgraph.apply_nodes if isinstance(node.op, Elemwise)]
    assert not [op for op in scalars if type(op) in NUMPY_FORMS]


def test_a_graph_and_its_inputs_stay_as_they_are():
    graph = pt.log(1 - pt.sigmoid(X)) * 1.0
    before = pytensor.dprint(graph, file="str")
    rewritten = stable(graph)
    assert pytensor.dprint(graph, file="str") == before
    assert rewritten is not graph and X in pytensor.graph.traversal.graph_inputs([rewritten])
