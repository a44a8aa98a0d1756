"""Every draw has the law that it claims, in every tail; the reference is a quadrature in log space, never a cdf."""

import time

import numpy as np
import pytest
from scipy import stats

from pymc_dp._random import secure_generator
from pymc_dp.errors import ArgumentError
from pymc_dp.mechanisms.truncated import truncated_beta, truncated_gamma, truncated_normal
from pymc_dp.testing import insecure_randomness

N = 4000
ALPHA = 0.001
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def cumulative(log_density, low, high):
    """Return the distribution function of a log-density on [low, high], by quadrature where it is not negligible."""
    for _ in range(12):  # zoom in on what is within e^-45 of the top
        grid = np.linspace(low, high, 2001)
        heights = log_density(grid)
        held = np.flatnonzero(heights > heights.max() - 45)
        low, high = grid[max(held[0] - 1, 0)], grid[min(held[-1] + 1, 2000)]
    edges = np.linspace(low, high, 4001)
    half = np.diff(edges)[:, None] / 2
    heights = log_density(edges[:-1, None] + half * (1 + NODES))
    masses = (np.exp(heights - heights.max()) * WEIGHTS * half).sum(axis=1)
    total = np.concatenate([[0], np.cumsum(masses)])
    return lambda x: np.interp(x, edges, total / total[-1])


def assert_follows(draws, cdf, low, high):
    assert draws.shape == (N,)
    assert draws.min() >= low
    assert draws.max() <= high
    assert stats.kstest(draws, cdf).pvalue > ALPHA


@pytest.fixture
def rng(seed, request):
    return np.random.default_rng([seed, *request.node.name.encode()])


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        (1, 100_001, 0.2, 0.8),  # sf and isf with clipping give .8, the wrong end
        (300, 700, 0.5, 0.9),  # mass 5e-38; icdf(U(cdf, cdf)) gives 1.0
        (700, 300, 0.1, 0.5),
        (30, 70, 0.25, 0.35),
        (30, 70, 0.34, 0.99),
        (30, 70, 0.30, 0.9),
        (1e6, 3e6, 0.2505, 0.6),
        (1e6, 3e6, 0.01, 0.99),
        (0.3, 0.4, 0.01, 0.95),
        (0.5, 7, 0.001, 0.9),
        (7, 0.5, 0.1, 0.999),
        (1e-3, 1e-3, 0.01, 0.99),
        (0.4, 5e4, 0.3, 0.31),
        (1, 1, 0.2, 0.3),
        (3, 5, 0.2, 0.2000001),
    ],
)
def test_truncated_beta_follows_its_law(rng, a, b, low, high):
    cdf = cumulative(lambda x: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x), low, high)
    assert_follows(truncated_beta(rng, a, b, low, high, size=N), cdf, low, high)


@pytest.mark.parametrize(("a", "b"), [(3, 5), (0.3, 0.4), (1, 1), (0.05, 20), (1e4, 2.5)])
def test_untruncated_beta_follows_its_law(rng, a, b):
    assert_follows(truncated_beta(rng, a, b, size=N), stats.beta(a, b).cdf, 0, 1)


@pytest.mark.parametrize(
    ("shape", "rate", "low", "high"),
    [
        (3, 1, 45.0, 1000.0),
        (100, 1, 0.5, 5.0),
        (1e6, 1e3, 1040.0, 2000.0),  # 40 sd out
        (1e6, 1e3, 1.0, 2000.0),
        (0.5, 2, 0.01, 3.0),
        (0.5, 0, 0.01, 3.0),
        (3, 0, 0.0, 2.0),
        (1, 0, 0.0, 2.0),
        (0, 0, 1.0, 2.0),
        (-2, 1, 0.1, 5.0),
        (40, 10, 3.9, 4.2),
    ],
)
def test_truncated_gamma_follows_its_law(rng, shape, rate, low, high):
    with np.errstate(divide="ignore", invalid="ignore"):
        cdf = cumulative(lambda x: (shape - 1) * np.log(np.maximum(x, 1e-300)) - rate * x, low, high)
    assert_follows(truncated_gamma(rng, shape, rate, low, high, size=N), cdf, low, high)


