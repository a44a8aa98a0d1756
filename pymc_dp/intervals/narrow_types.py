"""What types narrower than float64 and int64 leave of numbers: rounded reals, integers that wrap around."""

from __future__ import annotations

import numpy as np

from pymc_dp.intervals.expression import Expression, elementwise
from pymc_dp.intervals.interval import INFINITE, NAN, Interval, Rule, flag, unknown

LARGEST_SINGLE, MOST = 3.4e38, 1e300


def _single(x: Interval) -> Interval:
    """Rounding to float32: by at most one part in 2^24, by less than the least normal number near 0, or to infinity."""
    finite = np.clip(x.low, -MOST, MOST), np.clip(x.high, -MOST, MOST)
    low, high = (end + side * (abs(end) * 2.0**-23 + 1e-37) for end, side in zip(finite, (-1, 1), strict=True))
    low, high = (np.where(np.isinf(end), end, one) for end, one in ((x.low, low), (x.high, high)))
    below, above = low < -LARGEST_SINGLE, high > LARGEST_SINGLE
    flags = x.flags | flag(below | above, INFINITE)
    return Interval(np.where(below, -np.inf, low), np.where(above, np.inf, high), flags)


SINGLE_NAME = "Cast{float32}"
SINGLE = Rule(value=_single, partials=lambda inputs, out: (unknown(out.shape),))


def single(given: Expression) -> Expression:
    """Return what rounding to single precision leaves of an expression."""
    return elementwise(SINGLE_NAME, SINGLE, [given])


def wrapped(given: Expression, dtype: str, least: float, most: float) -> Expression:
    """Return an integer of a type that may be too small for it: nothing is known of it on boxes where it is."""

    def value(x: Interval) -> Interval:
        lost = (x.low < least) | (x.high > most)
        return Interval(np.where(lost, -np.inf, x.low), np.where(lost, np.inf, x.high), x.flags | flag(lost, NAN))

    def partials(inputs: tuple[Interval, ...], out: Interval) -> tuple[Interval, ...]:
        return (Interval(np.ones(out.shape), np.ones(out.shape), out.flags & NAN),)

    return elementwise(f"Cast{{{dtype}}}", Rule(value, partials), [given])


__all__ = ["SINGLE_NAME", "single", "wrapped"]
