"""Interval rules of powers and of their logarithms."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from pymc_dp.intervals.elementary import ONE, TWO, inverse, log, log1p, log1p_slope, square
from pymc_dp.intervals.interval import (
    INFINITE,
    NAN,
    Interval,
    Rule,
    add,
    attains,
    constant,
    contains_zero,
    down,
    flag,
    interval,
    multiply,
    settled,
    slope,
    unknown,
    up,
)
from pymc_dp.intervals.logic import absolute, select
from pymc_dp.intervals.monotone import LIBM, Unary


def _power(base: Interval, exponent: Interval) -> Interval:
    """The power; of a negative base it is a number only for whole exponents."""
    if _is_two(exponent):
        return square(base).broadcast_to(np.broadcast_shapes(base.shape, exponent.shape))
    negative = base.low < 0
    if not negative.any():
        return _positive(base, exponent)
    return select(negative, _signed(base, exponent), _positive(absolute(base), exponent))


def _is_two(exponent: Interval) -> bool:
    return bool(np.all((exponent.low == 2) & (exponent.high == 2)))


def _positive(base: Interval, exponent: Interval) -> Interval:
    """Of a base >= 0: monotone in each argument, so that the corners of the box decide."""
    corners = [_corner(x + 0.0, y) for x in _ends(base) for y in _ends(exponent)]
    low = reduce(np.minimum, (corner[0] for corner in corners))
    high = reduce(np.maximum, (corner[1] for corner in corners))
    pole = (base.low == 0) & (exponent.low < 0)
    flags = base.flags | exponent.flags | flag(pole, INFINITE)
    if pole.any():
        flags = flags | flag(pole & _maybe_odd(exponent), NAN)
    return settled(low, high, flags)


def _ends(x: Interval) -> tuple[Any, ...]:
    return (x.low,) if x.low is x.high else (x.low, x.high)


def _corner(x: Any, y: Any) -> tuple[Any, Any]:
    """Lower and upper end of x^y at one point, without rounding where the value is known to be 0, 1 or infinite."""
    value = np.power(x, y)
    low, high = np.maximum(down(value, LIBM), 0.0), up(value, LIBM)
    limit = (x == 0) | np.isinf(x) | np.isinf(y)
    exact = ((value == 0) | np.isinf(value)) & limit | (value == 1) & ((x == 1) | (y == 0))
    return (np.where(exact, value, low), np.where(exact, value, high)) if exact.any() else (low, high)


def _maybe_odd(exponent: Interval) -> Any:
    """Where an exponent may be an odd number: there the sign of a base 0 matters."""
    return (exponent.low != exponent.high) | (np.mod(exponent.low, 2) == 1)


def _signed(base: Interval, exponent: Interval) -> Interval:
    """Of a base that may be negative."""
    size = _positive(absolute(base), exponent)
    whole = (exponent.low == exponent.high) & (exponent.low == np.rint(exponent.low))
    odd = whole & (np.mod(exponent.low, 2) == 1)
    both = interval(-size.high, size.high, size.flags | flag(~whole, NAN))
    result = select(whole & ~odd, size, both)
    return select(odd, _odd(base, exponent, size), result) if np.any(odd) else result


def _odd(base: Interval, exponent: Interval, size: Interval) -> Interval:
    """Of a base that may be negative to an odd exponent: increasing if that is positive, else with a pole at 0."""
    (least, most), (least_high, most_high) = (_corner(np.abs(end), exponent.low) for end in (base.low, base.high))
    low = np.where(base.low < 0, -most, least)
    high = np.where(base.high < 0, -least_high, most_high)
    rising = settled(low, high, size.flags)
    pole = contains_zero(base)
    falling = interval(np.where(pole, -np.inf, -size.high), np.where(pole, np.inf, -size.low), size.flags)
    return select(exponent.low > 0, rising, falling)


def _power_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    base, exponent = map(slope, inputs)
    if _is_two(exponent):
        return multiply(TWO, base).broadcast_to(output.shape), constant(0.0, output.shape)
    flat = (exponent.low == 0) & (exponent.high == 0)
    in_base = slope(multiply(exponent, slope(_power(base, add(exponent, -ONE)))))
    in_exponent = _exponent_slope(base, exponent)
    # A certain exponent does not move, so any slope is right.
    certain = exponent.low == exponent.high
    zero = constant(0.0, output.shape)
    outside = select(certain, zero, unknown(output.shape))
    return select(flat, zero, in_base), select(base.low < 0, outside, in_exponent)


def _exponent_slope(base: Interval, exponent: Interval) -> Interval:
    """Range of x^y log x for x >= 0: it increases in y, and has one turning point x = exp(-1/y)."""
    start, stop = np.maximum(base.low, 0.0), np.maximum(base.high, 0.0)
    least, most = exponent.low, exponent.high
    low = np.minimum(_power_log(start, least), _power_log(stop, least))
    high = np.maximum(_power_log(start, most), _power_log(stop, most))
    if (least > 0).any():
        valley = _power_log(np.clip(np.exp(-1 / least), start, stop), least)
        low = np.where(least > 0, np.minimum(low, valley), low)
    if (most < 0).any():
        peak = _power_log(np.clip(np.exp(-1 / most), start, stop), most)
        high = np.where(most < 0, np.maximum(high, peak), high)
    return interval(down(low, LIBM), up(high, LIBM), (base.flags | exponent.flags) & NAN)


def _power_log(x: Any, y: Any) -> Any:
    value = np.log(x) * np.power(x, y)
    return np.where(np.isnan(value), 0.0, value)


def _log_power(x: Interval, exponent: Interval) -> Interval:
    """Exponent * log(x), but at x = 0: 0 for exponent 0, else -inf."""
    logarithm = log(x)
    result = multiply(exponent, slope(logarithm))
    zero = (x.low <= 0) & ((exponent.low != 0) | (exponent.high != 0))
    lost = flag(attains(logarithm, np.inf) | (exponent.flags & INFINITE != 0), NAN + INFINITE)
    flags = result.flags | flag(zero, INFINITE) | lost
    return interval(np.where(zero, -np.inf, result.low), result.high, flags)


def _log_power_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, exponent = map(slope, inputs)
    above = slope(interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0), x.flags))
    rising = slope(inverse()(above))
    jumps = (x.low <= 0) & (exponent.low < 0) | (x.low < 0)
    in_x = select(jumps, unknown(output.shape), slope(multiply(exponent, rising), output.shape))
    return in_x, slope(log(above), output.shape)


def _x_log(logarithm: Unary) -> Callable[[Interval, Interval], Interval]:
    """X times a logarithm, but 0 where x = 0."""

    def value(x: Interval, y: Interval) -> Interval:
        found = logarithm(y)
        result = multiply(x, slope(found))
        attained = (found.flags & INFINITE != 0) & ((x.low != 0) | (x.high != 0))
        return settled(result.low, result.high, result.flags | flag(attained, INFINITE))

    return value


def _x_log_rule(logarithm: Unary, derivative: Unary) -> Rule:
    def partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
        x, y = map(slope, inputs)
        return slope(logarithm(y), output.shape), slope(multiply(x, slope(derivative(y))), output.shape)

    return Rule(_x_log(logarithm), partials)


xlogy, xlog1py = _x_log(log), _x_log(log1p)
XLOGY, XLOG1PY = _x_log_rule(log, inverse()), _x_log_rule(log1p, log1p_slope)
POWER = Rule(_power, _power_partials)
LOG_POWER = Rule(_log_power, _log_power_partials)
"""exponent * log(x) of (x, exponent) as PyMC writes it: at x = 0 it is 0 for exponent 0, else -inf."""
