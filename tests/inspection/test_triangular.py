"""Triangles that PyMC fills from a vector: the same matrix, without an array of indices that might hold rows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.rows import array_leaves
from pymc_dp.inspection.triangular import without_indices


def parameters_of(matrix):
    rv = pm.MvNormal.dist(pt.zeros(matrix.type.shape[0]), chol=matrix, shape=(4, matrix.type.shape[0]))
    return rv, tuple(rv.owner.op.dist_params(rv.owner))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_filled_matrices_are_equal_and_hold_no_array(size, rng):
    packed = pt.vector("packed", shape=(size * (size + 1) // 2,))
    rv, given = parameters_of(pm.math.expand_packed_triangular(size, packed))
    found = without_indices(rv, given)
    assert not list(array_leaves(found, single=True)) or size == 1
    values = rng.normal(size=packed.type.shape[0])
    for one, other in zip(given, found, strict=True):
        results = [item.eval({packed: values}, on_unused_input="ignore", mode="FAST_COMPILE") for item in (one, other)]
        np.testing.assert_array_equal(*results)
    assert likelihood_of(rv)[1] == found


def test_what_was_not_made_by_pymc_is_left_alone():
    packed, rows = pt.vector("packed", shape=(3,)), np.array([0, 1, 1])
    own = pt.set_subtensor(pt.zeros((2, 2))[rows, rows], packed)
    own.tag.lower_triangular = False
    rv, given = parameters_of(own)
    assert any(np.shape(leaf.data) == (3,) for leaf in array_leaves(without_indices(rv, given)))


def test_indices_are_replaced_unread():
    """Whatever they hold, the same comes out."""
    packed = pt.vector("packed", shape=(3,))
    found = []
    for rows in ([0, 1, 1], [0, 0, 0]):
        own = pt.set_subtensor(pt.zeros((2, 2))[np.array(rows), np.array([0, 0, 1])], packed)
        own.tag.lower_triangular = True
        found.append(without_indices(*parameters_of(own))[1].eval({packed: np.arange(3.0)}, mode="FAST_COMPILE"))
    np.testing.assert_array_equal(*found)
