"""Normal sums with Laplace noise against brute force: exact where they claim to be, within stated errors elsewhere."""

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import erfcx, log_ndtr, logsumexp

from pymc_dp.transforms.sum_noises import normal_laplace, normal_laplace_pair


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE")


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
