"""Densities of one's own that state their statistics: what a row adds, how far rows are apart, and the posterior."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.families.stated import sums_of
from pymc_dp.inspection.stated import statement_of
from pymc_dp.kernel.shapes import GRID
from tests.families.vectors import WILD, plug_in_gaps

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def normal_logp(value, mean):
    return -0.5 * ((value - mean) ** 2).sum(axis=-1) - np.log(2 * np.pi)


def normal_moments(mean):
    """Of x + y and (x - y)² for a pair with one mean and variances of 1; what is beyond the bounds is rare."""
    return [2 * mean[0], 2.0], [[2.0, 0.0], [0.0, 8.0]]


def pairs_model(rows, bounds=((-20.0, 20.0), (0.0, 60.0)), **options):
    """Pairs of normal numbers with one mean: their sum says all about it, and the other statistic nothing."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 2) * pt.ones(2)
        y = pm.CustomDist("y", mean, logp=normal_logp, signature="(k)->(k)", observed=pm.Data("rows", rows))
        dp.models.with_statistics(
            y, lambda row: [row[0] + row[1], (row[0] - row[1]) ** 2], bounds=bounds, moments=normal_moments, **options
        )
    return model


def stated(width, statistics, count, bounds, values=None):
    """Sums of some statistics of rows of this width."""
    with pm.Model():
        y = pm.CustomDist("y", np.zeros(width), logp=lambda value, p: 0.0, signature="(k)->(k)", shape=(3, width))
        zero = np.zeros(count)
        dp.models.with_statistics(
            y, statistics, bounds=bounds, values=values, moments=lambda p: (zero + p[0], np.outer(zero, zero) + p[0])
        )
    return sums_of(statement_of(y))


def test_whatever_a_row_holds_it_adds_no_more_than_the_bounds():
    statistic = stated(2, lambda row: [pt.log(row[0]), row[0] / row[1], pt.exp(row[1])], 3, [(-1, 1), (0, 3), (0, 1)])
    found = statistic.reading().whole([np.array(list(product(WILD, repeat=2)))])
    assert (np.abs(found) <= GRID).all()
    nowhere = statistic.reading().whole([np.full((1, 2), np.nan)])
    assert nowhere.tolist() == [[0, 0, 0]]  # the middle of the bounds


def test_too_many_rows_to_pair_are_bounded_by_the_range_of_each_statistic():
    """12 entries of two values: x0 x1 as 0 or 1 is flipped by x0 only where x1 is 1, so that no shortcut holds."""
    statistic = stated(12, lambda row: [row[0] * row[1], row[2]], 2, (0, 4), (0, 1))
    assert len(statistic.table) == 2**12
    assert (statistic.spread, statistic.spread_squared) == (2 * GRID // 4 * 2, 2 * (GRID // 2) ** 2)
    more = stated(17, lambda row: [row[0] * row[1], row[2]], 2, (0, 4), (0, 1))
    assert more.table is None
    assert (more.spread, more.spread_squared) == (4 * GRID, 8 * GRID**2)


def to_a_whole_power(row):
    return [row[0].astype("int64") ** row[1].astype("int64")]


def test_a_row_of_which_nothing_can_be_computed_adds_nothing():
    """NumPy raises for whole numbers to a negative power: the release must not."""
    statistic = stated(2, to_a_whole_power, 1, (0.0, 10.0))
    rows = np.array([[2.0, 3.0], [2.0, -1.0], [np.nan, np.inf]])
    assert statistic.reading().whole([rows])[:, 0].tolist() == [round(0.6 * GRID), 0, 0]


def log_likelihood(sums, size, mean):
    """Σ (x + y) and Σ (x - y)² hold x² + y² up to (x + y)²: this is the part of the density with the mean."""
    return mean[0] * sums[0] - size * mean[0] ** 2


def test_plug_in_is_what_is_stated_or_normal_sums(rng):
    rows = rng.normal(0.7, 1, (60, 2))
    points = [{"mean": at} for at in (-1.0, 0.3, 0.7, 2.0)]
    assert np.abs(plug_in_gaps(pairs_model(rows, log_likelihood=log_likelihood), dp.Domain(), points)).max() < 1e-4
    # Normal with these moments, the sum of x + y has the same likelihood of the mean; the other sum says nothing.
    assert np.abs(plug_in_gaps(pairs_model(rows), dp.Domain(), points)).max() < 1e-4
