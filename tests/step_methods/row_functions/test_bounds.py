"""References change nothing of a sum but how far one row alone ranges."""

from __future__ import annotations

import numpy as np
import pytest

from pymc_dp.step_methods.row_functions.bounds import (
    IntervalBound,
    RangeBound,
    References,
    fitting_range,
    middle,
    tried_range,
)
from pymc_dp.step_methods.row_functions.limits import Limit, RatioLimit

POINTS = np.linspace(-10, 10, 41)
X = np.random.default_rng(0).uniform(0, 1, 500)


def normal(points, rows):
    """Log-likelihood of a normal with unit variance, up to a constant."""
    return -((rows[0][None, :] - points[:, None]) ** 2) / 2


BETWEEN = References(rows=((np.zeros(1),), (np.ones(1),)))


@pytest.mark.parametrize("references", [References(), BETWEEN])
def test_a_sum_is_that_of_the_rows(references):
    bound = RangeBound(limit=Limit.of(2000.0, "replace", len(X)), references=references)
    found = bound.total(normal, POINTS, [X], np.ones(len(X)))
    exact = normal(POINTS, [X]).sum(axis=1)
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=1e-9)


def test_a_mean_of_extreme_rows_halves_what_a_normal_is_charged():
    tried = normal(POINTS, [np.array([0.0, 1.0, 0.5, 0.2])])
    two_rows = 20.0  # (x - x') (θ - θ'), at the ends
    alone = fitting_range([tried], [], range_=two_rows, neighbours="replace", n_rows=10)
    beside = fitting_range(
        [tried], [(BETWEEN, [BETWEEN.at(normal, POINTS, [])])], range_=two_rows, neighbours="replace", n_rows=10
    )
    assert alone.charge == pytest.approx(2 * tried_range([tried])) and alone.charge > 4 * two_rows
    assert beside.charge == pytest.approx(two_rows) and beside.charge >= two_rows
    assert sum(weight * [0.0, 1.0, 0.5, 0.2][row] for row, weight in middle([tried]).items()) == pytest.approx(0.5)


def test_public_columns_stay_in_their_rows():
    public = np.arange(5.0)

    def each(points, rows):
        return points[:, None] * rows[0] * rows[1]

    references = References(rows=((None, np.zeros(1)), (None, np.ones(1))))
    found = references.at(each, POINTS, [public, np.full(5, 9.0)])
    np.testing.assert_allclose(found, POINTS[:, None] * public / 2)
    assert not references.alike and BETWEEN.alike


def test_a_row_that_floats_lose_moves_an_interval_by_no_more_than_is_charged():
    bound = IntervalBound(limit=RatioLimit.of(-1.0, 2.0, 10), anchor=np.zeros(1), neighbours="replace")
    rows = [np.array([0.0, np.inf, -np.inf, np.nan, 1e308, 1.0])]
    found = [bound.total(normal, POINTS, [rows[0][[place]]], np.ones(1)) for place in range(6)]
    assert max(np.ptp(one - other) for one in found for other in found) <= bound.charge == 6.0
