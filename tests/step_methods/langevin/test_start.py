"""Chains that begin at posterior samples: what both cost together, where they begin, and what is refused."""

import copy
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy import special, stats

from pymc_dp.accounting import Budget, ComposedEvent, SelfComposedEvent, total_epsilon
from pymc_dp.accounting.events import BoundedRangeEvent, SubsampledGaussianEvent
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT, walk
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.gradients import row_gradients
from pymc_dp.step_methods.ops import OPS
from pymc_dp.transforms.prior_model import prior_model
from tests.step_methods.conftest import bernoulli, domain

ANSWERS = np.arange(60) % 3 == 0
LOW, HIGH, BATCH, CLIP, STEPS = 0.05, 0.95, 20, 20.0, 10
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
METHODS = [SGLD, SGHMC, SGNHT, SGFS]


@pytest.fixture(scope="module")
def gradients():
    """Graphs of `bernoulli`, made once."""
    found = inspect(bernoulli(ANSWERS), None).rows
    return row_gradients(found, prior_model(found))


@pytest.fixture(autouse=True)
def still(request, monkeypatch, gradients):
    """Chains stay where they are, so that states are starts; nothing is compiled."""
    monkeypatch.setattr(StochasticGradient, "_compile", lambda self: None)
    for method in (StochasticGradient, SGFS):
        monkeypatch.setattr(method, "_walk", lambda *_: None)
    monkeypatch.setattr(SGFS, "_precision", lambda self: np.eye(1))
    if "slow" not in request.keywords:
        monkeypatch.setattr(walk, "row_gradients", lambda *_: gradients)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def bound(method=SGLD, neighbours="replace", *, model=None, chains=2, steps=STEPS, budget=BUDGET, **settings):
    """A priced step and its event; nothing was compiled or read."""
    specification = method(batch_size=BATCH, **{"clip_norm": CLIP, "start": OPS(), **settings})
    specification.previewing = True
    found = specification.inspect(model or bernoulli(ANSWERS), domain(neighbours))
    return specification.bound(found, Budget(**budget), chains=chains, steps=steps)


@pytest.fixture(scope="module")
def priced(gradients):
    """One chain with its start, and what they cost."""
    with pytest.MonkeyPatch.context() as patch, pytensor.config.change_flags(mode="FAST_COMPILE"):
        patch.setattr(walk, "row_gradients", lambda *_: gradients)
        step, event = bound(SGNHT, chains=1)
    with opened_gate():
        step.load()
    return step, event


@pytest.fixture
def step(priced):
    """The same, of which no chain has begun."""
    new = copy.copy(priced[0])
    new._binding = replace(new.binding, claims=Claims(2))
    return new


def begun(step, tune=0, draws=STEPS):
    step.setup_chain(None, tune, draws)
    return step


# --- what both cost ---------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("method", "neighbours", "sampling"),
    [
        (SGLD, "replace", "poisson"),
        (SGFS, "replace", "without_replacement"),
        (SGNHT, "add_remove", "poisson"),
        (SGFS, "replace", "poisson"),
    ],
)
def test_starts_and_steps_are_both_paid_for(method, neighbours, sampling):
    step, event = bound(method, neighbours, sampling=sampling)
    _, starts = OPS().bound(
        OPS().inspect(bernoulli(ANSWERS), domain(neighbours)), Budget(0.5, 0.5e-5), chains=2, steps=1
    )
    population = 1000 if neighbours == "add_remove" else len(ANSWERS)
    batches = {"sample_rate": BATCH / population}
    if sampling == "without_replacement":
        batches = {"population": population, "batch_size": BATCH}
    one = SubsampledGaussianEvent(noise_multiplier=step.multiplier, sampling=sampling, neighbours=neighbours, **batches)
    steps = SelfComposedEvent(event=one, count=2 * STEPS)
    assert isinstance(starts.event, BoundedRangeEvent) and starts.count == 2
    assert event.events[0] == starts
    total = total_epsilon(event, 1e-5).epsilon
    assert total == pytest.approx(total_epsilon(ComposedEvent(events=(starts, steps)), 1e-5).epsilon, rel=1e-6)
    assert 0.999 < total <= 1.0
    assert total_epsilon(steps, 1e-5).epsilon < 0.95, "a start that nobody charges would be found here"


# --- where chains begin -----------------------------------------------------------------------------------------------


def test_starts_have_the_law_of_posterior_samples(step, seed):
    rng, given = np.random.default_rng(seed), step.prior_model.initial_point()
    places = [next(iter(step.start.point(given, rng).values())) for _ in range(300)]
    beta = step.start.step.temperature.inverse
    assert 0.05 < beta < 0.5, "at 1 no temperature would be tested"
    law = stats.beta(1 + beta * ANSWERS.sum(), 1 + beta * (~ANSWERS).sum())
    inside = law.cdf(HIGH) - law.cdf(LOW)
    starts = LOW + (HIGH - LOW) * special.expit(places)
    assert stats.kstest(starts, lambda p: (law.cdf(p) - law.cdf(LOW)) / inside).pvalue > 0.001


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_a_parameter_without_bounds_is_a_problem_of_the_start():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ANSWERS.astype(int))
    preview = SGLD(batch_size=BATCH, start=OPS()).preview(model, None, Budget(**BUDGET))
    assert not preview.fits and preview.problem.startswith("start=OPS(), ")
    assert "dp.truncate(model, {'p': (0.01, 0.99)})" in preview.problem
    assert SGLD(batch_size=BATCH).preview(model, None, Budget(**BUDGET)).fits


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": {"p": 0.5}}, "is not accepted: a chain begins where PyMC says, or at one posterior sample"),
        ({"start": OPS}, "is not accepted"),
        ({"start": SGLD()}, "is not accepted"),
        ({"start": OPS(), "start_share": 0.0}, "strictly between 0 and 1, got 0"),
        ({"start": OPS(), "start_share": 1.0}, "strictly between 0 and 1, got 1"),
        ({"start": OPS(), "start_share": float("nan")}, "start_share must be finite"),
        ({"start": OPS(), "start_share": "half"}, "start_share must be a number"),
        ({"start_share": 0.4}, "means nothing without start"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_other_starts_are_refused(method, settings, message):
    with pytest.raises(ArgumentError, match=message):
        method(**settings)
