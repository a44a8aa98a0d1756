"""Moments of clamped rows against high precision, and against draws; never a negative variance."""

import itertools

import mpmath
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.families import FAMILIES
from pymc_dp.families.statistic import GRID, BoundedMoments

LOW, HIGH = 5.0, 100.0


def statistic(low, high, powers):
    half_width = (high - low) / 2
    return BoundedMoments(
        low=low, high=high, centre=(low + high) / 2, unit=half_width / GRID, half_width=half_width, powers=powers
    )


def compiled(family, bounded, count):
    """Means, then the covariance row by row, and the gradient of their sum."""
    inputs = [pt.vector(f"p{i}") for i in range(count)]
    mean, covariance = family.moments(inputs, bounded)
    flat = [*mean, *itertools.chain.from_iterable(covariance)]
    return pytensor.function(inputs, [*flat, *pt.grad(sum(item.sum() for item in flat), inputs)], mode="FAST_COMPILE")


def exact_clamped_normal(mean, sd):
    """E t, E t^2, and the covariance matrix of (t, t^2), t clamped to [-1, 1]."""
    with mpmath.workdps(90):
        a, b = (-1 - mpmath.mpf(mean)) / sd, (1 - mpmath.mpf(mean)) / sd
        inside = [mpmath.ncdf(b) - mpmath.ncdf(a), mpmath.npdf(a) - mpmath.npdf(b)]
        for k in range(2, 5):
            inside.append((k - 1) * inside[k - 2] + a ** (k - 1) * mpmath.npdf(a) - b ** (k - 1) * mpmath.npdf(b))
        atoms = [(-1) ** k * mpmath.ncdf(a) + mpmath.ncdf(-b) for k in range(5)]
        m = [
            sum(
                mpmath.binomial(k, i) * mpmath.mpf(mean) ** (k - i) * mpmath.mpf(sd) ** i * inside[i]
                for i in range(k + 1)
            )
            + atoms[k]
            for k in range(5)
        ]
        return [
            float(x) for x in (m[1], m[2], m[2] - m[1] ** 2, m[3] - m[1] * m[2], m[3] - m[1] * m[2], m[4] - m[2] ** 2)
        ]


MEANS = [-1e9, -1e4, -200, 0, 4.9, 5, 20, 52.5, 99.9, 150, 1e9]
SDS = [1e-9, 1e-4, 0.5, 20, 47.4, 47.6, 300, 1e5, 1e9]


@pytest.mark.slow
def test_clamped_normal_has_the_moments_of_its_distribution():
    """Absolute error in half widths; the closed form alone gave a variance of 3e14 at mean -1e9, sd 1e9."""
    evaluate = compiled(FAMILIES["normal"], statistic(LOW, HIGH, (1, 2)), 2)
    grid = np.array(list(itertools.product(MEANS, SDS)))
    *found, slope_mean, slope_sd = evaluate(*grid.T.copy())
    exact = np.array([exact_clamped_normal((mean - 52.5) / 47.5, sd / 47.5) for mean, sd in grid]).T
    np.testing.assert_allclose(np.array(found), exact, atol=1e-11, rtol=1e-8)
    assert (found[2] >= 0).all()
    assert (found[5] >= 0).all()
    assert np.isfinite([slope_mean, slope_sd]).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("bounds", [(0, 1), (3, 4), (2, 9), (0, 20), (5, 100), (0, 10_000)])
def test_clamped_poisson_has_the_moments_of_its_distribution(bounds):
    low, high = map(float, bounds)
    bounded = statistic(low, high, (1,))
    rate = np.array([1e-12, 1e-6, 0.01, 0.5, 3, 9, 30, 200, 999, 5e4, 1e9])
    mean, variance, slope = compiled(FAMILIES["poisson"], bounded, 1)(rate)
    k = np.arange(low, high + 1)
    p = stats.poisson.pmf(k, rate[:, None])
    p[:, 0], p[:, -1] = stats.poisson.cdf(low, rate), stats.poisson.sf(high - 1, rate)
    t = (k - bounded.centre) / bounded.half_width
    np.testing.assert_allclose(mean, p @ t, atol=1e-9)
    np.testing.assert_allclose(variance, (p * (t - (p @ t)[:, None]) ** 2).sum(axis=1), atol=1e-9)
    assert (variance >= 0).all()
    assert np.isfinite(slope).all()
