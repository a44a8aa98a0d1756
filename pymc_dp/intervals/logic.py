"""Interval rules of what decides: comparisons, three-valued logic, switches, kinks and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops

from pymc_dp.intervals.interval import (
    NAN,
    Interval,
    Rule,
    interval,
    settled,
    unknown,
)
from pymc_dp.intervals.monotone import jump, stepwise


def truth(certain: Any, possible: Any) -> Interval:
    """A boolean: [1, 1] where certain, [0, 0] where impossible, [0, 1] where undecided."""
    certain, possible = np.asarray(certain), np.asarray(possible)
    return Interval(certain * 1.0, possible * 1.0, np.zeros(certain.shape, dtype=np.uint8))


def _comparison(certain: Callable[..., Any], impossible: Callable[..., Any]) -> Rule:
    """Of a comparison; a NaN decides it another way, so a possible NaN leaves it undecided."""

    def value(x: Interval, y: Interval) -> Interval:
        number = (x.flags | y.flags) & NAN == 0
        return truth(certain(x, y) & number, ~(impossible(x, y) & number))

    return stepwise(value)


def _same(x: Interval, y: Interval) -> Any:
    return (x.low == y.high) & (x.high == y.low)


def _apart(x: Interval, y: Interval) -> Any:
    return (x.high < y.low) | (x.low > y.high)


def _is_nan(x: Interval) -> Interval:
    """Undecided where no bound is known as well: floats overflow there, and differences of such are not numbers."""
    return truth(np.zeros(x.shape, dtype=bool), (x.flags & NAN != 0) | _is_open(x))


def _is_infinite(x: Interval) -> Interval:
    infinite = np.isinf(x.low) & (x.low == x.high)
    return truth(infinite & (x.flags & NAN == 0), _is_open(x))


def _is_open(x: Interval) -> Any:
    return np.isinf(x.low) | np.isinf(x.high)


def _and(x: Interval, y: Interval) -> Interval:
    return _boolean(np.minimum(x.low, y.low), np.minimum(x.high, y.high), x, y)


def _or(x: Interval, y: Interval) -> Interval:
    return _boolean(np.maximum(x.low, y.low), np.maximum(x.high, y.high), x, y)


def _xor(x: Interval, y: Interval) -> Interval:
    decided = (x.low == x.high) & (y.low == y.high)
    differ = x.low != y.low
    return _boolean(decided & differ, ~decided | differ, x, y)


def _not(x: Interval) -> Interval:
    return _boolean(1 - x.high, 1 - x.low, x)


def _boolean(low: Any, high: Any, *operands: Interval) -> Interval:
    """A boolean, or nothing known where an operand is not one: bits of integers are not followed."""
    result = interval(low * 1.0, high * 1.0, np.zeros(np.shape(low), dtype=np.uint8))
    boolean: Any = True
    for operand in operands:
        boolean = boolean & (operand.low >= 0) & (operand.high <= 1) & (operand.flags == 0)
    return result if np.all(boolean) else select(boolean, result, unknown(result.shape))


def select(mask: Any, first: Interval, second: Interval) -> Interval:
    """The first where the mask holds, else the second."""
    return interval(
        np.where(mask, first.low, second.low),
        np.where(mask, first.high, second.high),
        np.where(mask, first.flags, second.flags),
    )


def is_true(condition: Interval) -> Any:
    """Where a condition is certainly not 0; NaN counts as true in some compilers only, so it is undecided."""
    return ((condition.low > 0) | (condition.high < 0)) & (condition.flags & NAN == 0)


def is_false(condition: Interval) -> Any:
    """Where a condition is certainly 0."""
    return (condition.low == 0) & (condition.high == 0) & (condition.flags & NAN == 0)


def _switch(condition: Interval, first: Interval, second: Interval) -> Interval:
    yes, no = is_true(condition), is_false(condition)
    if np.all(yes | no):
        return select(yes, first, second)
    return select(yes, first, select(no, second, first.hull(second)))


def _switch_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    condition = inputs[0]
    yes, no = is_true(condition), is_false(condition)
    still = jump(yes | no | (output.low == output.high), output)
    first, second = (interval(mask + still.low, mask + still.high, still.flags) for mask in (yes, no))
    return still, first, second


def _clip(x: Interval, least: Interval, most: Interval) -> Interval:
    low = np.minimum(np.maximum(x.low, least.low), most.low)
    high = np.minimum(np.maximum(x.high, least.high), most.high)
    flags = x.flags | least.flags | most.flags
    ordered = _ordered(least, most)
    if not np.all(ordered):
        low = np.where(ordered, low, np.minimum(np.minimum(x.low, least.low), most.low))
        high = np.where(ordered, high, np.maximum(np.maximum(x.high, least.high), most.high))
    return settled(low, high, flags)


def _ordered(least: Interval, most: Interval) -> Any:
    return (least.high <= most.low) & ((least.flags | most.flags) & NAN == 0)


def _clip_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, least, most = inputs
    below, above = _share(x.high <= least.low, x.low < least.high), _share(x.low >= most.high, x.high > most.low)
    inside = _share((x.low >= least.high) & (x.high <= most.low), (x.high > least.low) & (x.low < most.high))
    valid = _ordered(least, most) & (output.flags & NAN == 0)
    return tuple(_known(valid, share, output) for share in (inside, below, above))


def _share(certain: Any, possible: Any) -> tuple[Any, Any]:
    """Slope of an input that is the output where certain, and is not where impossible."""
    return certain * 1.0, (certain | possible) * 1.0


def _known(valid: Any, ends: tuple[Any, Any], output: Interval) -> Interval:
    slopes = interval(*ends, np.zeros((), dtype=np.uint8))
    if not np.all(valid):
        slopes = select(valid, slopes, unknown(()))
    return Interval(*(np.broadcast_to(part, output.shape) for part in (slopes.low, slopes.high, slopes.flags)))


def _maximum(x: Interval, y: Interval) -> Interval:
    return settled(np.maximum(x.low, y.low), np.maximum(x.high, y.high), x.flags | y.flags)


def _minimum(x: Interval, y: Interval) -> Interval:
    return settled(np.minimum(x.low, y.low), np.minimum(x.high, y.high), x.flags | y.flags)


def _maximum_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, y = inputs
    valid = output.flags & NAN == 0
    first, second = _share(x.low >= y.high, x.high > y.low), _share(x.high <= y.low, x.low < y.high)
    return _known(valid, first, output), _known(valid, second, output)


def _minimum_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, y = inputs
    return _maximum_partials((-x, -y), output)


def absolute(x: Interval) -> Interval:
    """The distance from 0."""
    low = np.maximum(np.maximum(x.low, -x.high), 0.0)
    return settled(low, np.maximum(-x.low, x.high), x.flags)


def _absolute_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    (x,) = inputs
    low, high = np.where(x.low >= 0, 1.0, -1.0), np.where((x.high <= 0) & (x.low < 0), -1.0, 1.0)
    return (interval(low, high, x.flags & NAN),)


def _to_integer(x: Interval) -> Interval:
    """Conversion to an integer type: the fraction is dropped, and nothing is known of NaN, infinite or huge values."""
    lost = (x.flags != 0) | ~((x.low >= -(2.0**53)) & (x.high <= 2.0**53))
    result = interval(np.trunc(x.low), np.trunc(x.high), x.flags)
    return select(lost, unknown(x.shape), result) if lost.any() else result


def _to_boolean(x: Interval) -> Interval:
    """Conversion to a boolean: whether it is not 0."""
    return truth(is_true(x), ~is_false(x))


def _step(function: Callable[[Any], Any]) -> Rule:
    return stepwise(lambda x: settled(function(x.low), function(x.high), x.flags))


TO_INTEGER = stepwise(_to_integer)
TO_BOOLEAN = stepwise(_to_boolean)

LOGIC: dict[type, Rule] = {
    ops.LT: _comparison(lambda x, y: x.high < y.low, lambda x, y: x.low >= y.high),
    ops.LE: _comparison(lambda x, y: x.high <= y.low, lambda x, y: x.low > y.high),
    ops.GT: _comparison(lambda x, y: x.low > y.high, lambda x, y: x.high <= y.low),
    ops.GE: _comparison(lambda x, y: x.low >= y.high, lambda x, y: x.high < y.low),
    ops.EQ: _comparison(_same, _apart),
    ops.NEQ: _comparison(_apart, _same),
    ops.IsNan: stepwise(_is_nan),
    ops.IsInf: stepwise(_is_infinite),
    ops.AND: stepwise(_and),
    ops.OR: stepwise(_or),
    ops.XOR: stepwise(_xor),
    ops.Invert: stepwise(_not),
    ops.Switch: Rule(_switch, _switch_partials),
    ops.Clip: Rule(_clip, _clip_partials),
    ops.Maximum: Rule(_maximum, _maximum_partials),
    ops.Minimum: Rule(_minimum, _minimum_partials),
    ops.Abs: Rule(absolute, _absolute_partials),
    ops.Sign: _step(np.sign),
    ops.Floor: _step(np.floor),
    ops.Ceil: _step(np.ceil),
    ops.Trunc: _step(np.trunc),
    ops.RoundHalfToEven: _step(np.rint),
    ops.RoundHalfAwayFromZero: _step(lambda x: np.trunc(x + np.copysign(np.nextafter(0.5, 0), x))),
}
"""Rules of the scalar operations that compare, decide, bend or step."""
