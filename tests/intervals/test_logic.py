"""Switches, three-valued logic, kinks and jumps."""

import math

import numpy as np
import pytensor.scalar.basic as basic
import pytensor.scalar.math as special
import pytest

from pymc_dp.intervals.rules import NAN, RULES, Interval

INF = math.inf


@pytest.mark.parametrize(
    ("condition", "value"), [((1, 1), (2, 3)), ((-4, -1), (2, 3)), ((0, 0), (5, 6)), ((0, 1), (2, 6))]
)
def test_a_switch_takes_its_decided_branch_and_forgets_the_other(condition, value):
    first, second = Interval.of(2.0, 3.0), Interval.of(5.0, 6.0, NAN)
    taken, other = (first, second) if value == (2, 3) else (second, first)
    found = RULES[basic.Switch].value(Interval.of(*condition), first, second)
    assert (found.low, found.high) == value
    assert found.flags == (NAN if condition == (0, 1) else taken.flags)
    partials = RULES[basic.Switch].partials((Interval.of(*condition), taken, other), found)
    assert all(np.shape(partial.low) == () for partial in partials)


def test_a_condition_that_may_be_nan_is_undecided():
    found = RULES[basic.Switch].value(Interval.of(1.0, 1.0, NAN), Interval.point(2.0), Interval.point(5.0))
    assert (found.low, found.high) == (2, 5)
    compared = RULES[basic.GT].value(Interval.of(1.0, 1.0, NAN), Interval.point(0.0))
    assert (compared.low, compared.high, compared.flags) == (0, 1, 0)


@pytest.mark.parametrize("op", [basic.IsNan, basic.IsInf])
def test_what_has_no_known_bound_may_overflow_and_then_be_no_number(op):
    """x * x is infinite for x = 1e200, and x * x - 2 * x * x not a number, though x is."""
    for ends in ((-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0)):
        found = RULES[op].value(Interval.of(*ends))
        assert (found.low, found.high, found.flags) == (0, 1, 0)
    bounded = RULES[op].value(Interval.of(-1e300, 1e300))
    assert (bounded.low, bounded.high) == (0, 0)


def test_slopes_of_a_switch_are_known_only_where_it_is_decided():
    inputs = tuple(Interval.of(low, high) for low, high in (([1.0, 0.0, 0.0], [1.0, 0.0, 1.0]), (2.0, 3.0), (5.0, 6.0)))
    inputs = tuple(x.broadcast_to((3,)) for x in inputs)
    condition, first, second = RULES[basic.Switch].partials(inputs, RULES[basic.Switch].value(*inputs))
    for partial, ends in ((condition, (0, 0)), (first, (1, 0)), (second, (0, 1))):
        np.testing.assert_array_equal(partial.low[:2], ends)
        np.testing.assert_array_equal(partial.high[:2], ends)
        np.testing.assert_array_equal(partial.flags, [0, 0, NAN])


@pytest.mark.parametrize(
    ("op", "inputs", "slopes"),
    [
        (basic.Abs, [(-1, 2)], [(-1, 1)]),
        (basic.Abs, [(1, 2)], [(1, 1)]),
        (basic.Abs, [(-2, -1)], [(-1, -1)]),
        (basic.Maximum, [(0, 2), (1, 3)], [(0, 1), (0, 1)]),
        (basic.Maximum, [(3, 4), (1, 3)], [(1, 1), (0, 0)]),
        (basic.Minimum, [(3, 4), (1, 3)], [(0, 0), (1, 1)]),
        (basic.Clip, [(0, 2), (1, 1), (5, 5)], [(0, 1), (0, 1), (0, 0)]),
        (basic.Clip, [(2, 3), (1, 1), (5, 5)], [(1, 1), (0, 0), (0, 0)]),
        (basic.Clip, [(6, 7), (1, 1), (5, 5)], [(0, 0), (0, 0), (1, 1)]),
        (basic.Log, [(0, 4)], [(0.25, INF)]),
        (basic.Sqrt, [(0, 4)], [(0.25, INF)]),
        (special.Sigmoid, [(-1, 2)], [(0.10499358540350652, 0.25)]),
        (special.GammaLn, [(1, 2)], [(-0.5772156649015329, 0.42278433509846714)]),
        (special.BetaInc, [(1, 2), (1, 2), (0.5, 0.5)], [(-INF, 0), (0, INF), None]),
        (special.GammaInc, [(1, 2), (0.5, 0.5)], [(-INF, 0), None]),
        (basic.Sign, [(1, 2)], [(0, 0)]),
        (basic.GE, [(3, 4), (1, 2)], [(0, 0), (0, 0)]),
    ],
)
def test_slopes_of_kinks_and_known_functions(op, inputs, slopes):
    boxes = tuple(Interval.of(*ends) for ends in inputs)
    found = RULES[op].partials(boxes, RULES[op].value(*boxes))
    for partial, ends in zip(found, slopes, strict=True):
        assert not partial.flags & NAN
        if ends is not None:
            np.testing.assert_allclose([partial.low, partial.high], ends, rtol=1e-11)


@pytest.mark.parametrize("op", [basic.Sign, basic.Floor, basic.Ceil, basic.Trunc, basic.RoundHalfToEven])
def test_slopes_across_a_jump_are_unknown(op):
    x = Interval.of(-1.75, 0.75)
    (partial,) = RULES[op].partials((x,), RULES[op].value(x))
    assert (partial.low, partial.high, partial.flags) == (-INF, INF, NAN)


def test_logic_is_three_valued():
    no, yes, either = Interval.point(0.0), Interval.point(1.0), Interval.of(0.0, 1.0)
    ends = [(found.low, found.high) for found in (
        RULES[basic.AND].value(no, either), RULES[basic.AND].value(yes, either), RULES[basic.OR].value(yes, either),
        RULES[basic.OR].value(no, either), RULES[basic.XOR].value(yes, either), RULES[basic.Invert].value(either),
    )]  # fmt: skip
    assert ends == [(0, 0), (0, 1), (1, 1), (0, 1), (0, 1), (0, 1)]


@pytest.mark.parametrize("op", [basic.AND, basic.OR, basic.XOR])
def test_bits_of_integers_are_not_followed(op):
    found = RULES[op].value(Interval.point(2.0), Interval.point(1.0))
    assert found.flags & NAN
