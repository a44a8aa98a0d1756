"""The likelihood of exact sums, of groups of rows with vectors and matrices among their parameters."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.likelihood import table_likelihoods

GROUPS = 3


@pytest.fixture
def of_rows(rng):
    """Rows of an MvNormal in groups of their own covariance, and the likelihood of their sums."""
    group, rows = np.resize(np.arange(GROUPS), 60), rng.normal(size=(60, 2)).clip(-3, 3)
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", shape=2), pm.Normal("spread", shape=GROUPS)
        index = pm.Data("group", group)
        pm.MvNormal("y", mean, cov=spread[index][:, None, None] * np.eye(2), observed=rows)
    prior, (table,) = table_likelihoods(inspect(model, dp.Domain(bounds={"y": (-4, 4)})).sums)
    sums, sizes = pt.matrix("sums", shape=(GROUPS, 5)), pt.vector("sizes", shape=(GROUPS,))
    (logp,) = prior.replace_rvs_by_values([table.logp(sums, sizes)])
    inputs = [*prior.value_vars, sums, sizes]
    exact = table.read()
    function = plain_function(inputs, logp)
    return [rows[group == at] for at in range(GROUPS)], lambda *at: function(*at, exact.sums, exact.sizes)


@pytest.mark.usefixtures("paid")
def test_a_matrix_without_a_root_is_impossible_in_its_own_group(of_rows):
    groups, evaluate = of_rows
    mean, spread = np.array([0.2, -0.1]), np.array([0.7, 1.0, 1.6])
    logp = evaluate(mean, spread)
    expected = [
        stats.multivariate_normal(mean, s * np.eye(2)).logpdf(rows).sum()
        for rows, s in zip(groups, spread, strict=True)
    ]
    constant = np.array(expected) - logp
    other = evaluate(mean + 0.3, spread * [1.0, -1.0, 1.3])
    assert np.isfinite(other).tolist() == [True, False, True]
    moved = stats.multivariate_normal(mean + 0.3, 0.7 * np.eye(2)).logpdf(groups[0]).sum()
    assert other[0] + constant[0] == pytest.approx(moved)
