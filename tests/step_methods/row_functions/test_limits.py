"""What is charged for a row is enforced on the numbers that are summed, whatever floats they are."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pymc_dp.step_methods.row_functions.limits import Limit

HOSTILE = [0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e308, -1e308, 1.7e308, np.inf, -np.inf, np.nan, 37.7, -710.0, 1e16]
NUMBERS = st.one_of(st.sampled_from(HOSTILE), st.floats(width=64))
WIDTHS = st.sampled_from([1e-9, 0.3, 1.0, 71.32, 1e5, 1e30])


def summed(limit: Limit, rows: np.ndarray, owner: np.ndarray | None = None, elements: int = 1) -> np.ndarray:
    """Sums of rows, (n_points, n_rows), in units."""
    total = np.zeros((len(rows), elements), dtype=np.int64)
    limit.add(total, rows, np.ones(rows.shape[1], dtype=np.int64), owner)
    return total


@settings(deadline=None)  # the first call compiles
@given(arrays(np.float64, (5, 2), elements=NUMBERS), WIDTHS, st.integers(1, 2**31))
def test_two_rows_never_differ_by_more_than_is_charged(rows, range_, n_rows):
    limit = Limit.of(range_, "replace", n_rows)
    first, second = (summed(limit, rows[:, [place]])[:, 0] for place in (0, 1))
    assert int(np.ptp(first - second)) * limit.unit <= limit.charge


@pytest.mark.slow
@settings(deadline=None)  # the first call compiles
@given(arrays(np.float64, (5, 1), elements=NUMBERS), WIDTHS, st.integers(1, 2**31))
def test_a_row_that_comes_or_goes_moves_the_sum_by_no_more_than_is_charged(rows, range_, n_rows):
    limit = Limit.of(range_, "add_remove", n_rows)
    assert int(np.ptp(summed(limit, rows)[:, 0])) * limit.unit <= limit.charge


@settings(deadline=None)  # the first call compiles
@given(arrays(np.float64, (4, 2), elements=NUMBERS), WIDTHS, WIDTHS, st.sampled_from(["replace", "add_remove"]))
def test_sizes_are_enforced_where_they_are_charged(rows, range_, size, neighbours):
    limit = Limit.of(range_, neighbours, 100, size=size)
    first, second = (summed(limit, rows[:, [place]])[:, 0] for place in (0, 1))
    moved = first - second if neighbours == "replace" else first
    assert abs(moved).max() * limit.unit <= limit.size_charge
    assert int(np.ptp(moved)) * limit.unit <= limit.charge


@pytest.mark.parametrize("range_", [1e-290, 1e-9, 1.0, 71.32, 1e300])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_grid_is_in_the_charge_and_next_to_nothing(range_, neighbours):
    limit = Limit.of(range_, neighbours, 10_000_000)
    assert range_ <= limit.charge <= range_ * (1 + 2.0**-26)


def test_more_rows_than_were_declared_do_not_wrap():
    """Their number is private: no error may say so."""
    limit = Limit.of(1.0, "add_remove", 10)
    total = np.zeros((2, 1), dtype=np.int64)
    limit.add(total, np.array([[0.0], [-1.0]]), np.array([2**32]))
    assert limit.values(total)[:, 0].tolist() == [0.0, -(2.0**32)]


def test_minus_infinity_is_the_low_end_of_what_is_charged_and_nan_counts_for_nothing():
    limit = Limit.of(10.0, "replace", 8)
    held = limit.values(summed(limit, np.array([[-np.inf], [0.0]])))[:, 0]
    assert held.tolist() == [-5.0, 0.0]
    for lost in ([np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]):
        assert not summed(limit, np.array([lost]).T).any()


def test_rows_count_for_their_owners_alone():
    limit = Limit.of(10.0, "replace", 8)
    total = summed(limit, np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([2, 0]), 3)
    assert (limit.unit * total).tolist() == [[0.0, 0.0, 0.0], [-1.0, 0.0, -1.0]]


def test_the_order_of_rows_changes_no_bit_and_one_row_of_a_million_moves_no_more_than_its_own():
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.uniform(0, 1, (1, 1_000_000)), np.zeros((1, 1_000_000))])
    limit = Limit.of(2.0, "replace", rows.shape[1])
    total = summed(limit, rows)
    assert np.array_equal(total, summed(limit, rows[:, ::-1]))
    for new in combinations_with_replacement([0.0, 1.0, 3 * 2.0**-52, np.nan], 2):
        other = rows.copy()
        other[:, 17] = new
        assert np.ptp(summed(limit, other) - total) * limit.unit <= limit.charge
