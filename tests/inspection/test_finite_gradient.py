"""A branch that is not taken takes nothing away from the derivative of the one that is."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.pytensorf import rewrite_pregrad
from scipy import stats

from pymc_dp.inspection.cumulative import finite_branches
from pymc_dp.inspection.interpreted import plain_function

AT = np.array([-40.0, -15.0, -9.0, -2.0, 0.0, 3.0])


def slopes(change):
    """Derivatives of the logarithm of the normal distribution function, as PyMC takes them."""
    z = pt.dvector("z")
    total = rewrite_pregrad(change(pm.logcdf(pm.Normal.dist(0.0, 1.0), z)).sum())
    with np.errstate(all="ignore"):
        return plain_function([z], pytensor.grad(total, z))(AT)


def test_derivatives_far_in_a_tail_are_those_of_the_branch_that_is_taken():
    expected = np.exp(stats.norm.logpdf(AT) - stats.norm.logcdf(AT))
    np.testing.assert_allclose(slopes(finite_branches), expected, rtol=1e-6)
