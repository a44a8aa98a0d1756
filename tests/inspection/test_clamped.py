"""What is clamped is told from the operation, wherever a model is cloned to."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import ancestors
from scipy.stats import norm

from pymc_dp.inspection.row_density import ClampedRV, clamped, unclamped


@pytest.fixture
def model():
    with pm.Model() as model:
        rv = ClampedRV(-2.0, -1.0)(pm.Normal.dist(pm.Normal("mu"), 1.0, size=4))
        model.register_rv(rv, "y", observed=np.arange(4.0))
    return model


def test_it_is_found_in_every_clone(model):
    for clone in (model, model.copy(), pm.do(model, {"mu": 0.0}), cloudpickle.loads(cloudpickle.dumps(model))):
        assert clamped(clone) == {"y": (-2.0, -1.0)}
        assert unclamped(clone["y"]).owner.op.name == "normal"
        term = clone.compile_logp(vars=[clone["y"]], mode="FAST_COMPILE")(clone.initial_point())
        assert float(term) == pytest.approx(-1 + norm.logpdf(1) - 2 - 2)
    assert unclamped(model["mu"]) is model["mu"]
    assert clamped(pm.Model()) == {}


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_compiled_draws_hold_no_trace_of_it(mode, model):
    graph = FunctionGraph(outputs=[model["y"] + 1.0], clone=True)
    get_mode(mode).optimizer.rewrite(graph)
    assert not any(var.owner is not None and isinstance(var.owner.op, ClampedRV) for var in ancestors(graph.outputs))


def test_it_is_a_value_of_its_ends():
    assert ClampedRV(-2.0, 1.0) == ClampedRV(-2.0, 1.0) != ClampedRV(-2.0, 0.0)
    x = pt.vector("x")
    assert ClampedRV(-2.0, 1.0)(x).eval({x: [1.0, 2.0]}, mode="FAST_COMPILE").tolist() == [1, 2]
