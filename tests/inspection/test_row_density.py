"""Log-densities as graphs that treat each row by itself."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError
from pytensor.graph.traversal import applys_between
from pytensor.tensor.blockwise import Blockwise

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.row_density import density, guarded, unchecked, vectorized

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


def test_without_checks_nothing_raises():
    scale = pt.scalar("scale")
    checked = density(pm.Normal.dist(0.0, scale, size=2), pt.constant(np.zeros(2)))
    with pytest.raises(ParameterValueError):
        checked.eval({scale: -1.0}, **FAST)
    assert np.isnan(unchecked(checked).eval({scale: -1.0}, **FAST)).all()


@pytest.mark.parametrize("core", [1, 2])
def test_elements_that_indices_pick_are_picked_by_one_operation(core, rng):
    x, one = pt.tensor("x", shape=(None,) * core), pt.iscalar("one")
    arrays, places = pt.tensor("arrays", shape=(None, 1, *(None,) * core)), pt.imatrix("places")
    found = vectorized(x[one], {x: arrays, one: places})
    assert not any(isinstance(node.op, Blockwise) for node in applys_between([arrays, places], [found]))
    values, at = rng.normal(size=(5, 1, 3, *(4,) * (core - 1))), rng.integers(-3, 3, (5, 7)).astype("int32")
    given = plain_function([arrays, places], found)(values, at)
    np.testing.assert_array_equal(given, [one[0][own] for one, own in zip(values, at, strict=True)])
