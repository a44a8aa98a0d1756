"""Densities of noised sums against brute force: exact where they claim to be, within stated errors elsewhere."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import erfcx, gammaln, log_ndtr, logsumexp, xlogy

from pymc_dp.transforms.laplace_sums import normal_laplace, normal_laplace_pair
from pymc_dp.transforms.noise_aware import (
    Sizes,
    counts_logp,
    moments_logp,
)

BULK = 22.0
"""Log densities this far below the peak are of no account; only that they are finite and point back matters."""


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE")


def laplace(distance, scale):
    """Log probability of discrete Laplace noise."""
    return np.log(np.tanh(1 / (2 * scale))) - np.abs(distance) / scale


def noise(rng, scale, size):
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def public(*sizes):
    return Sizes(public=True, bound=np.array(sizes), n_private=1)


# --- one normal sum -------------------------------------------------------------------------------------------------


def exact_normal_laplace(z, s, b):
    with mpmath.workdps(60):
        z, s, b = map(mpmath.mpf, (z, s, b))
        half = s**2 / (2 * b**2)
        right = mpmath.exp(half - z / b) * mpmath.ncdf(z / s - s / b)
        left = mpmath.exp(half + z / b) * mpmath.ncdf(-z / s - s / b)
        return float(mpmath.log(right + left) - mpmath.log(2 * b))


def normal_laplace_function(scale):
    z, v = pt.vectors("z", "v")
    logp = normal_laplace(z, v, scale)
    return function([z, v], [logp, *pt.grad(logp.sum(), [z, v])])


@pytest.mark.few(2)
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0, 1e4])
def test_normal_laplace_is_exact_in_every_tail(scale):
    evaluate = normal_laplace_function(scale)
    for s in (1e-5, 0.3, 2, 30, 1e6):
        z = np.array([0, 0.1, 1, 5, 25, 100, 1e4, 1e7, -3, -1e5])
        exact = np.array([exact_normal_laplace(item, s, scale) for item in z])
        logp, *gradients = evaluate(z, np.full(z.shape, float(s) ** 2))
        np.testing.assert_allclose(logp, exact, rtol=1e-12, atol=1e-12)
        assert np.isfinite(gradients).all()


def test_normal_laplace_where_the_naive_form_is_nan():
    logp, *_ = normal_laplace_function(10.0)(np.array([100.0]), np.array([4.0]))
    assert logp[0] == pytest.approx(-12.97573227355399, abs=1e-12)


def test_gradients_of_normal_laplace_are_its_slopes(rng):
    evaluate = normal_laplace_function(3.0)
    z, v = rng.normal(scale=20, size=50), np.exp(rng.normal(size=50) * 3)
    _, slope_z, slope_v = evaluate(z, v)
    for found, (up, down, step) in (
        (slope_z, (evaluate(z + 1e-5, v)[0], evaluate(z - 1e-5, v)[0], 2e-5)),
        (slope_v, (evaluate(z, v * (1 + 1e-6))[0], evaluate(z, v * (1 - 1e-6))[0], 2e-6 * v)),
    ):
        np.testing.assert_allclose(found, (up - down) / step, rtol=1e-4, atol=1e-6)


# --- two correlated sums ---------------------------------------------------------------------------------------------


def numpy_normal_laplace(z, v, b):
    s = np.sqrt(v)

    def tail(a, z):
        far = -(z**2) / (2 * v) + np.log(0.5 * erfcx(-np.minimum(a, 0) / np.sqrt(2)))
        return np.where(a < -0.5, far, v / (2 * b * b) - z / b + log_ndtr(np.maximum(a, -1)))

    return np.logaddexp(tail(z / s - s / b, z), tail(-z / s - s / b, -z)) - np.log(2 * b)


def pair_by_brute_force(z, covariance, b):
    """Integral over the first sum with thousands of nodes, dense at every scale around both kinks."""
    (v11, v12), (_, v22) = covariance
    s, slope = np.sqrt(v11), v12 / v11
    rest = max(v22 - v12 * slope, 1e-10 * (1 + v22))
    kinks = [0.0, z[0], *([z[1] / slope] if slope else [])]
    widths = [s, b, *([np.sqrt(rest) / abs(slope), b / abs(slope)] if slope else [])]
    ladder = np.concatenate([-np.geomspace(1e-3, 60, 40)[::-1], [0], np.geomspace(1e-3, 60, 40)])
    edges = np.concatenate([kink + width * ladder for kink in kinks for width in widths])
    edges = np.unique(np.clip(edges, -45 * s, 45 * s))
    x, w = np.polynomial.legendre.leggauss(20)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    x, w = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
    logp = (
        stats.norm.logpdf(x, 0, s)
        - np.abs(z[0] - x) / b
        - np.log(2 * b)
        + numpy_normal_laplace(z[1] - slope * x, rest, b)
    )
    return logsumexp(logp, b=w)


def clamped_normals():
    """Mean and sd in half widths: free, near a bound, at it, tight, and tighter than the noise can tell."""
    return [(0, 0.3), (0.5, 0.05), (0.9, 0.02), (-0.7, 0.3), (0.95, 0.5), (0.6, 0.001)]


@pytest.mark.few(1)
@pytest.mark.parametrize("b", [0.3, 2.25, 225.0])
def test_pair_density_is_within_a_thousandth(b, rng):
    """Noise dominating and dominated, statistics nearly functions of each other (correlation up to 1 - 1e-6)."""
    z1, z2, v11, v12, v22 = pt.vectors(5)
    evaluate = function([z1, z2, v11, v12, v22], normal_laplace_pair([z1, z2], v11, v12, v22, np.array([b, b])))
    for n in (30, 10_000, 10**7):
        for mean, sd in clamped_normals():
            t = np.clip(rng.normal(mean, sd, 20_000), -1, 1)
            covariance = np.cov(t, t**2) * n
            z = rng.multivariate_normal([0, 0], covariance, size=4) + rng.laplace(scale=b, size=(4, 2))
            found = evaluate(*z.T, *np.full((4, 3), covariance[[0, 0, 1], [0, 1, 1]]).T)
            exact = [pair_by_brute_force(item, covariance, b) for item in z]
            np.testing.assert_allclose(found, exact, atol=1e-3)


def test_brute_force_of_the_pair_agrees_with_a_double_integral():
    covariance, b, z = np.array([[4.0, 3.0], [3.0, 5.0]]), 1.5, np.array([2.0, -1.0])
    axis = np.linspace(-25, 25, 2501)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    density = stats.multivariate_normal([0, 0], covariance).logpdf(np.dstack([first, second]))
    density += -np.abs(z[0] - first) / b - np.abs(z[1] - second) / b - 2 * np.log(2 * b)
    assert pair_by_brute_force(z, covariance, b) == pytest.approx(
        logsumexp(density) + 2 * np.log(axis[1] - axis[0]), abs=1e-4
    )


# --- counts ----------------------------------------------------------------------------------------------------------


def counts_function(scale, sizes, n_levels):
    """Log density and gradients as a function of released counts and of probabilities (n_cells, n_levels)."""
    n_cells = len(sizes.bound)
    width = 1 if sizes.public and n_levels == 2 else n_levels
    value, p = pt.matrix("value", shape=(n_cells, width)), pt.matrix("p", shape=(n_cells, n_levels))
    logp = counts_logp(value, p, scale, sizes)
    return function([value, p], [logp, pt.grad(logp.sum(), p)])


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [1, 5, 100, 3000])
def test_a_noised_binomial_count_is_exact(n, scale):
    p = np.array([1e-4, 0.01, 0.2, 0.3, 0.34, 0.5, 0.9, 1 - 1e-4])
    evaluate = counts_function(scale, public(*[n] * len(p)), 2)
    s = np.arange(n + 1)
    for value in {0, n // 3, n, n + int(5 * scale) + 1, -int(5 * scale) - 1}:
        found, gradient = evaluate(np.full((len(p), 1), float(value)), np.stack([1 - p, p], axis=1))
        exact = logsumexp(stats.binom.logpmf(s, n, p[:, None]) + laplace(value - s, scale), axis=1)
        near = exact > exact.max() - BULK
        np.testing.assert_allclose(found[near], exact[near], atol=1e-8, rtol=0)
        assert np.isfinite(found).all()
        assert np.isfinite(gradient).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "scale"), [(3000, 100.0), (300_000, 1000.0)])
def test_a_binomial_count_under_wide_noise_is_exact(n, scale):
    p = np.array([1e-4, 0.01, 0.2, 0.34, 0.5, 0.9, 1 - 1e-4])
    evaluate, s = counts_function(scale, public(*[n] * len(p)), 2), np.arange(n + 1)
    for value in (-0.07 * n, 0.01 * n, 0.5 * n, 1.1 * n):
        found, _ = evaluate(np.full((len(p), 1), value), np.stack([1 - p, p], axis=1))
        exact = logsumexp(stats.binom.logpmf(s, n, p[:, None]) + laplace(value - s, scale), axis=1)
        np.testing.assert_allclose(found, exact, atol=1e-7, rtol=0)


def test_a_binomial_density_sums_to_one():
    evaluate = counts_function(2.0, public(*[20] * 301), 2)
    found, _ = evaluate(np.arange(-140.0, 161.0)[:, None], np.full((301, 2), [0.3, 0.7]))
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("n", "scale", "error"), [(30, 0.5, 0.25), (30, 2.0, 0.15), (60, 4.0, 0.15), (60, 20.0, 0.03)])
def test_three_noised_counts_of_public_size_vary_as_they_should(n, scale, error, rng):
    """K = 3: a constant aside, the log density is right to `error` (standard deviation over the posterior)."""
    edge = np.linspace(0.02, 0.98, 25)
    p = np.array([(a, b, 1 - a - b) for a in edge for b in edge if a + b < 0.99])
    i, j = (item.ravel() for item in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    counts = np.stack([i, j, n - i - j])[:, i + j <= n]
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=0)
    evaluate = counts_function(scale, public(*[n] * len(p)), 3)
    for true in ((0.2, 0.3, 0.5), (0.05, 0.15, 0.8)):
        value = rng.multinomial(n, true) + noise(rng, scale, 3)
        terms = ways + laplace(value[:, None] - counts, scale).sum(axis=0)
        exact = logsumexp(terms + np.log(p) @ counts, axis=1)
        found, _ = evaluate(np.tile(value.astype(float), (len(p), 1)), p)
        weight = np.exp(exact - logsumexp(exact))
        difference = found - exact
        spread = np.sqrt(weight @ (difference - weight @ difference) ** 2)
        assert spread < error


def counts_of_private_size(value, p, scale, bound, parts):
    """Rates integrated with thousands of nodes, counts summed one by one."""
    x, w = np.polynomial.legendre.leggauss(12)
    far = 12 * np.sqrt(max(value.sum(), 0) + 4 * scale**2 * len(value) + 1)
    edges = np.unique(np.clip([*np.linspace(0, bound, 20), *(value.sum() + far * np.linspace(-1, 1, 21))], 0, bound))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    rate, weight = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
    parts = max(parts, 2)
    total = np.log(parts - 1) - np.log(bound) + (parts - 2) * np.log1p(-(1 - 1e-9) * rate / bound)
    for released, probability in zip(value, p, strict=True):
        s = np.arange(int(bound * probability + 12 * np.sqrt(bound) + 30))
        terms = xlogy(s, rate[:, None] * probability) - rate[:, None] * probability - gammaln(s + 1)
        total = total + logsumexp(terms + laplace(released - s, scale), axis=1)
    return logsumexp(total, b=weight)


@pytest.mark.parametrize("scale", [0.3, 1.9, 2.1, 10.0])
@pytest.mark.parametrize(("parts", "n_levels"), [(1, 2), (5, 4)])
def test_counts_of_private_size_are_right_to_five_thousandths(scale, parts, n_levels, rng):
    bound = 100
    evaluate = counts_function(scale, Sizes(public=False, bound=np.array([bound]), n_private=parts), n_levels)
    for _ in range(5):
        p, n = rng.dirichlet(np.ones(n_levels)), rng.integers(0, bound // parts + 1)
        value = rng.multinomial(n, p) + noise(rng, scale, n_levels)
        found, _ = evaluate(value[None].astype(float), p[None])
        assert found[0] == pytest.approx(counts_of_private_size(value, p, scale, bound, parts), abs=5e-3)


# --- moments of private size ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [3.0, 30.0])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_moment_of_private_size_is_a_sum_over_sizes(b, parts, rng):
    """Noise of sizes and of sums is alike in half widths. Right to 2e-2 for a scale of 3 rows or more."""
    bound = 500
    sizes = Sizes(public=False, bound=np.array([bound]), n_private=parts)
    value, mean, variance = pt.matrix("value", shape=(1, 2)), pt.vector("mean", shape=(1,)), pt.vector("v", shape=(1,))
    evaluate = function([value, mean, variance], moments_logp(value, [mean], [[variance]], np.array([b, b]), sizes))
    n = np.arange(bound + 1)
    prior = np.log(max(parts, 2) - 1) - np.log(bound) + (max(parts, 2) - 2) * np.log1p(-(1 - 1e-9) * n / bound)
    for m, v in ((0.0, 0.2), (0.6, 0.05), (-0.95, 0.01)):
        for true in (40, 100):
            released = np.array([true, true * m + rng.normal() * np.sqrt(true * v)]) + rng.laplace(scale=b, size=2)
            terms = prior - np.abs(released[0] - n) / b - np.log(2 * b)
            terms = terms + numpy_normal_laplace(released[1] - n * m, np.maximum(n, 1e-3) * v + 1e-10, b)
            found = evaluate(released[None], np.array([m]), np.array([v]))[0]
            assert found == pytest.approx(logsumexp(terms), abs=2e-2)


# --- nothing is ever NaN ----------------------------------------------------------------------------------------------


@pytest.mark.few(13)
@pytest.mark.parametrize(
    ("sizes", "n_levels"),
    [
        (public(0), 2), (public(50), 2), (public(10**6), 2), (public(0), 3), (public(50), 3), (public(10**6), 3),
        (Sizes(public=False, bound=np.array([50]), n_private=1), 2),
        (Sizes(public=False, bound=np.array([10**6]), n_private=6), 3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_counts_are_finite_at_extreme_parameters_and_releases(sizes, n_levels, scale):
    evaluate = counts_function(scale, sizes, n_levels)
    width = 1 if sizes.public and n_levels == 2 else n_levels
    for level in (-1e7, -30.0, -1.0, 0.0, 25.0, 1e7):
        for tiny in (1e-16, 1e-12, 0.3):
            p = np.full((1, n_levels), tiny)
            p[0, 0] = 1 - tiny * (n_levels - 1)
            logp, gradient = evaluate(np.full((1, width), level), p)
            assert np.isfinite(logp).all()
            assert np.isfinite(gradient).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("private", [False, True])
def test_two_moments_are_finite_at_extreme_parameters_and_releases(private):
    sizes = Sizes(public=not private, bound=np.array([1000]), n_private=3 if private else 1)
    width = 3 if private else 2
    value, parameters = pt.matrix("value", shape=(1, width)), [pt.vector(name, shape=(1,)) for name in "abcde"]
    m1, m2, v11, v12, v22 = parameters
    logp = moments_logp(value, [m1, m2], [[v11, v12], [v12, v22]], np.full(width, 5.0), sizes)
    evaluate = function([value, *parameters], [logp, *pt.grad(logp.sum(), parameters)])
    for level in (-1e6, -30.0, 0.0, 400.0, 1e6):
        for v in (0.0, 1e-30, 1e-12, 0.1, 1.0):
            for correlation in (-1.0, 0.0, 1.0):
                moments = [0.5, 0.25, v, correlation * v, v]
                outputs = evaluate(np.full((1, width), level), *(np.array([item]) for item in moments))
                assert np.isfinite(outputs).all(), (level, v, correlation)
