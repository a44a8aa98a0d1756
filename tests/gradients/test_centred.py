"""Means of posteriors by gradients where curvatures change: residual standard deviations beside many means."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import digamma

from pymc_dp.gradients.centred import bends, centred
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic

GROUPS, ROWS = 20, 400
SIZE = GROUPS + 1
FLAT = Prior(mean=np.zeros(SIZE), precision=1e-6 * np.eye(SIZE))
SCALE = np.geomspace(0.5, 3, SIZE)


def curvature_at(log_deviation):
    """Of means and the logarithm of the standard deviation, the last one, which is 1 at the mode."""
    return np.diag([*[ROWS / GROUPS * np.exp(-2 * log_deviation)] * GROUPS, 2.0 * ROWS])


def quadratic_with(noise):
    """In coordinates η / D, about the mode at 0."""
    curvature = curvature_at(0.0) * np.outer(SCALE, SCALE)
    return Quadratic(slope=np.zeros(SIZE), curvature=curvature, covariance=curvature + noise * curvature, scale=SCALE)


@pytest.fixture
def bent(rng):
    basis = np.eye(SIZE) + 0.1 * rng.normal(size=(SIZE, SIZE))
    basis = basis @ basis.T

    def curvature(at):
        away = SCALE * (basis @ at)
        return basis @ (curvature_at(away[-1]) * np.outer(SCALE, SCALE)) @ basis

    return SimpleNamespace(basis=basis, curvature=curvature, kept=np.ones(SIZE))


def mean_of(quadratic):
    return quadratic.posterior(np.zeros(SIZE), FLAT.precision / np.outer(SCALE, SCALE))[0]


def test_a_deviation_has_the_mean_that_degrees_of_freedom_give_it(bent):
    """With a flat prior n / σ² is chi-squared with n - k degrees of freedom."""
    exact = (np.log(ROWS) - digamma((ROWS - GROUPS) / 2) - np.log(2)) / 2
    found = mean_of(centred(quadratic_with(0.0), bent, FLAT))
    assert exact == pytest.approx(GROUPS / (2 * ROWS), rel=0.1)
    assert found[-1] == pytest.approx(exact, rel=0.1)
    np.testing.assert_allclose(found[:-1], 0, atol=1e-3)


def test_less_is_moved_with_noise_and_nothing_where_noise_is_larger_than_sampling(bent):
    moved = [mean_of(centred(quadratic_with(noise), bent, FLAT))[-1] for noise in (0.0, 0.25, 0.5)]
    assert moved[0] > moved[1] > moved[2] > 0
    loud = quadratic_with(1.5)
    assert centred(loud, bent, FLAT) is loud


@pytest.mark.parametrize("noise", [0.0, 2.0, 30.0])
def test_noise_on_means_shows_in_the_slope_of_a_deviation(bent, noise):
    """Residuals around means that are off add to the slope of log σ what they have of squared deviations."""
    off = bends(quadratic_with(noise), bent, FLAT)
    assert abs(off[-1]) / SCALE[-1] == pytest.approx(GROUPS * noise, rel=0.1, abs=1e-3)
    np.testing.assert_allclose(off[:-1] / SCALE[:-1], 0, atol=1e-3 * (1 + GROUPS * noise))
