"""The four operations in exact rational arithmetic, and what infinities and NaN do."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dp.intervals.interval import (
    LARGEST,
    NAN,
    Interval,
    add,
    divide,
    down,
    multiply,
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


def test_opposite_attained_infinities_may_cancel():
    assert (Interval.point(INF) + Interval.point(-INF)).flags & NAN
    assert not (Interval.point(INF) + box(-INF, 0.0)).flags & NAN
    assert (Interval.point(INF) / Interval.point(INF)).flags & NAN
