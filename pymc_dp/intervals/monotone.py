"""Interval rules of functions of one variable from their shape: rising, falling, or with one turning point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.intervals.interval import (
    INFINITE,
    NAN,
    TINY,
    Interval,
    Rule,
    constant,
    down,
    flag,
    interval,
    settled,
    slope,
    unknown,
    up,
)

LIBM = 4e-15
"""Relative error allowed to NumPy's elementary functions, which stay below 4 units in the last place (9e-16)."""

Unary = Callable[[Interval], Interval]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is known of a real function: its range, its domain, and how well it is computed.

    Attributes
    ----------
    function : callable
        Arrays to arrays, limits at infinite ends included.
    falling : bool
        Decreasing; with a turning point: rising before it and falling after.
    turn : float or None
        Argument of the only minimum (maximum if falling), to within rounding. None if monotone.
    range, domain : (low, high)
        Closed. The value is undefined outside the domain, and an infinite limit at its ends is attained.
    continues : bool
        The function is defined outside the domain too, but nothing is stated about it there.
    relative, absolute : float
        Error allowed to `function`.
    exact : (argument, value)
        One argument where the value of a monotone function is known without error.
    """

    function: Callable[[Any], Any]
    falling: bool = False
    turn: float | None = None
    range: tuple[float, float] = (-np.inf, np.inf)
    domain: tuple[float, float] = (-np.inf, np.inf)
    continues: bool = False
    relative: float = LIBM
    absolute: float = TINY
    exact: tuple[float, float] | None = None

    def __call__(self, x: Interval) -> Interval:
        """The range of the function over intervals."""
        start = self._within(x.low)
        stop = start if x.low is x.high else self._within(x.high)
        first = self.function(start)
        last = first if stop is start else self.function(stop)
        low, high = self._extremes(start, stop, first, last)
        below = np.fmax(down(low, self.relative, self.absolute), self.range[0])
        above = np.fmin(up(high, self.relative, self.absolute), self.range[1])
        if self.exact is not None:
            ends = (stop, start) if self.falling else (start, stop)
            below, above = (self._exact(*pair) for pair in zip((below, above), ends, strict=True))
        if (x.flags & INFINITE).any():
            # At a single infinity, a limit that is a whole number is not rounded.
            limit = np.isinf(start) & (start == stop) & (first == np.rint(first))
            below, above = np.where(limit, first, below), np.where(limit, first, above)
        return self._flagged(x, below, above)

    def _within(self, end: Any) -> Any:
        start, stop = self.domain
        end = end if start == -np.inf else np.maximum(end, start) + 0.0
        return end if stop == np.inf else np.minimum(end, stop)

    def _extremes(self, start: Any, stop: Any, first: Any, last: Any) -> tuple[Any, Any]:
        if self.turn is None:
            return (last, first) if self.falling else (first, last)
        extreme = self.function(np.minimum(np.maximum(start, self.turn), stop))
        return (np.minimum(first, last), extreme) if self.falling else (extreme, np.maximum(first, last))

    def _exact(self, end: Any, argument: Any) -> Any:
        """Undo the rounding at the argument where the value is known."""
        assert self.exact is not None
        known = argument == self.exact[0]
        return np.where(known, self.exact[1], end) if known.any() else end

    def _flagged(self, x: Interval, low: Any, high: Any) -> Interval:
        start, stop = self.domain
        flags = x.flags
        if np.isfinite(start) or np.isfinite(stop):
            edge = (x.low <= start) & np.isfinite(start) | (x.high >= stop) & np.isfinite(stop)
            if edge.any():
                outside = (x.low < start) | (x.high > stop)
                flags = flags | flag(outside, NAN) | flag(edge, INFINITE)
                if self.continues:
                    low, high = np.where(outside, -np.inf, low), np.where(outside, np.inf, high)
        return settled(low, high, flags)


def smooth(value: Unary, derivative: Unary) -> Rule:
    """Rule of a function from itself and its derivative as functions of intervals."""
    return Rule(value, lambda inputs, output: (slope(derivative(inputs[0])),))


def by_output(value: Unary, derivative: Unary) -> Rule:
    """Rule of a function whose derivative is a function of its value."""
    return Rule(value, lambda inputs, output: (slope(derivative(output)),))


def stepwise(value: Callable[..., Interval]) -> Rule:
    """Rule of a function that is constant but for jumps: its slopes exist only where its value is certain."""

    def partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
        return (jump(output.low == output.high, output),) * len(inputs)

    return Rule(value, partials)


def jump(decided: Any, output: Interval) -> Interval:
    """Slope 0 where the output is decided and certainly a number, else unknown."""
    decided = decided & (output.flags & NAN == 0)
    zero, nothing = constant(0.0, output.shape), unknown(output.shape)
    if decided.all():
        return zero
    return interval(*(np.where(decided, a, b) for a, b in zip(_parts(zero), _parts(nothing), strict=True)))


def _parts(x: Interval) -> tuple[Any, Any, Any]:
    return x.low, x.high, x.flags
