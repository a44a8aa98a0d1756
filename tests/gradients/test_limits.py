"""Coordinates and limits of sums that follow from a released curvature."""

import numpy as np
import pytest

from pymc_dp.gradients.schedule import Limits


@pytest.mark.parametrize("seed", range(20))
def test_limits_of_a_nearly_singular_curvature_are_positive(seed):
    # Rounding left the trace of some of these below 0: a release that was paid for ended in an error.
    rng = np.random.default_rng(seed)
    column = rng.normal(size=(3, 1)) * 10.0 ** rng.uniform(-12, 8, size=(3, 1))
    curvature = column @ column.T * (1 - 1e-13 * np.eye(3))
    limits = Limits(scale=np.ones(3), clip_norm=1.0, clip_curvature=1.0).whitened(curvature, 10)
    assert limits.clip_norm > 0 and limits.clip_curvature > 0


def test_the_edge_of_the_noise_is_that_of_each_block():
    limits = Limits(scale=np.ones(5), clip_norm=1.0, clip_curvature=1.0, blocks=(np.arange(4), np.array([4])))
    np.testing.assert_allclose(limits.floor(3.0), np.diag([6.0, 6, 6, 6, 3]))
    plain = Limits(scale=np.ones(4), clip_norm=1.0, clip_curvature=1.0)
    np.testing.assert_allclose(plain.floor(3.0), np.diag([6.0] * 4))
    kept = plain.whitened(np.eye(4), 10)
    assert limits.whitened(np.eye(5), 10).blocks == limits.blocks and kept.blocks == ()


def test_what_is_below_the_noise_is_not_blown_up():
    limits = Limits(scale=np.ones(2), clip_norm=1.0, clip_curvature=1.0)
    curvature = np.diag([100.0, 1e-6])
    basis = np.diag(limits.whitened(curvature, 100, curvature + 4 * np.eye(2)).basis)
    np.testing.assert_allclose(basis, [np.sqrt(100 / 104), 5.0], rtol=1e-5)
