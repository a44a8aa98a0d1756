"""Every draw has the law that it claims, in every tail; the reference is a quadrature in log space, never a cdf."""

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.kernel.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal

N = 4000
ALPHA = 0.001
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def cumulative(log_density, low, high, panels=4000):
    """Return the distribution function of a log-density on [low, high], by quadrature where it is not negligible."""
    for _ in range(12):  # zoom in on what is within e^-45 of the top
        grid = np.linspace(low, high, 2001)
        heights = log_density(grid)
        held = np.flatnonzero(heights > heights.max() - 45)
        low, high = grid[max(held[0] - 1, 0)], grid[min(held[-1] + 1, 2000)]
    edges = np.linspace(low, high, panels + 1)
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


def test_extreme_parameters_give_draws_within_the_bounds(rng):
    huge = np.array([1e-300, 1e-8, 1.0, 1e8, 1e15])
    for low, high in [(0, 1), (1e-300, 0.5), (0.5, 0.5 + 1e-15), (0.99, 1)]:
        draws = truncated_beta(rng, huge, huge[:, None], low, high, size=(3, 5, 5))
        assert ((draws >= low) & (draws <= high)).all()
    for low, high in [(0, 1), (-np.inf, np.inf), (1, np.inf), (1, 1 + 1e-15), (-np.inf, -1e10)]:
        draws = truncated_normal(rng, np.array([-1e300, -1e8, 0, 1, 1e300]), np.append(huge, 1e300)[:, None], low, high)
        assert ((draws >= low) & (draws <= high)).all()


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
    with pytest.raises(dp.errors.ArgumentError, match=text):
        draw(rng)


def test_no_text_shows_a_parameter(rng):
    with pytest.raises(dp.errors.ArgumentError) as error:
        truncated_beta(rng, -123.456, 1)
    assert "123" not in str(error.value)


HOSTILE = {
    "nothing seen": (np.full(10, 1e-3), 0.05),
    "nothing seen, near the middle": (np.full(50, 1e-3), 0.999 / 50),
    "flat near the middle": (np.ones(50), 0.98 / 50),
    "one seen": (np.concatenate([[1e5], np.full(49, 1e-3)]), 0.5 / 50),
    "half seen": (np.concatenate([np.full(25, 1e5), np.full(25, 1e-3)]), 0.1 / 50),
    "all seen": (np.linspace(1e3, 4e3, 50), 0.9 / 50),
    "uneven": (np.geomspace(1e-3, 1e5, 12), 0.7 / 12),
}


def ranks_of_pairs(first, second, a, b, least):
    """Distribution function of the share of the first of two components, given their sum, at each draw."""
    end = np.log((first + second) / least - 1)  # the logit of that share is between -end and end
    held = end > 1e-9
    low, high = -end[held], end[held]
    for _ in range(4):  # zoom in on what is within e^-40 of the top
        y = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 1001)
        height = a * y - (a + b) * np.logaddexp(0, y)
        height -= height.max(axis=1, keepdims=True)
        inside = height > -40
        ends = np.argmax(inside, axis=1), 1000 - np.argmax(inside[:, ::-1], axis=1)
        low, high = (y[np.arange(len(y)), np.clip(end, 0, 1000)] for end in (ends[0] - 1, ends[1] + 1))
    mass = np.exp(height)
    mass = np.concatenate([np.zeros((len(y), 1)), np.cumsum(mass[:, 1:] + mass[:, :-1], axis=1)], axis=1)
    places = np.log(first[held]) - np.log(second[held])
    return np.array([np.interp(at, line, item / item[-1]) for at, line, item in zip(places, y, mass, strict=True)])


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("name", HOSTILE)
def test_every_pair_of_components_has_its_law_given_the_others(name, rng):
    """These laws determine that of all: a pair given its sum is a truncated beta, for any categories and counts."""
    alpha, least = HOSTILE[name]
    draws = truncated_dirichlet(rng, alpha, least, 400)
    assert (draws >= least).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1, atol=1e-12)
    last = len(alpha) - 1
    for i, j in [(0, 1), (0, last), (last, last - 1), (last // 2, 1)]:
        ranks = ranks_of_pairs(draws[:, i], draws[:, j], alpha[i], alpha[j], least)
        assert len(ranks) > 350
        assert stats.kstest(ranks, "uniform").pvalue > ALPHA


@pytest.mark.parametrize(
    ("alpha", "lower", "text"),
    [
        ([1, 1, 1], 0.4, "sum below 1"),
        ([1, 1, 1], -0.1, "lower"),
        ([1, 0, 1], 0.1, "alpha must be finite and > 0"),
        ([1, np.nan, 1], 0.1, "alpha must be finite and > 0"),
        (1.0, 0.1, "categories last"),
        ([1, 1, 1], [0.1, 0.1], "categories last"),
    ],
)
def test_what_is_no_dirichlet_is_refused(rng, alpha, lower, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        truncated_dirichlet(rng, alpha, lower)
