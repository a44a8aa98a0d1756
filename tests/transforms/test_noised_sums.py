"""Densities of noised counts and sums against brute force: exact where they claim to be, else within stated errors."""

from functools import reduce

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import erfcx, log_ndtr, logsumexp

from pymc_dp.families import FAMILIES
from pymc_dp.families.feature_family import bounded_count
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.noise_aware import moments_logp
from pymc_dp.transforms.sum_noises import normal_laplace, normal_laplace_pair
from pymc_dp.transforms.vector_sums import mixed, vector_sums_logp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE")


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


BULK = 22.0
"""Log densities this far below the peak are of no account; only that they are finite and point back matters."""


def laplace(distance, scale):
    """Log probability of discrete Laplace noise."""
    return np.log(np.tanh(1 / (2 * scale))) - np.abs(distance) / scale


def gaussian(distance, scale):
    """Log probability of discrete Gaussian noise."""
    reach = np.arange(-np.ceil(40 * scale) - 1, np.ceil(40 * scale) + 2)
    return -0.5 * (distance / scale) ** 2 - logsumexp(-0.5 * (reach / scale) ** 2)


LOG_NOISE = {"laplace": laplace, "gaussian": gaussian}
CONTINUOUS = {"laplace": stats.laplace, "gaussian": stats.norm}


def noise(rng, kind, scale, size):
    reach = np.arange(-np.ceil(40 * scale), np.ceil(40 * scale) + 1)
    p = np.exp(LOG_NOISE[kind](reach, scale))
    return rng.choice(reach, p=p / p.sum(), size=size)


def public(*sizes, kind="gaussian"):
    return Sizes(public=True, bound=np.array(sizes), n_private=1, kind=kind)


def private(*bounds, rate=0.0, kind="gaussian", **seen):
    return Sizes(public=False, bound=np.array(bounds), n_private=1, rate=rate, kind=kind, **seen)


def each(*of_laplace, gaussian):
    """Cases of both kinds of noise."""
    return [("laplace", *case) for case in of_laplace] + [("gaussian", *case) for case in gaussian]


def log_prior(n, rate, bound):
    """Log density of a size."""
    return np.log1p(rate * bound) - 2 * np.log1p(rate * n) - np.log(bound)


def normal_sum(z, mean, covariance, n, kind, scale):
    """Log density of noised sums over n rows."""
    v = n * covariance
    if kind == "laplace":
        return numpy_normal_laplace(z[0] - n * mean[0], v[0, 0] + 1e-10, scale)
    return stats.multivariate_normal(n * mean, v + scale**2 * np.eye(len(mean))).logpdf(z)


def all_sizes(bound, seen):
    """Sizes and their weights, for an integral over 0..bound of what is smooth in the logarithm of 1 + size."""
    x, w = np.polynomial.legendre.leggauss(10)
    edges = np.unique(np.append(np.expm1(np.linspace(0, np.log1p(bound), 50)), np.clip(seen, 0, bound)))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("kind", "seen", "count"), each((False, 1), gaussian=[(False, 1), (False, 2), (True, 1), (True, 2)])
)
@pytest.mark.parametrize("scale", [3.0, 30.0])
@pytest.mark.parametrize("rate", [0.0, 0.01, 1.0])
def test_moments_of_private_size_are_an_integral_over_sizes(kind, seen, count, scale, rate, rng):
    """Noise of sizes and of sums is alike in half widths. Right to 3e-3 for a scale of 3 rows or more."""
    bound, width, error = 500, 20.0, 2e-2 if seen or kind == "laplace" else 3e-3
    shown = np.array([90.0])
    sizes = private(bound, rate=rate, kind=kind, **({"seen": shown, "noise": width} if seen else {}))
    value, m = pt.matrix("value", shape=(1, count + 1)), pt.vector("m", shape=(count,))
    v, scales = pt.matrix("v", shape=(count, count)), np.full(count + 1, scale)
    logp = moments_logp(
        value, [m[i : i + 1] for i in range(count)],
        [[v[i, j][None] for j in range(count)] for i in range(count)], scales, sizes,
    )  # fmt: skip
    evaluate = function([value, m, v], logp)
    of_size = CONTINUOUS[kind](scale=scale)
    for middle, spread in ((0.0, 0.2), (0.6, 0.05), (-0.95, 0.01)):
        means = np.array([middle, middle**2 - 0.5])[:count]
        covariance = spread * np.array([[1, 0.4], [0.4, 0.5]])[:count, :count]
        for true in (40, 100):
            exact_sums = rng.multivariate_normal(true * means, true * covariance)
            released = np.concatenate([[true], exact_sums]) + of_size.rvs(count + 1, random_state=rng)
            n, weights = all_sizes(bound, released[0])
            terms = stats.norm.logpdf(n, shown, width) if seen else log_prior(n, rate, bound)
            terms += of_size.logpdf(released[0] - n)
            terms += [normal_sum(released[1:], means, covariance, k, kind, scale) for k in n]
            found = evaluate(released[None], means, covariance)[0]
            assert found == pytest.approx(logsumexp(terms, b=weights), abs=error)


