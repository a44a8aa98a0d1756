"""Constants of lemmas 19 to 24 of Dimitrakakis et al. (2017), against quadrature; errors of the paper as tests."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, expon, laplace, norm

from pymc_dp import theorems
from pymc_dp.errors import ArgumentError
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


@every_case
def test_mass_of_smooth_parameters_is_what_assumption_2_asks(name):
    found, density, (low, high, prior), values, distance = CASES[name]
    given = found.stochastic
    for theta in np.linspace(low, high, 7):
        lipschitz = steepest(lambda x, t: np.log(density(x, t)), distance, values, [theta])
        mass = -math.expm1(-prior * (theta - low)) / -math.expm1(-prior * (high - low))
        assert mass >= 1 - math.exp(-given.rate * (lipschitz - given.offset)) - 1e-9


@every_case
def test_rows_are_no_further_apart_than_said(name):
    found, _, _, values, distance = CASES[name]
    x, y = np.meshgrid(values, values)
    assert float(distance(x, y).max()) <= found.distances["one row"] * (1 + 1e-12)


def test_ratio_of_lemma_22_as_printed_is_below_the_true_one():
    low, high = 0.1, 0.5
    printed = min(math.sqrt(high / low) * math.exp(low * high**2 / 2), math.exp(high**3 / 2))
    found, density, prior, values, _ = CASES["normal"]
    true = largest_ratio(density, *prior, values)
    assert round(printed, 2) == 1.06
    assert round(true, 1) == 15.4 == round(found.stochastic.ratio, 1)
    # With max for min and B + |μ| for c2 it is a bound, if a poor one.
    mended = max(math.sqrt(high / low) * math.exp(low * 10.0**2 / 2), math.exp(high * 10.0**2 / 2))
    assert mended > true


def test_ratio_of_lemma_20_as_printed_takes_scales_for_their_inverses():
    """A largest over a mean is 1 at least; the paper's is far below, its densities having scale c where θ is."""
    low, high, bound, prior = 0.01, 0.1, 0.001, 2.0
    printed = high / (2 * min(1 / (2 * high), 1 / (2 * low) * math.exp(-bound / low)))
    found = families.laplace((low, high), location=0.0, bound=bound, prior_rate=prior).stochastic.ratio
    true = largest_ratio(lambda x, t: laplace.pdf(x, 0.0, 1 / t), low, high, prior, [0.0, bound])
    assert round(printed, 3) == 0.01 and round(float(true), 2) == 1.86
    mended = high / min(low * math.exp(-low * bound), high * math.exp(-high * bound))
    assert true <= found <= mended


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


@pytest.mark.parametrize("alpha, trials", [(13, 1_000_000), (2, 100_000), (40, 3)])
def test_ratio_of_lemma_21_is_an_upper_bound_where_logarithms_of_large_numbers_cancel(alpha, trials):
    """No success in n trials: B(α, α) / B(α, α + n) is a fraction of binomial coefficients."""
    true = Fraction(math.comb(2 * alpha + trials - 1, alpha), math.comb(2 * alpha - 1, alpha))
    found = Fraction(families.beta_binomial(float(alpha), trials=trials).stochastic.ratio)
    assert true <= found <= true * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize(
    "found",
    [
        families.exponential((0.1, 1000.0), bound=1e6, prior_rate=1.0),
        families.laplace((1e-3, 1e6), location=0.0, bound=1e6, prior_rate=1e-9),
        families.normal_precision((0.1, 1000.0), mean=0.0, bound=1e3, prior_rate=1.0),
        families.beta_binomial(1e6, trials=100_000),
    ],
)
def test_ratios_above_all_floats_are_infinite_and_say_nothing(found):
    assert math.isinf(found.stochastic.ratio)
    assert theorems.stochastic_total_variation(found.stochastic, distance=1e-9, step=0.0).vacuous


