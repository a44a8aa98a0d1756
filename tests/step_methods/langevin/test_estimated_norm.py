"""A bought clip norm: what a row may change, what it costs, that all else follows it, and what is told of it."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy.special import log_softmax

import pymc_dp as dp
from pymc_dp.step_methods.langevin import EstimatedNorm

SMALL = {"low": 0.5, "high": 2.0}


def log_odds(estimate, norms, neighbours):
    """Exact log-probabilities of the candidates at ε = 1."""
    return log_softmax(
        estimate.weight(dp.Budget(1.0, 1e-6), neighbours) * estimate.scores(np.asarray(norms, dtype=float))
    )


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
    paid = estimate.event(dp.Budget(1.0, 1e-6)).eta
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
    norms, budget = np.array([0.55, 0.7, 0.9, 1.1, 1.8]), dp.Budget(1.0, 1e-6)
    with dp.testing.insecure_randomness(3):
        drawn = [estimate.estimate(norms, budget, "replace") for _ in range(3000)]
    expected = np.exp(log_odds(estimate, norms, "replace"))
    found = np.array([np.mean(np.isclose(drawn, one)) for one in estimate.candidates])
    assert found.sum() == 1 and np.abs(found - expected).max() < 5 * math.sqrt(0.25 / 3000)


QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_an_estimate_is_paid_for_once_with_the_steps_and_not_read_before(neighbours, monkeypatch):
    bought = EstimatedNorm(share=0.5, quantile=0.6, low=0.05, high=50.0)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(300) % 2)
    domain = dp.Domain(neighbours=neighbours, n_max=310 if neighbours == "add_remove" else None)
    given = {"step": dp.SGLD(batch_size=100, clip_norm=bought), "model": model, "domain": domain, **QUIET}
    tree = dp.sample(
        3, tune=0, chains=2, epsilon=0.5, delta=1e-5, ledger=dp.Ledger(1.0, 1e-4, neighbours=neighbours), **given
    )
    first, steps = tree.dp.report().record["event"]["events"]
    assert first["kind"] == "bounded_range" and first["eta"] == 0.25 and steps["count"] == 6
    assert 0.3 < tree.dp.epsilon <= 0.5
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
    with pytest.raises(dp.BudgetExceeded):
        dp.sample(3, epsilon=0.5, delta=1e-5, ledger=dp.Ledger(0.1, 1e-4, neighbours=neighbours), **given)