@pytest.mark.parametrize(("shape", "rate", "low"), [(3, 2, 0), (0.3, 2, 0), (1e5, 1, 0), (2, 1, 3.0)])
def test_gamma_without_upper_bound_follows_its_law(rng, shape, rate, low):
    law = stats.gamma(shape, scale=1 / rate)
    assert_follows(truncated_gamma(rng, shape, rate, low, size=N), lambda x: 1 - law.sf(x) / law.sf(low), low, np.inf)


@pytest.mark.parametrize(
    ("mean", "sd", "low", "high"),
    [
        (0, 1, 30.0, 60.0),
        (0, 1, -50.0, -30.0),
        (0, 1, -1.0, 0.5),
        (0, 1, 0.1, 3.0),
        (5, 0.01, 5.3, 9.0),
        (1e6, 1, 0.0, 999_900.0),
        (0, np.inf, 2.0, 3.0),
        (0, 1e9, 2.0, 3.0),
    ],
)
def test_truncated_normal_follows_its_law(rng, mean, sd, low, high):
    cdf = cumulative(lambda x: -0.5 * ((x - mean) / sd) ** 2, low, high)
    assert_follows(truncated_normal(rng, mean, sd, low, high, size=N), cdf, low, high)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-np.inf, -1.0), (0.5, np.inf)])
def test_normal_with_infinite_ends_follows_its_law(rng, low, high):
    assert_follows(truncated_normal(rng, 0, 1, low, high, size=N), stats.truncnorm(low, high).cdf, low, high)


def test_tails_cost_no_more_than_the_middle(rng):
    """Of the proposals, 59% or more are accepted whatever the parameters, so a far tail takes no longer."""
    truncated_beta(rng, 3, 5, 0.2, 0.8)
    start = time.perf_counter()
    a, b = np.geomspace(1e-4, 1e7, 60), np.geomspace(1e-4, 1e7, 60)[:, None]
    for low, high in [(0, 1), (1e-6, 2e-6), (0.4, 0.6), (0.999, 1.0)]:
        draws = truncated_beta(rng, a, b, low, high, size=(5, 60, 60))
        assert ((draws >= low) & (draws <= high)).all()
    assert time.perf_counter() - start < 5


def test_parameters_and_bounds_broadcast(rng):
    draws = truncated_beta(rng, np.array([[1.0], [300.0]]), 700.0, [0.1, 0.2, 0.3], 0.9)
    assert draws.shape == (2, 3)
    assert (draws > [0.1, 0.2, 0.3]).all()
    assert truncated_normal(rng, [0.0, 1.0], 1.0, size=(4, 2)).shape == (4, 2)
    assert truncated_gamma(rng, 2.0, 1.0).shape == ()


def test_secure_generator_is_taken_and_repeats_in_tests(seed):
    assert 0.5 <= truncated_beta(secure_generator(), 300, 700, 0.5, 0.9) <= 0.9
    found = []
    for _ in range(2):
        with insecure_randomness(seed):
            found.append(truncated_beta(secure_generator(), 300, 700, 0.5, 0.9, size=5))
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda rng: truncated_beta(rng, 1, 1, 0.8, 0.2), "low=0.8"),
        (lambda rng: truncated_beta(rng, 1, 1, -0.1, 0.2), "0 <= low"),
        (lambda rng: truncated_beta(rng, 0, 1), "a must be finite and > 0"),
        (lambda rng: truncated_beta(rng, 1, np.nan), "b must be finite and > 0"),
        (lambda rng: truncated_gamma(rng, 1, 0), "Give a high"),
        (lambda rng: truncated_gamma(rng, 0, 1), "Give a low"),
        (lambda rng: truncated_gamma(rng, 1, -1), "rate must be finite and >= 0"),
        (lambda rng: truncated_normal(rng, 0, np.inf), "no such uniform"),
        (lambda rng: truncated_normal(rng, 0, 0), "sd must be a number and > 0"),
        (lambda rng: truncated_normal(rng, [0, 1, 2], 1, size=2), "size"),
    ],
)
def test_what_is_no_law_is_refused(rng, draw, text):
    with pytest.raises(ArgumentError, match=text):
        draw(rng)


def test_no_text_shows_a_parameter(rng):
    with pytest.raises(ArgumentError) as error:
        truncated_beta(rng, -123.456, 1)
    assert "123" not in str(error.value)
