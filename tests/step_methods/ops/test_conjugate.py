"""OPS draws every likelihood with a conjugate prior exactly, from sums of the rows, at the price of their range."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.step_methods.ops.from_sums import ConjugatePosterior
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from tests.step_methods.gibbs.conjugate_pairs import PAIRS
from tests.step_methods.ops.models import bound

DRAWS = 600


def posterior(step):
    assert isinstance(step.posterior.form, ConjugatePosterior)
    return step.posterior.form


def drawn(step, name, rng, count=DRAWS):
    return np.array([step.draw(rng)[name] for _ in range(count)])


def follows(sample, height, low, high):
    """Kolmogorov-Smirnov against an unnormalised log-density on an interval."""
    grid = np.linspace(low, high, 4001)
    heights = height(grid)
    mass = np.cumsum(np.exp(heights - heights.max()))
    return stats.kstest(sample, lambda v: np.interp(v, grid, mass / mass[-1])).pvalue > 0.001


@pytest.fixture(scope="module")
def model_of():
    def make(name, rows):
        pair = PAIRS[name]
        with pm.Model() as model:
            pair.likelihood("y", pair.prior("v"), pm.Data("rows", rows))
        return model, {} if pair.bounds is None else {"y": pair.bounds}

    return make


def rows_of(pair):
    kind = int if all(isinstance(row, int) for row in pair.rows) else float
    return np.resize(np.array(pair.rows, dtype=kind), 40)


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PAIRS)
def test_draws_follow_prior_times_tempered_likelihood(name, relation, model_of, rng):
    pair, rows = PAIRS[name], rows_of(PAIRS[name])
    model, bounds = model_of(name, rows)
    n_max = 50 if relation == "add_remove" else None
    step, event = bound(model, Domain(bounds=bounds, neighbours=relation, n_max=n_max), 0.8)
    (update,), beta = posterior(step).updates, step.temperature.inverse
    assert type(update).__name__ == pair.law
    assert 0 < beta <= 1 and event.event.eta == pytest.approx(min(0.8, step.range.value))
    sample = drawn(step, "v", rng)
    assert pair.ends[0] <= sample.min() and sample.max() <= pair.ends[1]
    assert follows(sample, lambda v: pair.log_prior(v) + beta * pair.log_row(rows[:, None], v).sum(axis=0), *pair.ends)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", PAIRS)
def test_what_one_row_moves_is_charged(name, relation, model_of):
    """The largest range among rows at extremes, over a grid of the variable."""
    pair = PAIRS[name]
    model, bounds = model_of(name, rows_of(pair))
    n_max = 50 if relation == "add_remove" else None
    step, _ = bound(model, Domain(bounds=bounds, neighbours=relation, n_max=n_max), 1.0, read=False)
    posterior(step)
    rows, places = np.array(pair.rows, dtype=float), np.linspace(*pair.ends, 2001)
    heights = pair.log_row(rows[:, None], places)
    if relation == "replace":
        heights = (heights[:, None] - heights[None, :]).reshape(-1, len(places))
    reached = np.ptp(heights, axis=1).max() / step.range.value
    assert 0.9 < reached <= 1 + 1e-9


def test_multinomial_rows_are_drawn_at_the_price_of_their_trials(rng):
    rows = np.array([[3, 0, 0], [1, 2, 0], [0, 1, 2], [2, 1, 0]])
    with pm.Model() as model:
        shares = TruncatedDirichlet("shares", np.array([1.0, 2.0, 1.5]), 0.1)
        pm.Multinomial("y", 3, shares, observed=pm.Data("d", rows))
    step, _ = bound(model, Domain(), 500.0)
    assert step.range.value == pytest.approx(3 * 2 * np.log(0.8 / 0.1), rel=1e-4)
    sample = drawn(step, "shares", rng)
    plain = rng.dirichlet(np.array([1.0, 2.0, 1.5]) + rows.sum(axis=0), 20_000)
    plain = plain[(plain >= 0.1).all(axis=1)]
    assert all(stats.ks_2samp(sample[:, k], plain[:, k]).pvalue > 0.001 for k in range(3))