CASES = {
    "poisson": ((0, 20), lambda x: stats.poisson(x), (None,), [0.01, 0.9, 10.0, 40.0]),
    "poisson from 2": ((2, 9), lambda x: stats.poisson(x), (None,), [0.3, 5.0]),
    "geometric": ((1, 12), lambda x: stats.geom(x), (None,), [0.03, 0.5, 0.97]),
    "negative_binomial": ((0, 15), lambda x: stats.nbinom(1.7, x), (1.7, None), [0.05, 0.4, 0.9]),
    "binomial": ((0, 6), lambda x: stats.binom(6, x), (6.0, None), [0.02, 0.5, 0.99]),
}


def parameters(name, unknown):
    return [unknown if item is None else pt.constant(np.array([item])) for item in CASES[name][2]]


def row(name, parameter):
    """Probabilities of a clamped row."""
    (low, high), of = CASES[name][0], CASES[name][1](parameter)
    return np.array([of.cdf(low), *of.pmf(np.arange(low + 1, high)), of.sf(high - 1)])


OF_SIZE = {"laplace": 0.1, "gaussian": 0.3}
"""Scale of the noise on sizes."""


def private_density(name, kind, scale, release, bound=40, of_size=None, **given):
    statistic = bounded_count(*CASES[name][0], sizes_known=False)
    sizes = Sizes(public=False, bound=np.full(len(release), bound), n_private=1, kind=kind, **given)
    return ReleaseDensity(
        family=FAMILIES[name.split()[0]], statistic=statistic, sizes=sizes,
        scales=np.array([of_size or OF_SIZE[kind], scale * statistic.unit]), steps=np.array([1.0, statistic.unit]),
        noise_aware=True, release=release,
    )  # fmt: skip


def prior_of_size(n, rate, bound):
    """Of what is rounded to n."""
    return quad(lambda x: (1 + rate * x) ** -2, max(n - 0.5, 0), min(n + 0.5, bound))[0] * (1 + rate * bound) / bound


def exact_of_private_size(name, parameter, released, kind, scale, prior, of_size=None):
    """Log density of one cell, in half widths: of all sizes and all sums of each."""
    (low, high), (count, value) = CASES[name][0], released
    unit, terms = bounded_count(low, high, sizes_known=False).unit, []
    for n, p in enumerate(prior):
        masses = reduce(np.convolve, [row(name, parameter)] * n, np.ones(1))
        steps = (value - np.arange(len(masses)) + n * (high - low) / 2) / unit
        shown = LOG_NOISE[kind](count - n, of_size or OF_SIZE[kind])
        terms.append(np.log(p) + shown + logsumexp(LOG_NOISE[kind](steps, scale), b=masses))
    return logsumexp(terms) + np.log((high - low) / 2 / unit)


def released_of_private_size(name, kind, scale, rng, sizes):
    low, high = CASES[name][0]
    masses, unit = row(name, CASES[name][3][1]), bounded_count(low, high, sizes_known=False).unit
    sums = [rng.choice(high - low + 1, n, p=masses).sum() - n * (high - low) / 2 for n in sizes]
    counts = sizes + noise(rng, kind, OF_SIZE[kind], len(sizes))
    return np.column_stack([counts, sums + unit * noise(rng, kind, scale, len(sizes))]).astype(float)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.4), ("laplace", 4.0), ("gaussian", 0.8), ("gaussian", 3.0)])
