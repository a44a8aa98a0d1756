"""Densities of noised counts and sums against brute force: exact where they claim to be, within errors elsewhere."""

from functools import partial

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp, xlogy

from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.noise_aware import counts_logp, moments_logp
from tests.transforms.test_laplace_sums import numpy_normal_laplace

BULK = 22.0
"""Log densities this far below the peak are of no account; only that they are finite and point back matters."""


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE")


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


# --- counts ----------------------------------------------------------------------------------------------------------


def counts_function(scale, sizes, n_levels):
    """Log density and gradients as a function of released counts and of probabilities (n_cells, n_levels)."""
    n_cells = len(sizes.bound)
    width = 1 if sizes.public and n_levels == 2 else n_levels
    value, p = pt.matrix("value", shape=(n_cells, width)), pt.matrix("p", shape=(n_cells, n_levels))
    logp = counts_logp(value, p, scale, sizes)
    return function([value, p], [logp, pt.grad(logp.sum(), p)])


RATES = np.array([1e-4, 0.01, 0.2, 0.3, 0.34, 0.5, 0.9, 1 - 1e-4])


@pytest.mark.few(32)
@pytest.mark.parametrize("kind", LOG_NOISE)
@pytest.mark.parametrize("scale", [0.1, 0.6, 1.0, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("n", [1, 5, 100, 3000])
def test_a_noised_binomial_count_is_exact(n, scale, kind):
    evaluate = counts_function(scale, public(*[n] * len(RATES), kind=kind), 2)
    s, far = np.arange(n + 1), int(5 * scale if kind == "laplace" else 3 * scale) + 1
    for value in {0, n // 3, n, n + far, -far}:
        found, gradient = evaluate(np.full((len(RATES), 1), float(value)), np.stack([1 - RATES, RATES], axis=1))
        exact = logsumexp(stats.binom.logpmf(s, n, RATES[:, None]) + LOG_NOISE[kind](value - s, scale), axis=1)
        near = exact > exact.max() - BULK
        np.testing.assert_allclose(found[near], exact[near], atol=1e-8, rtol=0)
        assert np.isfinite(found).all()
        assert np.isfinite(gradient).all()


THREE = each(
    *((30, 0.5, 0.25), (30, 2.0, 0.15), (60, 4.0, 0.15), (60, 20.0, 0.03)),
    gaussian=[(30, 0.5, 0.25), (30, 2.0, 0.1), (60, 4.0, 0.05), (60, 25.0, 0.01)],
)


@pytest.mark.parametrize(("kind", "n", "scale", "error"), THREE)
def test_three_noised_counts_of_public_size_vary_as_they_should(kind, n, scale, error, rng):
    """K = 3: a constant aside, the log density is right to `error` (standard deviation over the posterior)."""
    edge = np.linspace(0.02, 0.98, 25)
    p = np.array([(a, b, 1 - a - b) for a in edge for b in edge if a + b < 0.99])
    i, j = (item.ravel() for item in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    counts = np.stack([i, j, n - i - j])[:, i + j <= n]
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=0)
    evaluate = counts_function(scale, public(*[n] * len(p), kind=kind), 3)
    for true in ((0.2, 0.3, 0.5), (0.05, 0.15, 0.8)):
        value = rng.multinomial(n, true) + noise(rng, kind, scale, 3)
        terms = ways + LOG_NOISE[kind](value[:, None] - counts, scale).sum(axis=0)
        exact = logsumexp(terms + np.log(p) @ counts, axis=1)
        found, _ = evaluate(np.tile(value.astype(float), (len(p), 1)), p)
        weight = np.exp(exact - logsumexp(exact))
        difference = found - exact
        assert np.sqrt(weight @ (difference - weight @ difference) ** 2) < error


def counts_of_private_size(value, p, kind, scale, bound, log_prior):
    """Rates integrated with thousands of nodes, counts summed one by one."""
    x, w = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0, bound, 200)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    rate, weight = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
    total = log_prior(rate)
    for released, probability in zip(value, p, strict=True):
        s = np.arange(int(bound * probability + 12 * np.sqrt(bound) + 30))
        terms = xlogy(s, rate[:, None] * probability) - rate[:, None] * probability - gammaln(s + 1)
        total = total + logsumexp(terms + LOG_NOISE[kind](released - s, scale), axis=1)
    return logsumexp(total, b=weight)


def log_prior(n, rate, bound):
    """Log density of a size."""
    return np.log1p(rate * bound) - 2 * np.log1p(rate * n) - np.log(bound)


@pytest.mark.few(12)
@pytest.mark.parametrize(("kind", "scale"), each((0.3,), (1.9,), (2.1,), (10.0,), gaussian=[(0.3,), (1.0,), (10.0,)]))
@pytest.mark.parametrize(("rate", "n_levels"), [(0.0, 2), (0.4, 4)])
def test_counts_of_private_size_are_right_to_five_thousandths(kind, scale, rate, n_levels, rng):
    bound = 100
    evaluate = counts_function(scale, private(bound, rate=rate, kind=kind), n_levels)
    for _ in range(5):
        p, n = rng.dirichlet(np.ones(n_levels)), rng.integers(0, bound // (1 if rate == 0 else 5) + 1)
        value = rng.multinomial(n, p) + noise(rng, kind, scale, n_levels)
        found, _ = evaluate(value[None].astype(float), p[None])
        prior = partial(log_prior, rate=rate, bound=bound)
        assert found[0] == pytest.approx(counts_of_private_size(value, p, kind, scale, bound, prior), abs=5e-3)


# --- moments of private size -----------------------------------------------------------------------------------------


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


# --- nothing is ever NaN ---------------------------------------------------------------------------------------------

EXTREME = [(public, (size,), levels) for levels in (2, 3) for size in (0, 50, 10**6)]
EXTREME += [(private, (50,), 2), (partial(private, rate=1e-3), (10**6,), 3)]


@pytest.mark.few(27)
@pytest.mark.parametrize(
    ("kind", "made", "bound", "n_levels"),
    each(*EXTREME, gaussian=[*EXTREME, (partial(private, seen=np.array([-40.0]), noise=9.0), (10**6,), 2)]),
)
@pytest.mark.parametrize("scale", [0.05, 1.0, 40.0])
def test_counts_are_finite_at_extreme_parameters_and_releases(kind, made, bound, n_levels, scale):
    sizes = made(*bound, kind=kind)
    evaluate = counts_function(scale, sizes, n_levels)
    width = 1 if sizes.public and n_levels == 2 else n_levels
    for level in (-1e7, -30.0, -1.0, 0.0, 25.0, 1e7):
        for tiny in (1e-16, 1e-12, 0.3):
            p = np.full((1, n_levels), tiny)
            p[0, 0] = 1 - tiny * (n_levels - 1)
            logp, gradient = evaluate(np.full((1, width), level), p)
            assert np.isfinite(logp).all(), (level, tiny)
            assert np.isfinite(gradient).all(), (level, tiny)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("kind", LOG_NOISE)
@pytest.mark.parametrize("hidden", [False, True])
def test_two_moments_are_finite_at_extreme_parameters_and_releases(kind, hidden):
    sizes = private(1000, rate=0.2, kind=kind) if hidden else public(1000, kind=kind)
    width = 3 if hidden else 2
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
