"""Squared lengths of normal vectors in a ball, which their draws are scaled to."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.draws.kernels import squared_length

ALPHA = 1e-3


@pytest.mark.parametrize(
    ("degrees", "most"), [(1, 0.5), (1, 9.0), (2, 1e-6), (2, 5.0), (9, 1.0), (9, 6.9), (9, 30.0), (80, 60.0)]
)
def test_squared_lengths_are_truncated_chi_squared(degrees, most, rng):
    found = np.array([squared_length(rng, float(degrees), most) for _ in range(4000)])
    assert (found <= most).all()
    law = stats.chi2(degrees)
    assert stats.kstest(found, lambda x: law.cdf(x) / law.cdf(most)).pvalue > ALPHA
