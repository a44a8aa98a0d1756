"""Moments of posteriors whose gradients are known."""

import numpy as np
import pytest
from scipy import special

from pymc_dp.plan.posteriors import moments


def test_a_normal_of_any_scale_is_met():
    precision = np.array([[5e4, 900.0], [900.0, 20.0]])
    covariance = np.linalg.inv(precision)
    mean = np.array([1.0, -20.0])
    found = moments(lambda at: -precision @ (at - mean), mean + 0.5, np.random.default_rng(1))
    sd = np.sqrt(np.diag(covariance))
    assert (np.abs(found.mean - mean) / sd).max() < 0.2
    np.testing.assert_allclose(found.sd, sd, rtol=0.12)


def test_a_skewed_density_is_met():
    """The logarithm of a Gamma(3, 1)."""
    found = moments(lambda at: 3 - np.exp(at), np.array([0.5]), np.random.default_rng(2))
    assert abs(found.mean[0] - special.digamma(3)) < 0.1
    assert found.sd[0] == pytest.approx(np.sqrt(special.polygamma(1, 3)), rel=0.1)
