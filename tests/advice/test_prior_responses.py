"""What a prior expects of responses beside their bounds, by closed forms."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

import pymc_dp as dp
from pymc_dp.advice.prior_responses import expected_counts, expected_within
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import lay_out
from pymc_dp.release.statistics import Statistics

LEVELS = 50


def table_of(mean, *, x=None):
    with pm.Model() as model:
        b, group = pm.Normal("b", 1, mean, shape=LEVELS), pm.Data("group", np.arange(100) % LEVELS)
        at = b[group] if x is None else b[group] * pm.Data("x", np.zeros(100))
        pm.Normal("y", at, 0.5 * pm.LogNormal("sigma", 0, 0.01), observed=np.zeros(100))
    domain = dp.Domain(bounds={"y": (-1, 3)} | ({} if x is None else {"x": x}))
    (table,) = lay_out(inspect(model, domain).sums, Statistics()).tables
    return table


@pytest.mark.parametrize("mean", [0.5, 10.0])
def test_means_of_groups_are_those_of_the_prior(mean):
    found = expected_within(table_of(mean))
    assert found == pytest.approx(2 * norm.cdf(2 / np.hypot(mean, 0.5)) - 1, abs=0.02)


def test_slopes_are_met_by_predictors_within_their_bounds():
    """y = b x with b ~ N(1, 10) and x about 3."""
    found = expected_within(table_of(10.0, x=(2.99, 3.01)))
    share = norm.cdf(3, 3, np.hypot(30, 0.5)) - norm.cdf(-1, 3, np.hypot(30, 0.5))
    assert found == pytest.approx(share, abs=0.02)


def test_what_cannot_be_drawn_is_not_expected_within_any_bounds():
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("mean"), pm.HalfNormal("sigma"), observed=np.zeros(10))
    (table,) = lay_out(inspect(model, dp.Domain(bounds={"y": (-1, 3)})).sums, Statistics()).tables
    found = expected_within(table)
    assert found == 0


def counts_of(mean, spread, distribution=pm.Poisson):
    with pm.Model() as model:
        a = pm.Normal("a", mean, spread, shape=LEVELS)
        rate = pm.math.exp(a[pm.Data("group", np.arange(100) % LEVELS)])
        given = {"mu": rate} if distribution is pm.Poisson else {"mu": rate, "sigma": 1.0}
        distribution("y", **given, observed=np.ones(100))
    bounds = (0, 120) if distribution is pm.Poisson else (0.01, 120)
    (table,) = lay_out(inspect(model, dp.Domain(bounds={"y": bounds})).sums, Statistics()).tables
    return table


@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_counts_spread_as_the_prior_says_not_over_their_bounds(mean):
    found = expected_counts(counts_of(mean, 0.05))
    assert found == pytest.approx((np.exp(mean), np.exp(mean / 2)), rel=0.05)


def test_cells_out_of_bounds_by_the_prior_say_nothing():
    near, far = expected_counts(counts_of(3.0, 1.5)), expected_counts(counts_of(3.0, 50.0))
    assert near is not None and 5 < near[0] < 60 and far is None


def test_only_counts_are_looked_at():
    assert expected_counts(counts_of(0.0, 0.1, pm.Gamma)) is None
