"""References change nothing of a sum but how far one row alone ranges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from pymc_dp.step_methods.row_functions.bounds import (
    CHUNK,
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


def test_the_middle_of_rows_is_that_of_the_linear_program_written_out(rng):
    """All conditions at once: the log-likelihood of every row, less the mean, lies in an interval of its own."""
    tried = [rng.normal(size=(30, 7)) for _ in range(2)]
    rows = range(7)
    conditions, limits = [], []
    for block, table in enumerate(tried):
        for row in rows:
            for values in table:
                low = np.zeros(7 + 14 + 1)
                low[:7], low[7 + 7 * block + row] = values, 1.0  # f - c >= m
                high = -low
                high[-1] = -1.0  # f - c <= m + t
                conditions += [low, high]
                limits += [values[row], -values[row]]
    free = [(0, None)] * 7 + [(None, None)] * 14 + [(0, None)]
    whole = linprog(
        np.eye(22)[-1],
        A_ub=np.array(conditions),
        b_ub=limits,
        A_eq=(np.arange(22) < 7)[None].astype(float),
        b_eq=[1.0],
        bounds=free,
    )
    found = middle(tried)
    mean = [table[:, list(found)] @ np.array(list(found.values())) for table in tried]
    reached = max(np.ptp(table - centre[:, None], axis=0).max() for table, centre in zip(tried, mean, strict=True))
    assert reached == pytest.approx(whole.fun, rel=1e-5)
    assert sum(found.values()) == pytest.approx(1.0) and min(found.values()) > 0


def test_rows_of_no_finite_number_are_in_no_mean():
    tried = normal(POINTS, [np.array([0.0, 1.0, 0.5])])
    tried[3, 0] = -np.inf
    assert set(middle([tried])) <= {1, 2}
    assert middle([np.full((3, 2), np.nan)]) == {0: 0.5, 1: 0.5}


def test_numbers_of_rows_are_no_reference_where_how_many_they_are_is_private():
    tried = normal(POINTS, [np.array([0.0, 1.0])])
    found = fitting_range([tried], [(BETWEEN, [tried[:, :1]])], range_=50.0, neighbours="add_remove", n_rows=10)
    assert found.references.rows == () and found.charge == pytest.approx(50.0)


def test_what_rows_need_is_charged_where_more_is_needed_than_was_proved():
    tried = np.array([[0.0, 0.0], [-3.0, -1.0]])
    assert fitting_range([tried], [], range_=1.0, neighbours="replace", n_rows=2).charge == pytest.approx(6.0)


def test_public_columns_stay_in_their_rows():
    public = np.arange(5.0)

    def each(points, rows):
        return points[:, None] * rows[0] * rows[1]

    references = References(rows=((None, np.zeros(1)), (None, np.ones(1))))
    found = references.at(each, POINTS, [public, np.full(5, 9.0)])
    np.testing.assert_allclose(found, POINTS[:, None] * public / 2)
    assert not references.alike and BETWEEN.alike


def test_points_that_come_one_by_one_are_held_within_an_interval_about_a_fixed_one():
    anchor, limit = np.zeros(1), RatioLimit.of(-5.0, 5.0, len(X))
    bound = IntervalBound(limit=limit, anchor=anchor, neighbours="replace", references=BETWEEN)
    assert bound.charge == pytest.approx(20.0)
    exact = normal(POINTS, [X]).sum(axis=1) - normal(anchor, [X]).sum(axis=1)
    singles = np.array([bound.total(normal, POINTS[[k]], [X], np.ones(len(X)))[0] for k in range(len(POINTS))])
    np.testing.assert_allclose(singles, exact, atol=1e-6)


def test_a_row_that_floats_lose_moves_an_interval_by_no_more_than_is_charged():
    bound = IntervalBound(limit=RatioLimit.of(-1.0, 2.0, 10), anchor=np.zeros(1), neighbours="replace")
    rows = [np.array([0.0, np.inf, -np.inf, np.nan, 1e308, 1.0])]
    found = [bound.total(normal, POINTS, [rows[0][[place]]], np.ones(1)) for place in range(6)]
    assert max(np.ptp(one - other) for one in found for other in found) <= bound.charge == 6.0


def test_more_rows_than_are_held_at_once():
    rows, points = [np.tile(X, CHUNK // 500 // 20)], POINTS[:30]
    bound = RangeBound(limit=Limit.of(2000.0, "replace", len(rows[0])), references=BETWEEN)
    found = bound.total(normal, points, rows, np.ones(len(rows[0])))
    exact = normal(points, [X]).sum(axis=1) * (CHUNK // 500 // 20)
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=1e-8)
