"""A bought clip norm: what a row may change, what it costs, that all else follows it, and what is told of it."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax

import pymc_dp as dp
from pymc_dp.accounting import BoundedRangeEvent, Budget, ComposedEvent, total_epsilon
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import SGLD, EstimatedNorm
from pymc_dp.step_methods.langevin.base import StochasticGradient

from .conftest import BATCH, BUDGET, N_ROWS, start

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
BOUGHT = EstimatedNorm(share=0.5, quantile=0.6, low=0.05, high=50.0)
SMALL = {"low": 0.5, "high": 2.0}


@pytest.fixture
def _no_curve(monkeypatch):
    """What every number of steps costs alone is not looked at."""
    monkeypatch.setattr(cost, "some_of", lambda steps: [])


def log_odds(estimate, norms, neighbours):
    """Exact log-probabilities of the candidates at ε = 1."""
    return log_softmax(estimate.weight(Budget(1.0, 1e-6), neighbours) * estimate.scores(np.asarray(norms, dtype=float)))


def worst(estimate, tables, neighbours):
    """Greatest loss between neighbours, and greatest range of what they do to the log-weights."""
    losses, ranges = [0.0], [0.0]
    for one, other in tables:
        change = log_odds(estimate, one, neighbours) - log_odds(estimate, other, neighbours)
        losses.append(np.abs(change).max())
        ranges.append(np.ptp(change))
    return max(losses), max(ranges)


def neighbours_of(rng, neighbours, n_rows, hard):
    """Tables whose rows lie below, at and above candidates, and one row that is anything."""
    values = np.array([*(hard.candidates[::3]), 0.0, 0.7, 1e300, np.inf, np.nan])
    for _ in range(600):
        rows = rng.choice(rng.choice(values, size=rng.integers(1, 4)), size=n_rows)
        if neighbours == "replace":
            other = rows.copy()
            other[0] = rng.choice(values)
        else:
            other = rows[1:]
        yield rows, other


@pytest.mark.few(12)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("n_rows", [1, 2, 9])
def test_no_row_moves_the_odds_by_more_than_what_is_paid(neighbours, quantile, n_rows):
    estimate = EstimatedNorm(share=0.6, quantile=quantile, **SMALL)
    pairs = neighbours_of(np.random.default_rng(n_rows), neighbours, n_rows, estimate)
    loss, span = worst(estimate, pairs, neighbours)
    paid = estimate.event(Budget(1.0, 1e-6)).eta
    assert paid == 0.6 and max(loss, span) <= paid


@pytest.mark.parametrize(
    ("neighbours", "quantile", "moved"), [("replace", 0.5, [1.9]), ("add_remove", 0.5, []), ("add_remove", 0.9, [])]
)
def test_the_bound_is_reached(neighbours, quantile, moved):
    """A smaller range would not do: the first row leaves candidates below the quantile, and those above."""
    estimate = EstimatedNorm(share=0.6, quantile=quantile, **SMALL)
    first = 0.5 if moved else 1.9
    rows = np.array([first, *[0.5] * 9, *[0.7] * 85, *[1.9] * 5])
    pair = rows, np.append(rows[1:], moved)
    assert worst(estimate, [pair], neighbours)[1] > 0.999 * 0.6


def test_draws_have_the_probabilities_that_were_looked_at():
    estimate = EstimatedNorm(share=0.6, quantile=0.5, **SMALL)
    norms, budget = np.array([0.55, 0.7, 0.9, 1.1, 1.8]), Budget(1.0, 1e-6)
    with dp.testing.insecure_randomness(3):
        drawn = [estimate.estimate(norms, budget, "replace") for _ in range(3000)]
    expected = np.exp(log_odds(estimate, norms, "replace"))
    found = np.array([np.mean(np.isclose(drawn, one)) for one in estimate.candidates])
    assert found.sum() == 1 and np.abs(found - expected).max() < 5 * math.sqrt(0.25 / 3000)


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_whole_is_paid_for_before_the_norm_is_known(begin, neighbours):
    step, plain = begin(neighbours, clip_norm=BOUGHT, epsilon=0.5), begin(neighbours, epsilon=0.5)
    assert isinstance(step.event, ComposedEvent)
    bought, steps = step.event.events
    assert bought == BoundedRangeEvent(eta=0.25) and steps.count == 50
    assert 0.49 < total_epsilon(step.event, BUDGET["delta"]).epsilon <= 0.5
    assert steps.event.noise_multiplier > plain.event.event.noise_multiplier
    assert step.clip_norm in BOUGHT.candidates and step.clip_norm * (1 - 1e-7) < step._loop.clip.bound < step.clip_norm
    assert step.course.sigma == pytest.approx(
        steps.event.noise_multiplier * step.clip_norm * step.population / BATCH, rel=1e-8
    )
    assert step.spent() == 0.0
    step.step(start(step))
    assert step.spent() > total_epsilon(bought, BUDGET["delta"]).epsilon


@pytest.mark.usefixtures("_no_curve")
def test_an_estimate_is_made_once_and_after_the_charge(model, shared, monkeypatch):
    made = []
    monkeypatch.setattr(StochasticGradient, "row_norms", lambda *_: made.append(1) or np.ones(N_ROWS))
    ledger = dp.Ledger(epsilon=0.1, delta=1e-5)
    with pytest.raises(dp.BudgetExceeded):
        dp.sample(3, **BUDGET, step=SGLD(batch_size=BATCH, clip_norm=BOUGHT), model=model, ledger=ledger, **QUIET)
    assert not made
    step = SGLD(batch_size=BATCH, clip_norm=BOUGHT)
    tree = dp.sample(3, chains=2, **BUDGET, step=step, model=model, **{**QUIET, "cores": 1})
    assert len(made) == 1 and 0.5 * BUDGET["epsilon"] < tree.dp.epsilon <= BUDGET["epsilon"]