def test_a_row_of_a_network_is_further_than_its_distance_says_and_costs_no_more():
    """Two variables and an edge: ρ of a row that changes both is 3; L times 2 bounds what two factors move by."""
    found = families.bayesian_network(0.1, children=[1, 0])
    tables = [np.log([[p, 1 - p], [q, 1 - q]]) for p in (0.1, 0.9) for q in (0.1, 0.9)]
    moved = max(abs(np.log(a) + child[0][0] - np.log(1 - a) - child[1][1]) for a in (0.1, 0.9) for child in tables)
    assert moved <= found.lipschitz * found.distances["one row"]
    assert moved > found.lipschitz * found.distances["one entry"] * 0.9


def test_beta_function_of_lemma_21_as_printed_is_no_lower_bound_for_even_n():
    from scipy.special import beta as B

    alpha, n = 2.0, 10
    printed = B((n + 2 * alpha - 1) / 2, (n + 2 * alpha + 1) / 2)
    assert min(B(alpha + k, alpha + n - k) for k in range(n + 1)) < printed
    assert min(B(alpha + k, alpha + n - 1 - k) for k in range(n)) == pytest.approx(
        B((n - 1 + 2 * alpha - 1) / 2, (n - 1 + 2 * alpha + 1) / 2)
    )


@pytest.mark.parametrize("alpha", [1.5, 5.0, 13.0])
def test_mass_of_lemma_21_is_what_assumption_2_asks(alpha):
    given = families.beta_binomial(alpha, trials=10).stochastic
    for lipschitz in given.offset + np.array([0.01, 0.5, 2.0, 10.0]):
        edge = 1 / (1 + math.exp(lipschitz) / 10)
        assert 2 * beta.cdf(edge, alpha, alpha) <= math.exp(-given.rate * (lipschitz - given.offset)) * (1 + 1e-9)


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


def test_lemma_23_has_distance_3_in_one_dimension_only():
    def distance(d):
        x, y = np.ones(d), np.zeros(d)
        return np.linalg.norm(np.outer(x, x) - np.outer(y, y)) + 2 * np.linalg.norm(x - y)

    assert distance(1) == 3 and distance(4) == pytest.approx(8)


def test_lemma_24_covers_one_entry_and_not_a_row():
    """Two Bernoulli nodes without edges on [0.1, 0.9]: a row of 4000 that changes both."""
    found = families.bayesian_network(0.1, children=[0, 0])
    claims = {
        what: theorems.posterior_privacy(found.lipschitz, distance=distance).proof.epsilon
        for what, distance in found.distances.items()
    }
    theta, n = np.linspace(0.1, 0.9, 200_001), 4000

    node = _loss(theta, n)
    assert round(claims["one entry"], 2) == 4.61 and round(claims["one row"], 2) == 9.21
    assert round(2 * node, 2) == 8.78
    assert node <= claims["one entry"] < 2 * node <= claims["one row"]


def _loss(theta, n):
    """Largest log-ratio of the posteriors of 1 and of 0 ones among n, stable where they vanish."""
    zero, one = (ones * np.log(theta) + (n - ones) * np.log1p(-theta) for ones in (0, 1))
    totals = [np.log(np.exp(item - item.max()).sum()) + item.max() for item in (zero, one)]
    return float(np.abs((one - totals[1]) - (zero - totals[0])).max())


@pytest.mark.parametrize("children", [[1, 1, 1, 0], [3, 0, 0, 0]])
def test_rows_of_networks_move_as_many_factors_as_they_have_variables(children):
    found = families.bayesian_network(0.2, children=children)
    assert found.distances["one row"] == 4
    assert found.distances["one entry"] == 1 + max(children)
    with pytest.raises(ArgumentError):
        families.bayesian_network(0.2, children=[4, 0, 0, 0])


@pytest.mark.parametrize("bad", [(2.0, 1.0), (0.0, 1.0), (1.0, 1.0)])
def test_ranges_that_are_none_are_refused(bad):
    with pytest.raises(ArgumentError):
        families.exponential(bad, bound=1.0, prior_rate=1.0)