def test_all_private_sizes_are_added_up(name, kind, scale, rng):
    value, at = released_of_private_size(name, kind, scale, rng, np.array([0, 1, 1, 3])), pt.vector("at", shape=(1,))
    density, held = private_density(name, kind, scale, value, rate=0.3), pt.constant(value)
    assert density.few.cells.all()
    graph, table = (of(held, *parameters(name, at)) for of in (density.graph, density.logp))
    evaluate = function([at], [item for logp in (graph, table) for item in (logp, pt.grad(logp.sum(), at))])
    prior = [prior_of_size(n, 0.3, 40) for n in range(12)]
    for parameter in CASES[name][3]:
        found, slope, tabulated, of_table = evaluate([parameter])
        expected = [exact_of_private_size(name, parameter, item, kind, scale, prior) for item in value]
        np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=1e-6, atol=1e-9)  # noise reaches further
        np.testing.assert_allclose(tabulated, found, rtol=1e-5, atol=1e-5)
        step = 1e-5 * min(parameter, abs(1 - parameter))
        ends = [evaluate([parameter + sign * step])[0].sum() for sign in (1, -1)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_table, slope, rtol=1e-3, atol=1e-3)


def sizes_of(kind, *bound, **options):
    return Sizes(**{"public": True, "bound": np.array(bound), "n_private": 1, "kind": kind} | options)


def density(count, n_cells, scales, sizes):
    """Compiled log density of (n_cells, ...) releases, with its gradients where parameters are free."""
    first = 0 if sizes.public else 1
    value = pt.tensor("value", shape=(n_cells, count + first), dtype="float64")
    mean = pt.tensor("mean", shape=(1, count), dtype="float64")
    covariance = pt.tensor("covariance", shape=(1, count, count), dtype="float64")
    inputs = [value, mean, covariance]
    if mixed(sizes.kind, count, n_cells):
        inputs.append(pt.tensor("variances", shape=(n_cells, count), dtype="float64"))
    logp = vector_sums_logp(value, mean, covariance, scales, sizes, *inputs[3:])
    return pytensor.function(inputs, [logp, *pt.grad(logp.sum(), inputs[1:])], mode="FAST_COMPILE")


def covariance_of(rng, count):
    root = rng.normal(size=(count, count))
    return (root @ root.T / count + 0.1 * np.eye(count))[None]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_private_size_is_a_sum_over_sizes(kind, rng):
    count, bound, scales = 3, 200, np.array([4.0, 3.0, 5.0, 8.0])
    mean, covariance = rng.normal(size=(1, count)) / 2, covariance_of(rng, count) / 4
    variances = rng.exponential(size=(1, count))
    value = np.concatenate([[[90.0]], 88 * mean + 5 * rng.normal(size=(1, count))], axis=1)
    sizes = sizes_of(kind, bound, public=False)
    extra = [variances] if kind == "laplace" else []
    found, *slopes = density(count, 1, scales, sizes)(value, mean, covariance, *extra)
    noise = np.diag(scales[1:] ** 2 * (2 * variances[0] if extra else 1.0))
    law = stats.laplace(scale=4.0) if extra else stats.norm(scale=4.0)
    terms = [
        stats.multivariate_normal(n * mean[0], n * covariance[0] + noise).logpdf(value[0, 1:])
        + law.logpdf(value[0, 0] - n)
        for n in range(1, bound + 1)
    ]
    assert found[0] == pytest.approx(logsumexp(terms) - np.log(bound), abs=0.02)
    assert all(np.isfinite(item).all() for item in slopes)


@pytest.mark.slow
def test_free_variances_make_laplace_noise(rng):
    """The average over exponential variances is the density of normal sums with Laplace noise on each."""
    count, n, scales, draws = 3, 50, np.array([3.0, 6.0, 9.0]), 40_000
    mean, covariance = rng.normal(size=(1, count)), covariance_of(rng, count)
    nodes = -np.log((np.argsort(rng.random((count, draws))).T + 0.5) / draws)  # a Latin hypercube
    evaluate = density(count, draws, scales, sizes_of("laplace", *[n] * draws))
    exact_sums = n * mean + rng.normal(size=(400_000, count)) @ np.linalg.cholesky(n * covariance[0]).T
    for place in range(3):  # of values that are seen: far out, the mean over exact sums has no precision
        value = exact_sums[place][None] + rng.laplace(size=(1, count)) * scales
        found = logsumexp(evaluate(np.tile(value, (draws, 1)), mean, covariance, nodes)[0]) - np.log(draws)
        terms = stats.laplace.logpdf(value - exact_sums, scale=scales).sum(axis=1)
        assert found == pytest.approx(logsumexp(terms) - np.log(len(terms)), abs=0.05)
