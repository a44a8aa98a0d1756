"""Log-densities as graphs that treat each row by itself."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError

from pymc_dp.inspection.row_density import density, guarded

FAST = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}


def test_a_category_has_the_density_of_pymc():
    p, values = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]), np.array([2, 0])
    rv = pm.Categorical.dist(p=p)
    np.testing.assert_allclose(density(rv, pt.constant(values)).eval(**FAST), np.log([0.3, 1.0]))
    assert np.isneginf(density(rv, pt.constant(np.array([3, 1]))).eval(**FAST)).all()
    assert np.isneginf(density(rv, pt.constant(np.array([-1, -9]))).eval(**FAST)).all()
    with pytest.raises(ParameterValueError):
        density(pm.Categorical.dist(p=pytensor.shared(2 * p)), pt.constant(values)).eval(**FAST)


def test_a_check_that_data_enter_is_left_out_and_any_other_kept():
    scale, rows = pt.scalar("scale"), pytensor.shared(np.array([1.0, -1.0, 2.0]))
    values = pt.constant(np.zeros(3))
    common = guarded(density(pm.Normal.dist(rows, scale), values))
    assert np.isneginf(common.eval({scale: -1.0}, **FAST)).all()
    assert np.isfinite(common.eval({scale: 1.0}, **FAST)).all()
    own = guarded(density(pm.Normal.dist(0.0, scale * rows), values))
    assert np.isfinite(own.eval({scale: 1.0}, **FAST)).tolist() == [True, False, True]
