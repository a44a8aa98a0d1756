"""Logarithms that stay numbers where their formula in floats does not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special

from pymc_dp.step_methods.numpy_functions import compiled

X = pt.vector("x")
PLACES = np.array([-300.0, -40.0, -37.7, -8.5, -1.0, 0.0, 0.3, 1.0, 1.5, 8.5, 30.0, 40.0, 300.0])


def phi(x):
    return pm.math.invprobit(x)


FORMS = {
    "log Φ": (pt.log(phi(X)), special.log_ndtr),
    "log(1 - Φ)": (pt.log1p(-phi(X)), lambda x: special.log_ndtr(-x)),
    "log(1 - Φ), by a difference": (pt.log(1 - phi(X)), lambda x: special.log_ndtr(-x)),
    "log(1 - sigmoid)": (pt.log1p(-pt.sigmoid(X)), lambda x: special.log_expit(-x)),
    "log(1 - sigmoid * 1.0)": (pt.log1p(-(pt.sigmoid(X) * 1.0)), lambda x: special.log_expit(-x)),
    "log(1 + erf)": (pt.log1p(pt.erf(X)), lambda x: np.log(2) + special.log_ndtr(np.sqrt(2) * x)),
    "log(1 - erf)": (pt.log1p(-pt.erf(X)), lambda x: np.log(2) + special.log_ndtr(-np.sqrt(2) * x)),
    "log(3 erfc)": (pt.log(3.0 * pt.erfc(X)), lambda x: np.log(6) + special.log_ndtr(-np.sqrt(2) * x)),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_logarithm_is_a_number_wherever_it_is_one(name):
    graph, exact = FORMS[name]
    np.testing.assert_allclose(compiled([X], [graph])(PLACES)[0], exact(PLACES), rtol=1e-6, atol=1e-15)
