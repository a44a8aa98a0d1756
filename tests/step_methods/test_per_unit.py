"""A metric slips by no method: whatever does not account per unit refuses it, before a row is read."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Ledger
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import REMEDY
from pymc_dp.metrics import L1, Hamming
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.mode import AnnealedMode, CandidateMode, Grid

X = np.linspace(-1, 1, 8)


def mean():
    with pm.Model() as model:
        pm.Normal("x", pm.Uniform("mu", -1, 1), 1.0, observed=X)
    return model


def counts():
    with pm.Model() as model:
        pm.Bernoulli("x", pm.Uniform("p", 0.2, 0.8), observed=(X > 0).astype(int))
    return model


def latents():
    """Latents per row: their sampler makes a domain of its own."""
    with pm.Model() as model:
        z = pm.Categorical("z", [0.4, 0.6], shape=8)
        p = pm.Uniform("p", 0.2, 0.8, shape=2)
        pm.Bernoulli("x", p[z], observed=(X > 0).astype(int))
    return model


MODELS = {
    "mean": (mean, L1("x")),
    "counts": (counts, Hamming("x")),
    "rows": (counts, Hamming()),
    "latents": (latents, L1("x")),
}
GRADIENTS = {"batch_size": 2, "clip_norm": 1.0}
KNOWING = {"OPS", "TemperedGibbs", "BarkerMetropolis"}
STEPS = {
    "PenaltyMetropolis": {},
    "TemperedMetropolis": {},
    "PrivateHMC": {},
    "SGLD": GRADIENTS,
    "SGHMC": GRADIENTS,
    "SGNHT": GRADIENTS,
    "SGFS": GRADIENTS,
}
every_step = pytest.mark.parametrize("name", STEPS)
every_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(autouse=True)
def unread(monkeypatch):
    """Whoever reads a column fails."""
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))


def given(model):
    build, metric = MODELS[model]
    return build(), Domain(bounds={"x": (-3, 3)} if build is mean else {}, metric=metric)


def test_every_step_is_looked_at():
    known = {kind.__name__ for kind in subclasses(PrivateStep) if not kind.__module__.startswith("tests")}
    public = {name for name in known if getattr(dp, name, None) is not None}
    assert public == {*STEPS, *KNOWING}
    assert {name for name in public if getattr(dp, name).knows_metric} == KNOWING


def test_a_refusal_names_all_that_fits_and_nothing_else():
    """Each of them takes the model that others refuse it for; `dp.sample` without a step takes sums."""
    source, domain = given("mean")
    assert {name for name in (*KNOWING, *STEPS) if f"dp.{name}()" in REMEDY} == KNOWING
    for name in KNOWING:
        assert getattr(dp, name)().preview(source, domain, dp.Budget(1.0)).fits
    assert "dp.find_map" in REMEDY and CandidateMode.knows_metric and AnnealedMode.knows_metric
    assert CandidateMode(Grid(axes={})).preview(source, domain, dp.Budget(1.0)).fits
    assert AnnealedMode().preview(source, domain, dp.Budget(1.0)).fits
    assert dp.explain(source, domain).layout is not None


def subclasses(kind):
    return {one for direct in kind.__subclasses__() for one in {direct, *subclasses(direct)}}


@every_step
@every_model
def test_other_steps_refuse_a_metric(name, model):
    source, domain = given(model)
    ledger, step = Ledger(9.0, 1e-5), getattr(dp, name)(**STEPS[name])
    with pytest.raises(UnsupportedModelError, match="not per unit of a metric"):
        dp.sample(epsilon=1.0, delta=1e-6, step=step, model=source, domain=domain, ledger=ledger)
    assert ledger.history == []
