"""How large numbers are: a histogram over public powers of 2, and the range that it shows once it is noised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from pymc_dp.inspection.rows import Array, Bounds

Integers = npt.NDArray[np.int64]

LEAST, MOST = -40, 63
"""Numbers below 2**LEAST count as 0, those from 2**MOST on as if they were just below it."""
_BIAS = 1023  # of the exponent in a float64
FEIGNED = 0.001
"""Probability that any empty bin stands out by its noise alone."""
_WINDOWS = (1, 2, 4)  # bins that are looked at together beyond the range: half an octave, one, two
_CLEAR = 3.25  # scales of noise, times the root of their number, that they must exceed; chosen by simulation
_SURE = 5.0  # the same for numbers that are missed in a range, where a warning in vain should be rare
_FAR = 8  # an end so many times nearer to 0 than the other may move on half the way to 0 at next to no cost in width


@final
@dataclass(frozen=True)
class Magnitudes:
    """Public bins: of each sign [2^k, 1.5 2^k) and [1.5 2^k, 2^(k+1)), and one about 0.

    Parameters
    ----------
    whole : bool
        Whether numbers are whole; then 0 is alone in its bin.
    """

    whole: bool

    @property
    def least(self) -> int:
        """Exponent of the least edge > 0."""
        return 0 if self.whole else LEAST

    @property
    def of_a_sign(self) -> int:
        """Number of bins of one sign."""
        return 2 * (MOST - self.least)

    @property
    def count(self) -> int:
        """Number of bins, in the order of their numbers."""
        return 2 * self.of_a_sign + 1

    def places(self, values: Array) -> Integers:
        """Return the bin of each number; `count` for NaN, which is in none. Each depends on that number alone.

        The exponent and the first bit of the mantissa of a float are the bin: no logarithm is taken, and every value
        has one. Whole numbers beyond 2**53 are rounded to a float first.

        Examples
        --------
        >>> Magnitudes(whole=True).places(np.array([0, 1, 2, 3, -1])) - Magnitudes(whole=True).of_a_sign
        array([ 0,  1,  3,  4, -1])
        """
        with np.errstate(all="ignore"):  # of NaNs that are cast
            numbers = np.ascontiguousarray(values, dtype=np.float64)
        halves = (numbers.view(np.int64) >> 51) & 0xFFF
        sizes = np.clip(halves - (2 * (_BIAS + self.least) - 1), 0, self.of_a_sign)
        places = self.of_a_sign + np.where(np.signbit(numbers), -sizes, sizes)
        return np.where(np.isnan(numbers), self.count, places)

    def feigned(self, scale: float) -> float:
        """Return the count that noise of a `scale` gives one of all empty bins with probability `FEIGNED` at most."""
        return scale * math.log(self.count / ((1 + math.exp(-1 / scale)) * FEIGNED))

    def range_of(self, noised: Integers, scale: float, outside: float) -> Bounds | None:
        """Return the range that noised counts show, a function of them and of public numbers; None where none does.

        Parameters
        ----------
        noised : (count,) array
            Counts with discrete Laplace noise.
        scale : float
            Of that noise.
        outside : float
            Share of the numbers that may be left out on either side although they are seen.
        """
        span = self.span(noised, scale, outside)
        return None if span is None else self._between(*span)

    def span(self, noised: Integers, scale: float, outside: float) -> tuple[int, int] | None:
        """Return the first and the last bin of the range that noised counts show.

        Notes
        -----
        Bins stand out whose count noise alone would not reach. From either end those are left out that hold, together,
        no more than `outside` of all that stand out; the range is from the first to the last of the others. It grows on
        either side as long as the next bins, 1, 2 or 4 together, hold more than the root of the sum of two squares: of
        what their noise may feign, and of `outside` of all. An end less than an eighth as far from 0 as the other, on
        the same side, moves half of its way towards 0, which widens the range by a fourteenth at most: small numbers
        are spread over many bins.
        """
        (held,) = np.nonzero(noised > self.feigned(scale))
        if not len(held):
            return None
        counts = noised[held].astype(float)
        few = outside * float(counts.sum())
        first, last = int(held[_cut(counts, few)]), int(held[-1 - _cut(counts[::-1], few)])
        last += _further(noised[last + 1 :], scale, few)
        first -= _further(noised[:first][::-1], scale, few)
        return first, last

    def inside(
        self, noised: Integers, scale: float, outside: float, span: tuple[int, int], total: int | None
    ) -> float | None:
        """Return the share of numbers within a range, where it is clearly less than ``1 - 2 outside``; else None.

        Parameters
        ----------
        total : int or None
            How many numbers there are, NaN and missing ones among them, if that is public; if not, what all counts sum
            up to, the noise of which hides more.
        """
        first, last = span
        held, bins = float(noised[first : last + 1].astype(float).sum()), last - first + 1
        among = float(noised.astype(float).sum()) if total is None else float(total)
        noise = _SURE * scale * math.sqrt(bins if total is not None else self.count - bins)
        return held / among if among - held > 2 * outside * among + noise else None

    def _between(self, first: int, last: int) -> Bounds:
        """Return the ends of all bins from the first to the last, for whole numbers the outermost of these."""
        zero = self.of_a_sign
        if first == last == zero:
            return (0.0, 1.0) if self.whole else (-self._edge(0), self._edge(0))
        low = self._inner(first - zero) if first > zero else 0.0 - self._outer(zero - first)
        high = self._outer(last - zero) if last >= zero else -self._inner(zero - last)
        if not low < high:  # of whole numbers between 1 and 2, of which there are none
            high = low + 1
        return self._nearer(low, high), self._nearer(high, low)

    def _edge(self, place: int) -> float:
        return math.ldexp(1.5 if place % 2 else 1.0, self.least + place // 2)

    def _outer(self, size: int) -> float:
        """Return the end of a bin that is away from 0; that of the bin about 0 counts as 0."""
        edge = self._edge(size)
        return 0.0 if size == 0 else (math.ceil(edge) - 1.0 if self.whole else edge)

    def _inner(self, size: int) -> float:
        edge = self._edge(size - 1)
        return float(math.ceil(edge)) if self.whole else edge

    def _nearer(self, end: float, other: float) -> float:
        if end * other <= 0 or _FAR * abs(end) > abs(other):
            return end
        return float(math.trunc(end / 2) or end) if self.whole else end / 2  # 1 stays: what starts there has no 0


def _cut(counts: Array, few: float) -> int:
    """Return how many counts from the first on are `few` together, or less."""
    return int(np.searchsorted(np.cumsum(counts), few, side="right"))


def _further(beyond: Sequence[Any] | Integers, scale: float, few: float) -> int:
    """Return how many of the bins beyond the range belong to it."""
    found = 0
    while any(
        sum(map(int, beyond[found : found + window])) > math.hypot(_CLEAR * scale * math.sqrt(window), few)
        for window in _WINDOWS
        if found < len(beyond)
    ):
        found += 1
    return found


__all__ = ["Magnitudes"]
