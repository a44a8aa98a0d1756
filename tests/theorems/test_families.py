"""Constants of lemmas 19 to 24 of Dimitrakakis et al. (2017), against quadrature; errors of the paper as tests."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, expon, laplace, norm

from pymc_dp.theorems import families


def largest_ratio(density, low, high, prior, values):
    """C by quadrature: sup over x and θ of p(x|θ) / φ(x), the prior exponential on [low, high]."""
    mass = math.exp(-prior * low) - math.exp(-prior * high)
    thetas = np.linspace(low, high, 2001)
    found = []
    for x in values:
        marginal = quad(lambda t, x=x: density(x, t) * prior * math.exp(-prior * t) / mass, low, high, limit=200)[0]
        found.append(density(x, thetas).max() / marginal)
    return max(found)


def steepest(log_density, distance, values, thetas):
    """Largest |log p(x|θ) - log p(y|θ)| / ρ(x, y) over a grid of pairs and of parameters."""
    x, y = (part[~np.eye(len(values), dtype=bool)] for part in np.meshgrid(values, values, indexing="ij"))
    return max(float((np.abs(log_density(x, t) - log_density(y, t)) / distance(x, y)).max()) for t in thetas)


def absolute(x, y):
    return np.abs(x - y)


def with_squares(x, y):
    return np.abs(x**2 - y**2) + 2 * np.abs(x - y)


CASES = {
    "exponential": (
        families.exponential((0.1, 2.0), bound=2.0, prior_rate=2.0),
        lambda x, t: expon.pdf(x, scale=1 / t),
        (0.1, 2.0, 2.0),
        np.linspace(0, 2, 41),
        absolute,
    ),
    "laplace": (
        families.laplace((0.5, 4.0), location=0.7, bound=1.5, prior_rate=2.0),
        lambda x, t: laplace.pdf(x, 0.7, 1 / t),
        (0.5, 4.0, 2.0),
        np.linspace(-1.5, 1.5, 61),
        absolute,
    ),
    "normal": (
        families.normal_precision((0.1, 0.5), mean=0.0, bound=10.0, prior_rate=1.0),
        lambda x, t: norm.pdf(x, 0.0, 1 / np.sqrt(t)),
        (0.1, 0.5, 1.0),
        np.linspace(0, 10, 41),
        with_squares,
    ),
    "shifted normal": (
        families.normal_precision((0.2, 3.0), mean=-1.5, bound=2.0, prior_rate=4.0),
        lambda x, t: norm.pdf(x, -1.5, 1 / np.sqrt(t)),
        (0.2, 3.0, 4.0),
        np.linspace(-2, 2, 41),
        with_squares,
    ),
}

every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_ratios_are_those_of_quadrature(name):
    found, density, prior, values, _ = CASES[name]
    true = largest_ratio(density, *prior, values)
    assert true <= found.stochastic.ratio <= true * 1.02


@every_case
def test_constants_bound_every_slope_and_are_reached(name):
    found, density, (low, high, _), values, distance = CASES[name]
    true = steepest(lambda x, t: np.log(density(x, t)), distance, values, np.linspace(low, high, 9))
    assert true <= found.lipschitz * (1 + 1e-9)
    # |x - y| counts twice for normal laws, whatever the mean: at 0 the constant is reached by large values only.
    assert true >= found.lipschitz * {"normal": 0.9, "shifted normal": 0.4}.get(name, 0.999)


@pytest.mark.parametrize("trials", [1, 2, 7, 10])
@pytest.mark.parametrize("alpha", [1.5, 13.0])
def test_ratio_of_lemma_21_is_that_of_quadrature(trials, alpha):
    thetas = np.linspace(0, 1, 2001)[1:-1]
    true = 0.0
    for k in range(trials + 1):
        marginal = quad(lambda t, k=k: t**k * (1 - t) ** (trials - k) * beta.pdf(t, alpha, alpha), 0, 1)[0]
        true = max(true, (thetas**k * (1 - thetas) ** (trials - k)).max() / marginal)
    found = families.beta_binomial(alpha, trials=trials).stochastic
    assert true <= found.ratio * (1 + 1e-3) and found.ratio <= true * 1.01


def test_multivariate_normals_are_as_steep_as_lemma_23_says(rng):
    def distance(x, y):
        return np.linalg.norm(np.outer(x, x) - np.outer(y, y)) + 2 * np.linalg.norm(x - y)

    worst = 0.0
    for _ in range(200):
        turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        eigenvalues, mean = rng.uniform(0.2, 3, size=3), rng.normal(size=3)
        precision = turned @ np.diag(eigenvalues) @ turned.T
        found = families.multivariate_normal(list(eigenvalues), mean_norm=float(np.linalg.norm(mean)), row_norm=2.0)
        x, y = (2 * item / np.linalg.norm(item) * rng.uniform() for item in rng.normal(size=(2, 3)))
        slope = abs((x - mean) @ precision @ (x - mean) - (y - mean) @ precision @ (y - mean)) / 2 / distance(x, y)
        worst = max(worst, slope / found.lipschitz)
        assert distance(x, y) <= found.distances["one row"]
    assert 0.3 < worst <= 1
