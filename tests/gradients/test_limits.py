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
