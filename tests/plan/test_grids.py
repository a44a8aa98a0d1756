"""Draws from grids have the moments and quantiles of the density, whatever its place, width and correlation."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.plan.batches import Component
from pymc_dp.plan.posteriors import DRAWS, Grids

LINE = (Component(elements=(0,), terms=(0,)),)
PLANE = (Component(elements=(0, 1), terms=(0,)),)


@pytest.mark.parametrize("width", [1e-5, 0.01, 1.0])
@pytest.mark.parametrize("centre", [-2.0, 0.3])
def test_a_line_has_the_quantiles_of_its_density(centre, width, rng):
    prior = rng.normal(size=(1000, 1))
    grids = Grids.of(lambda points: stats.norm.logpdf(points, centre, width) + 0 * points, LINE, prior)
    drawn = grids.draws()
    for level in (0.05, 0.5, 0.95):
        assert abs(np.quantile(drawn, level) - stats.norm.ppf(level, centre, width)) < 0.01 * width


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_a_plane_has_the_moments_of_its_density(correlation, rng):
    scale = np.array([0.05, 0.3])
    covariance = np.outer(scale, scale) * np.array([[1, correlation], [correlation, 1]])
    density = stats.multivariate_normal([0.5, -0.5], covariance)
    grids = Grids.of(lambda points: density.logpdf(points)[:, None], PLANE, rng.normal(size=(1000, 2)))
    drawn = grids.draws()
    assert drawn.shape == (DRAWS, 2)
    np.testing.assert_allclose((drawn.mean(axis=0) - [0.5, -0.5]) / scale, 0, atol=0.03)
    np.testing.assert_allclose(drawn.std(axis=0), scale, rtol=0.05)
    assert abs(np.corrcoef(drawn.T)[0, 1] - correlation) < 0.05
