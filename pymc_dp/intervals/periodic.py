"""Interval rules of circular functions, angles and remainders."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops

from pymc_dp.intervals.elementary import ONE, square
from pymc_dp.intervals.interval import (
    INFINITE,
    NAN,
    Interval,
    Rule,
    add,
    constant,
    contains_zero,
    divide,
    down,
    flag,
    interval,
    may_be_infinite,
    multiply,
    settled,
    slope,
    unknown,
    up,
)
from pymc_dp.intervals.logic import select
from pymc_dp.intervals.monotone import LIBM, Shape, by_output, smooth, stepwise

PI = math.pi
REDUCIBLE = 1e6
"""Largest angle whose place in its period is worked out."""


def _holds(x: Interval, offset: float, period: float) -> Any:
    """Where an interval may hold a point offset + k * period, k whole; always for huge ends."""
    slack = 1e-9
    first, last = (x.low - offset) / period - slack, (x.high - offset) / period + slack
    huge = ~(np.maximum(np.abs(x.low), np.abs(x.high)) < REDUCIBLE)
    return huge | (np.floor(last) >= np.ceil(first))


def _wave(function: Any, top: float, x: Interval) -> Interval:
    """Sine or cosine, whose tops are at `top` and bottoms half a period later."""
    first, last = function(x.low), function(x.high)
    low = np.fmax(down(np.minimum(first, last), LIBM), -1.0)
    high = np.fmin(up(np.maximum(first, last), LIBM), 1.0)
    low = np.where(_holds(x, top + PI, 2 * PI), -1.0, low)
    high = np.where(_holds(x, top, 2 * PI), 1.0, high)
    return interval(low, high, x.flags & NAN | flag(may_be_infinite(x), NAN))


def cos(x: Interval) -> Interval:
    """The cosine."""
    return _wave(np.cos, 0.0, x)


def sin(x: Interval) -> Interval:
    """The sine."""
    return _wave(np.sin, PI / 2, x)


def _tan(x: Interval) -> Interval:
    pole = _holds(x, PI / 2, PI)
    low = np.where(pole, -np.inf, down(np.tan(x.low), LIBM))
    high = np.where(pole, np.inf, up(np.tan(x.high), LIBM))
    return interval(low, high, x.flags & NAN | flag(pole, NAN + INFINITE))


def _root_slope(x: Any) -> Any:
    """Slope of the arc sine."""
    return 1 / np.sqrt((1 - x) * (1 + x))


def _arctan2(y: Interval, x: Interval) -> Interval:
    """The angle of (x, y): its extremes are at corners of a box that does not touch the cut along x <= 0."""
    corners = [np.arctan2(b, a) for b in (y.low, y.high) for a in (x.low, x.high)]
    low, high = down(reduce(np.minimum, corners), LIBM), up(reduce(np.maximum, corners), LIBM)
    clear = ((x.low > 0) | ~contains_zero(y)) & np.isfinite(x.low + x.high + y.low + y.high)
    low, high = np.where(clear, low, down(-PI)), np.where(clear, high, up(PI))
    return interval(low, high, (x.flags | y.flags) & NAN)


def _arctan2_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    y, x = map(slope, inputs)
    distance = add(square(x), square(y))
    clear = (x.low > 0) | ~contains_zero(y)
    slopes = slope(divide(x, distance)), slope(divide(-y, distance))
    return tuple(select(clear, one, unknown(output.shape)) for one in slopes)


def _whole_quotient(x: Interval, y: Interval) -> Interval:
    """The quotient rounded down: the floors of its corners, which floats give exactly up to 2^50."""
    corners = [np.floor_divide(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    low, high = reduce(np.minimum, corners), reduce(np.maximum, corners)
    lost = contains_zero(y) | ~(np.maximum(np.abs(low), np.abs(high)) < 2.0**50)
    flags = x.flags | y.flags | flag(lost, NAN + INFINITE)
    return settled(np.where(lost, -np.inf, low), np.where(lost, np.inf, high), flags)


def _remainder(x: Interval, y: Interval) -> Interval:
    """What dividing x by y leaves, between 0 and y."""
    whole = _whole_quotient(x, y)
    rest = add(x, -multiply(whole, y))
    low, high = np.minimum(y.low, 0.0), np.maximum(y.high, 0.0)
    same = whole.low == whole.high
    low = np.where(same, np.maximum(rest.low, low), low)
    high = np.where(same, np.minimum(rest.high, high), high)
    lost = flag(may_be_infinite(x) | may_be_infinite(y), NAN)
    return interval(low, high, whole.flags & NAN | lost)


def _remainder_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    whole = _whole_quotient(*inputs)
    same = (whole.low == whole.high) & (output.flags & NAN == 0)
    slopes = constant(1.0, output.shape), -whole
    return tuple(select(same, one, unknown(output.shape)) for one in slopes)


PERIODIC: dict[type, Rule] = {
    ops.Cos: smooth(cos, lambda x: -sin(x)),
    ops.Sin: smooth(sin, cos),
    ops.Tan: by_output(_tan, lambda value: add(ONE, square(value))),
    ops.ArcSin: smooth(
        Shape(function=np.arcsin, domain=(-1.0, 1.0), exact=(0.0, 0.0)),
        Shape(function=_root_slope, turn=0.0, range=(1.0, math.inf), domain=(-1.0, 1.0)),
    ),
    ops.ArcCos: smooth(
        Shape(function=np.arccos, falling=True, range=(0.0, float(up(PI))), domain=(-1.0, 1.0), exact=(1.0, 0.0)),
        lambda x: -Shape(function=_root_slope, turn=0.0, range=(1.0, math.inf), domain=(-1.0, 1.0))(x),
    ),
    ops.ArcTan: smooth(
        Shape(function=np.arctan, exact=(0.0, 0.0)),
        Shape(function=lambda x: 1 / (1 + x * x), falling=True, turn=0.0, range=(0.0, 1.0)),
    ),
    ops.ArcTan2: Rule(_arctan2, _arctan2_partials),
    ops.IntDiv: stepwise(_whole_quotient),
    ops.Mod: Rule(_remainder, _remainder_partials),
}
"""Rules of circular functions, angles, whole quotients and remainders."""
