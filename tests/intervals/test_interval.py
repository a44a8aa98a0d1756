"""The four operations in exact rational arithmetic, and what infinities and NaN do."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dp.intervals.interval import (
    INFINITE,
    LARGEST,
    NAN,
    Interval,
    add,
    constant,
    divide,
    down,
    interval,
    multiply,
    settled,
    slope,
    unknown,
    up,
)

INF = math.inf
TINY = 5e-324
finite = st.floats(allow_nan=False, allow_infinity=False)
special = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, TINY, -TINY, 1e-200, -1e-200, 2.0**53, LARGEST, -LARGEST])
ends = st.lists(finite | special, min_size=2, max_size=2).map(sorted)
OPERATIONS = {
    "add": (add, lambda x, y: x + y),
    "subtract": (lambda x, y: x - y, lambda x, y: x - y),
    "multiply": (multiply, lambda x, y: x * y),
    "divide": (divide, lambda x, y: x / y),
}


def box(*pair, flags=0):
    return Interval.of(*pair, flags)


def holds(found, value):
    low = found.low == -INF or Fraction(float(found.low)) <= value
    return low and (found.high == INF or value <= Fraction(float(found.high)))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=300, deadline=None)
@given(first=ends, second=ends, shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_results_hold_every_exact_result(name, first, second, shares):
    operation, exact = OPERATIONS[name]
    with np.errstate(all="ignore"):
        found = operation(box(*first), box(*second))
    points = [
        [Fraction(low), Fraction(high), Fraction(low) + Fraction(share) * (Fraction(high) - Fraction(low))]
        for (low, high), share in zip((first, second), shares, strict=True)
    ]
    for x, y in itertools.product(*points):
        if name == "divide" and y == 0:
            assert found.flags & NAN
        else:
            assert holds(found, exact(x, y))
    assert found.low <= found.high


@settings(max_examples=300, deadline=None)
@given(x=(finite | special).filter(lambda x: abs(x) < LARGEST / 2))
def test_an_outward_step_reaches_the_next_number_and_not_much_more(x):
    assert x - 2 * np.spacing(abs(x)) <= down(x) <= np.nextafter(x, -INF)
    assert np.nextafter(x, INF) <= up(x) <= x + 2 * np.spacing(abs(x))


def test_overflow_is_finite_below_and_unbounded_above():
    found = Interval.point(1e200) * Interval.point(1e200)
    assert 1.79e308 < found.low <= LARGEST
    assert found.high == INF
    assert found.flags == 0


@pytest.mark.parametrize("pair", [(3.0, 4.0), (-7.0, 7.0), (0.0, 2.0**52), (0.25, -0.125)])
def test_sums_that_floats_hold_are_exact(pair):
    found = Interval.point(pair[0]) + Interval.point(pair[1])
    assert found.low == found.high == pair[0] + pair[1]


def test_zero_times_an_unknown_is_zero():
    found = Interval.point(0.0) * box(-INF, INF)
    assert (found.low, found.high, found.flags) == (0, 0, 0)


def test_zero_times_an_attained_infinity_may_be_undefined():
    found = Interval.point(0.0) * Interval.point(INF)
    assert found.flags & NAN


def test_opposite_attained_infinities_may_cancel():
    assert (Interval.point(INF) + Interval.point(-INF)).flags & NAN
    assert not (Interval.point(INF) + box(-INF, 0.0)).flags & NAN
    assert (Interval.point(INF) / Interval.point(INF)).flags & NAN


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_attained_infinity_stays_itself(sign):
    infinite, two = Interval.point(sign * INF), Interval.point(2.0)
    for found in (infinite + two, infinite * two, infinite / two, infinite - two, -(two - infinite)):
        assert found.low == found.high == sign * INF
        assert found.flags == INFINITE
    gone = two / infinite
    assert (gone.low, gone.high, gone.flags) == (0, 0, 0)


def test_products_keep_their_sign_even_if_they_underflow():
    small = box(1e-200, 1e-199)
    assert (small * small).low >= 0
    assert (small * small).high > 0
    assert (small * -small).high <= 0
    assert (small * -small).low < 0


def test_a_divisor_that_ends_at_zero_bounds_one_side():
    found = box(1.0, 2.0) / box(0.0, 4.0)
    assert 0.2499 < found.low <= 0.25
    assert found.high == INF
    assert found.flags == NAN + INFINITE
    assert (box(1.0, 2.0) / box(-1.0, 4.0)).low == -INF


def test_points_of_infinity_and_nan_are_flagged():
    found = Interval.point([1.0, INF, -INF, math.nan])
    np.testing.assert_array_equal(found.low, [1, INF, -INF, -INF])
    np.testing.assert_array_equal(found.high, [1, INF, -INF, INF])
    np.testing.assert_array_equal(found.flags, [0, INFINITE, INFINITE, NAN])


def test_whole_numbers_that_floats_do_not_hold_lie_inside():
    for found in (Interval.point(2**53 + 1), Interval.of(2**53 + 1, 2**53 + 1)):
        assert int(found.low) <= 2**53 + 1 <= int(found.high)
    assert Interval.point(2**53 - 1).low == Interval.point(2**53 - 1).high == 2**53 - 1


@pytest.mark.parametrize("pair", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan)])
def test_ends_out_of_order_are_refused(pair):
    with pytest.raises(ValueError, match="low <= high"):
        Interval.of(*pair)


def test_hull_broadcasts_and_joins_flags():
    found = box([0.0, 3.0], [1.0, 4.0]).hull(box(2.0, 2.5, flags=NAN))
    np.testing.assert_array_equal(found.low, [0, 2])
    np.testing.assert_array_equal(found.high, [2.5, 4])
    np.testing.assert_array_equal(found.flags, [NAN, NAN])


def test_indexing_and_broadcasting_keep_all_three_parts_together():
    found = box([[0.0], [1.0]], [[2.0], [3.0]], flags=[[NAN], [0]])
    assert found.broadcast_to((2, 4)).shape == (2, 4)
    assert found[1, 0].high == 3
    assert found[0].flags == [NAN]


def test_infinite_is_dropped_where_both_ends_are_finite():
    found = settled(np.array([0.0, -INF]), np.array([1.0, 0.0]), np.array([3, 2], dtype=np.uint8))
    np.testing.assert_array_equal(found.flags, [NAN, INFINITE])


def test_slopes_forget_that_infinity_is_attained():
    assert slope(Interval.point(INF), (2,)).flags.tolist() == [0, 0]


def test_scalars_become_arrays():
    found = interval(1.0, 2.0, np.uint8(0))
    assert all(isinstance(part, np.ndarray) for part in (found.low, found.high, found.flags))
    assert unknown((2, 3)).shape == constant(1.0, (2, 3)).shape == (2, 3)
    assert np.all(unknown((2,)).flags == NAN)
