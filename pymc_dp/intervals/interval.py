"""Intervals of real numbers in arrays, with ends rounded outward, and their arithmetic.

An interval stands for every real number between its ends. What else it may hold is said by flags: infinities, where
an end is infinite, and NaN. An infinite end alone means only that no bound is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NAN, INFINITE = 1, 2
STEP = 2.0**-53 * (1 + 2.0**-51)
TINY = 5e-324
LARGEST = float(np.finfo(float).max)


def quiet[**Given, Found](rule: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let overflow and NaN pass: they are looked after by the flags.

    NumPy's own decorator does the same, but what it makes cannot be sent to another process.
    """

    @wraps(rule)
    def silent(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        with np.errstate(all="ignore"):
            return rule(*args, **kwargs)

    return silent


@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    """Sets of extended real numbers, one per entry of an array.

    Attributes
    ----------
    low, high : float64 arrays of one shape
        The ends, low <= high, never NaN.
    flags : uint8 array of the same shape
        Sum of ``NAN`` (the value may be undefined) and ``INFINITE`` (an infinite end may itself be the value).

    Examples
    --------
    >>> third = Interval.point(1.0) / Interval.point(3.0)
    >>> bool(third.low < third.high)
    True
    >>> (Interval.of(-1.0, 2.0) * Interval.of(3.0, 4.0)).low < -4
    np.True_
    """

    low: Array
    high: Array
    flags: Array

    @classmethod
    def of(cls, low: npt.ArrayLike, high: npt.ArrayLike, flags: npt.ArrayLike = 0) -> Self:
        """Intervals from their ends, which broadcast against each other.

        Raises
        ------
        ValueError
            Where an end is NaN or low > high.
        """
        low, high = _as_float(low, down), _as_float(high, up)
        if not np.all(low <= high):
            raise ValueError("The ends of an interval must be numbers with low <= high. Give NaN by the flag NAN.")
        return cls(*np.broadcast_arrays(low, high, np.asarray(flags, dtype=np.uint8)))

    @classmethod
    def point(cls, value: npt.ArrayLike) -> Self:
        """Single numbers; an infinity is flagged as attained, and NaN is [-inf, inf] with ``NAN``."""
        low, high = _as_float(value, down), _as_float(value, up)
        lost = np.isnan(low)
        flags = np.asarray(flag(np.isinf(low), INFINITE) + flag(lost, NAN))
        if lost.any():
            return cls(np.where(lost, -np.inf, low), np.where(lost, np.inf, high), flags)
        return cls(low, low if np.array_equal(low, high) else high, flags)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of intervals."""
        return self.low.shape

    def __getitem__(self, index: Any) -> Interval:
        low, high, flags = (np.asarray(part[index]) for part in (self.low, self.high, self.flags))
        return Interval(low, high, flags)

    def broadcast_to(self, shape: tuple[int, ...]) -> Interval:
        """The same intervals seen in another shape, without a copy."""
        if self.shape == shape:
            return self
        return Interval(*(np.broadcast_to(part, shape) for part in (self.low, self.high, self.flags)))

    def hull(self, other: Interval) -> Interval:
        """The smallest intervals that hold both."""
        return interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high), self.flags | other.flags)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.flags)

    def __add__(self, other: Interval) -> Interval:
        return quiet(add)(self, other)

    def __sub__(self, other: Interval) -> Interval:
        return quiet(add)(self, -other)

    def __mul__(self, other: Interval) -> Interval:
        return quiet(multiply)(self, other)

    def __truediv__(self, other: Interval) -> Interval:
        return quiet(divide)(self, other)


class Rule(NamedTuple):
    """How intervals pass through one operation.

    Attributes
    ----------
    value : callable
        From the inputs, which broadcast against each other, to the output.
    partials : callable
        From the tuple of inputs and the output to one interval per input, of the output's shape, that holds every
        slope over the box: f(x) - f(y) lies in the sum of partial_i * (x_i - y_i) for all x and y in it at which f
        is finite.
    """

    value: Callable[..., Interval]
    partials: Callable[..., tuple[Interval, ...]]


def interval(low: Any, high: Any, flags: Any) -> Interval:
    """Build an interval of arrays from what ufuncs return, which for 0-d input are scalars."""
    return Interval(np.asarray(low), np.asarray(high), np.asarray(flags))


def unknown(shape: tuple[int, ...]) -> Interval:
    """Nothing is known: [-inf, inf] with ``NAN``, also for slopes that may not exist."""
    return Interval(np.full(shape, -np.inf), np.full(shape, np.inf), np.full(shape, NAN, dtype=np.uint8))


def constant(value: float, shape: tuple[int, ...]) -> Interval:
    """One finite number everywhere."""
    ends = np.full(shape, value)
    return Interval(ends, ends, np.zeros(shape, dtype=np.uint8))


def flag(mask: Any, kind: int) -> Any:
    """Set a flag where the mask holds."""
    return mask * np.uint8(kind)


def down(value: Any, relative: float = STEP, absolute: float = TINY) -> Any:
    """Lower end of a true value of which `value` is a rounding; overflow counts as a large finite number.

    The defaults give at most the preceding number [Rump, Zimmermann, Boldo, Melquiond 2009, algorithm 1].
    """
    value = np.minimum(value, LARGEST)
    return value - (relative * np.abs(value) + absolute)


def up(value: Any, relative: float = STEP, absolute: float = TINY) -> Any:
    """Upper end of a true value of which `value` is a rounding."""
    value = np.maximum(value, -LARGEST)
    return value + (relative * np.abs(value) + absolute)


def _as_float(value: npt.ArrayLike, outward: Callable[[Any], Any]) -> Array:
    """An end as float64; whole numbers from 2^53 on, which it may not hold, are moved outward."""
    exact = np.asarray(value)
    end = np.asarray(exact, dtype=float)
    if exact.dtype.kind in "iuO" and (np.abs(end) >= 2.0**53).any():
        return np.where(np.abs(end) >= 2.0**53, outward(end), end)
    return end


def settled(low: Any, high: Any, flags: Any) -> Interval:
    """Drop ``INFINITE`` where both ends are finite."""
    if (flags & INFINITE).any():
        flags = flags & ~flag(np.isfinite(low) & np.isfinite(high), INFINITE)
    return interval(low, high, flags)


def slope(slopes: Interval, shape: tuple[int, ...] | None = None) -> Interval:
    """A partial derivative: infinite ends are limits, so that 0 times them is 0."""
    slopes = interval(slopes.low, slopes.high, slopes.flags & NAN)
    return slopes if shape is None else slopes.broadcast_to(shape)


def add(x: Interval, y: Interval) -> Interval:
    """The sum, exact where floats are."""
    flags = x.flags | y.flags
    low, inexact = _sum(x.low, y.low)
    high, inexact_high = (low, inexact) if x.low is x.high and y.low is y.high else _sum(x.high, y.high)
    below, above = np.minimum(low, LARGEST), np.maximum(high, -LARGEST)
    below = below - (STEP * np.abs(below) + TINY) * inexact
    above = above + (STEP * np.abs(above) + TINY) * inexact_high
    if (flags & INFINITE).any():
        below = np.fmax(np.where(np.isinf(x.low) | np.isinf(y.low), low, below), -np.inf)
        above = np.fmin(np.where(np.isinf(x.high) | np.isinf(y.high), high, above), np.inf)
        clash = attains(x, np.inf) & attains(y, -np.inf) | attains(x, -np.inf) & attains(y, np.inf)
        flags = flags | flag(clash, NAN)
    return interval(below, above, flags)


def _sum(x: Array, y: Array) -> tuple[Any, Any]:
    """The rounded sum, and where it may differ from the true one [Knuth's two-sum: the error is 0 if both agree]."""
    total = x + y
    return total, (total - x != y) | (total - y != x)


def attains(x: Interval, infinity: float) -> Any:
    """Where the value may be this infinity itself."""
    return ((x.flags & INFINITE) != 0) & ((x.high if infinity > 0 else x.low) == infinity)


def multiply(x: Interval, y: Interval) -> Interval:
    """The product; 0 times an infinite end is 0, and NaN only where the infinity is attained."""
    corners = x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high
    flags = x.flags | y.flags
    if (flags & INFINITE).any():
        undefined = may_be_infinite(x) & contains_zero(y) | may_be_infinite(y) & contains_zero(x)
        flags = flags | flag(undefined, NAN)
    return _extremes(corners, x, y, flags)


def divide(x: Interval, y: Interval) -> Interval:
    """The quotient; where the divisor may be 0 it is flagged ``NAN`` and ``INFINITE``, the sign of 0 being unknown."""
    zero = contains_zero(y)
    flags = x.flags | y.flags
    if (flags & INFINITE).any():
        flags = flags | flag(may_be_infinite(x) & may_be_infinite(y), NAN)
    if not zero.any():
        return _extremes((x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high), x, y, flags)
    # A zero end is approached from within: +0 below, -0 above.
    below, above = y.low + 0.0, np.where(y.high == 0, -0.0, y.high)
    corners = x.low / below, x.low / above, x.high / below, x.high / above
    result = _extremes(corners, x, y, flags | flag(zero, NAN + INFINITE))
    within = ((y.low < 0) & (y.high > 0) | (y.low == 0) & (y.high == 0)) & ((x.low != 0) | (x.high != 0))
    return interval(np.where(within, -np.inf, result.low), np.where(within, np.inf, result.high), result.flags)


def _extremes(corners: tuple[Any, ...], x: Interval, y: Interval, flags: Any) -> Interval:
    """Hull of a product's or quotient's values at the corners of the box; a corner of 0 times infinity is 0."""
    first, second, third, fourth = corners
    low = np.fmin(np.fmin(first, second), np.fmin(third, fourth))
    high = np.fmax(np.fmax(first, second), np.fmax(third, fourth))
    lost = np.isnan(low)
    if lost.any():
        low, high = np.where(lost, 0.0, low), np.where(lost, 0.0, high)
    below, above = down(low), up(high)
    if not low.all():
        negative = (x.low < 0) & (y.high > 0) | (x.high > 0) & (y.low < 0)
        below = np.where((low == 0) & ~negative, 0.0, below)
    if not high.all():
        positive = (x.low < 0) & (y.low < 0) | (x.high > 0) & (y.high > 0)
        above = np.where((high == 0) & ~positive, 0.0, above)
    if (flags & INFINITE).any():
        exact = _is_infinity(x) | _is_infinity(y)
        below, above = np.where(exact, low, below), np.where(exact, high, above)
    return settled(below, above, flags)


def may_be_infinite(x: Interval) -> Any:
    """Where an infinite end is flagged as attained."""
    return ((x.flags & INFINITE) != 0) & (np.isinf(x.low) | np.isinf(x.high))


def _is_infinity(x: Interval) -> Any:
    return (x.low == x.high) & np.isinf(x.low)


def contains_zero(x: Interval) -> Any:
    """Where 0 lies between the ends."""
    return (x.low <= 0) & (x.high >= 0)
