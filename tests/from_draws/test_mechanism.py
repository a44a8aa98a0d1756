"""The posterior given tempered draws, beside the exact one where rows have a count for their statistic."""

import numpy as np
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.from_draws.given import GivenDraws
from pymc_dp.from_draws.mechanism import Mechanism, PublicModel
from pymc_dp.from_draws.proposal import normalised
from tests.from_draws.conftest import HIGH, LOW, coin

GRID = np.linspace(LOW, HIGH, 1801)[1:-1]


@pytest.fixture(scope="module")
def public():
    return PublicModel.of(coin(400), None, "dp.from_draws.draw_intervals")


def mechanism(public, draws, temperature, n_rows):
    flat = np.asarray(draws, dtype=float)[:, None]
    given = GivenDraws(flat=flat, power=1 / temperature, prior_power=1.0, n_rows=n_rows)
    return Mechanism.of(public, given, {}, "dp.from_draws.draw_intervals")


def exact(draws, temperature, n_rows):
    """Posterior of p on a grid: a sum over all counts of heads of their chance times the density of the draws."""
    heads = np.arange(n_rows + 1)
    first, second = 1 + heads / temperature, 1 + (n_rows - heads) / temperature
    mass = stats.beta.cdf(HIGH, first, second) - stats.beta.cdf(LOW, first, second)
    each = sum(stats.beta.logpdf(draw, first, second) - np.log(np.maximum(mass, 1e-300)) for draw in draws)
    logs = special.logsumexp(stats.binom.logpmf(heads, n_rows, GRID[:, None]) + each, axis=1)
    return normalised(logs)


def moments(points, weights):
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("draws", "temperature", "n_rows"),
    [
        ([0.3], 6.0, 400),
        ([0.3], 1.0, 400),
        ([0.28, 0.31, 0.3, 0.33, 0.27], 1.0, 400),
        ([0.07], 6.0, 1000),
        ([0.1, 0.25, 0.06, 0.3, 0.17], 30.0, 1000),
        ([0.9, 0.94], 12.0, 1000),
    ],
    ids=["tempered", "not tempered", "five, not tempered", "near a bound", "five, hot", "two, near a bound"],
)
def test_the_posterior_is_the_exact_one(public, draws, temperature, n_rows):
    found = mechanism(public, draws, temperature, n_rows)
    mean, sd = moments(found.flat[:, 0], found.posterior)
    true_mean, true_sd = moments(GRID, exact(draws, temperature, n_rows))
    assert abs(mean - true_mean) < 0.06 * true_sd
    assert sd == pytest.approx(true_sd, rel=0.05)
    for probability in (0.05, 0.5, 0.95):
        point = np.interp(probability, np.cumsum(exact(draws, temperature, n_rows)), GRID)
        assert found.posterior @ (found.flat[:, 0] <= point) == pytest.approx(probability, abs=0.025)


@pytest.mark.few(1)
@pytest.mark.parametrize(("temperature", "count"), [(1.0, 1), (1.0, 5), (6.0, 1), (6.0, 3)])
def test_the_spread_is_that_of_proposition_9(public, temperature, count):
    """√(1 + T / k) times the sd of the posterior; the table itself left out (no 1 +) is far off."""
    n_rows = 20_000
    found = mechanism(public, np.full(count, 0.3), temperature, n_rows)
    posterior_sd = np.sqrt(0.3 * 0.7 / n_rows)
    _, sd = moments(found.flat[:, 0], found.posterior)
    assert sd == pytest.approx(np.sqrt(1 + temperature / count) * posterior_sd, rel=0.03)
    weights = normalised(found.own + found.rows.base)
    without = normalised(found.log_likelihood(weights, np.zeros((len(weights), 1, 1)))[:, 0] + found.candidates)
    _, mutant = moments(found.flat[:, 0], without)
    assert mutant == pytest.approx(np.sqrt(temperature / count) * posterior_sd, rel=0.05)


def test_a_clamped_likelihood_is_refused():
    with pytest.raises(dp.errors.UnsupportedModelError, match="clamped"):
        PublicModel.of(dp.clamp(coin(20), -2, 0), None, "dp.from_draws.draw_intervals")
