"""Triangles that PyMC fills from a vector: the same matrix, without an array of indices that might hold rows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.made_by_pymc import parameters_without_arrays
from pymc_dp.inspection.rows import array_leaves


def parameters_of(matrix):
    rv = pm.MvNormal.dist(pt.zeros(matrix.type.shape[0]), chol=matrix, shape=(4, matrix.type.shape[0]))
    return rv, tuple(rv.owner.op.dist_params(rv.owner))


def packed_of(size):
    """The vector of a Cholesky factor, and a number for each of its entries."""
    return pm.LKJCholeskyCov.dist(n=size, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=size), compute_corr=False)


def value_of(found, packed):
    values = pt.constant(np.arange(1.0, packed.type.shape[0] + 1))
    return clone_replace([found], {packed: values}, rebuild_strict=False)[0].eval(mode="FAST_COMPILE")


@pytest.mark.parametrize("size", [2, 4])
def test_filled_matrices_are_equal_and_hold_no_array(size):
    packed = packed_of(size)
    rv, given = parameters_of(pm.math.expand_packed_triangular(size, packed))
    found = parameters_without_arrays(rv, given)
    assert list(array_leaves(given[1:], [packed]))
    assert not list(array_leaves(found[1:], [packed]))
    np.testing.assert_array_equal(value_of(given[1], packed), value_of(found[1], packed))
    assert likelihood_of(rv)[1] == found


def test_a_variable_whose_prior_has_a_triangle_stays_a_variable_of_the_model():
    """Its clone would be a draw that nothing is known of, and the model was refused for it."""
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0), compute_corr=True)
        ab = pm.MvNormal("ab", mu=pt.stack([0.0, 1.0]), chol=chol, shape=(3, 2))
        cafe, x = pm.Data("cafe", np.array([0, 1, 2, 0])), pm.Data("x", np.array([0.0, 1.0, 1.0, 0.0]))
        pm.Normal("y", ab[cafe, 0] + ab[cafe, 1] * x, 1.0, observed=np.zeros(4))
    found = inspect(model, Domain(bounds={"y": (-3, 3), "x": (0, 1)}))
    assert found.rows.problems == () and found.sums.problems == ()
    (term,) = found.rows.terms
    assert model["ab"] not in set(ancestors([term.logp]))
