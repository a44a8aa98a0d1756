"""Bounds that are enforced on the numbers that are summed over rows, whatever a compiled function returns.

A proof about a density says nothing about the floats that a compiled graph returns: they may underflow to minus
infinity, cancel, or depend on the order of a sum. So the number of every row is held within the interval that was
charged and rounded to a multiple of a public power of 2; sums are of whole numbers in int64, the same in whatever
order. What a compiled function returns then decides how good a draw is, never how private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array

MOST_BITS = 44
"""Bits of the largest number of one row."""
SUM_BITS = 62
"""Bits of a sum over all rows."""
FLOAT_BITS = 53
"""Bits of a sum over all rows that is a float without rounding."""
FEWEST_BITS = 8
ANY_TABLE = 2**33
"""Rows, more than any memory holds."""
LEAST_EXPONENT = -1022
"""Of a unit: smaller ones have no inverse."""
CHUNK = 2**18
"""Rows whose numbers, of `MOST_BITS` each, may be added up in int64, however many more rows there are."""
BLOCK = 2 ** (FLOAT_BITS - MOST_BITS - 1)
"""Rows whose numbers may be added up in floats without rounding."""


def bits_of(n_rows: int, sum_bits: int = SUM_BITS) -> int:
    """Return how many bits the number of one row may have, so that sums over rows stay within int64."""
    return max(FEWEST_BITS, min(MOST_BITS, sum_bits - max(1, n_rows).bit_length()))


def unit_of(size: float, n_rows: int, sum_bits: int = SUM_BITS) -> float:
    """Return a public power of 2, of which numbers up to `size` are few enough multiples to be summed in int64."""
    return 2.0 ** max(math.frexp(size)[1] - bits_of(n_rows, sum_bits), LEAST_EXPONENT)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How far the number of a row may range over parameters: what is charged, and enforced on what is summed.

    Attributes
    ----------
    width : int
        Largest range of one row's numbers, in units.
    unit : float
        Power of 2.
    neighbours : {"replace", "add_remove"}
    size : int or None
        Largest absolute value of a row's numbers, in units, where that is charged too. None: a row's largest number
        is taken as 0, since what is the same at all points tells nothing about which of them is chosen.

    Notes
    -----
    **Guarantee.** At points θ_1, ..., θ_K the numbers f(x, θ_k) of a row are whole multiples of `unit` within an
    interval of length ``width``; one whose numbers are NaN or +∞ anywhere, or -∞ everywhere, has f = 0. So a sum over
    rows differs between two neighbours by a function of k of range at most ``width`` units (``add_remove``), or twice
    that (``replace``): a choice among the points with probability ∝ ``exp(β Σ f)`` is an exponential mechanism of
    bounded range ``β charge``. It holds for whatever floats the rows' log-likelihoods are.
    """

    width: int
    unit: float
    neighbours: Neighbours
    size: int | None = None

    @classmethod
    def of(
        cls,
        range_: float,
        neighbours: Neighbours,
        n_rows: int,
        *,
        needed: float = 0.0,
        size: float | None = None,
    ) -> Self:
        """Make a limit that charges no less than a proved range, and cuts off no less than what is needed.

        Parameters
        ----------
        range_ : float
            Proved bound of the range of a difference of two rows (``replace``), or of one row (``add_remove``).
        neighbours : {"replace", "add_remove"}
        n_rows : int
            Most rows that a table may have; public.
        needed : float
            Range of one row's numbers that must not be cut.
        size : float, optional
            Largest absolute value of a row's numbers, where that is charged too.
        """
        width = max(range_ / _times(neighbours), needed)
        # Nothing refuses a table of more rows than were declared where their number is private: its sum must not wrap.
        unit = unit_of(max(width, size or 0.0), max(n_rows, ANY_TABLE) if neighbours == "add_remove" else n_rows)
        held = None if size is None else math.ceil(size / unit)
        return cls(width=math.ceil(width / unit), unit=unit, neighbours=neighbours, size=held)

    @property
    def charge(self) -> float:
        """Range of what one row moves the sum by, rounding included."""
        return _times(self.neighbours) * self.width * self.unit

    @property
    def size_charge(self) -> float:
        """What one row moves the sum by at any one point, rounding included; infinite where that is not enforced."""
        return math.inf if self.size is None else _times(self.neighbours) * self.size * self.unit

    def add(self, total: Array, found: Array, weights: Array, owner: Array | None = None) -> None:
        """Add the numbers of some rows at all points to a sum in whole units.

        Parameters
        ----------
        total : (n_points, n_elements) int64 array
            Changed in place.
        found : (n_points, n_rows) array
            Log-likelihood of each row at each point, less what all rows have in common. **Private**.
        weights : (n_rows,) int64 array
            How often each row occurs. **Private**.
        owner : (n_rows,) int64 array, optional
            Element that each row counts for; all for element 0 by default. **Private**.
        """
        from pymc_dp.step_methods.row_functions.summing import add_rows

        owner = np.zeros(len(weights), dtype=np.int64) if owner is None else owner
        size = -1.0 if self.size is None else float(self.size)
        add_rows(_dense(found), weights, owner, 1.0 / self.unit, float(self.width), size, total)

    def values(self, total: Array) -> Array:
        """Return a sum in nats; without a `size` less its largest entry in every column: floats have digits near 0."""
        return (total - total.max(axis=0, keepdims=True) if self.size is None else total) * self.unit


@dataclass(frozen=True, kw_only=True)
class RatioLimit:
    """An interval that the number of each row is held in: for ratios of two points, or of a point and a fixed one.

    Attributes
    ----------
    low, high : int
        Ends of the interval, in units.
    unit : float
        Power of 2.

    Notes
    -----
    **Guarantee.** The number of every row is a whole multiple of `unit` within the interval; NaN counts as 0, or as the
    end that is nearest to it. One row
    moves a sum by at most ``high - low`` units (``replace``), or ``max(-low, high)`` (``add_remove``). A sum over
    `n_rows` rows is a float without rounding.
    """

    low: int
    high: int
    unit: float

    @classmethod
    def of(cls, low: float, high: float, n_rows: int) -> Self:
        """Round an interval of finite ends outwards.

        Parameters
        ----------
        low, high : float
        n_rows : int
            Most rows that a table may have; public.
        """
        size = max(-low, high)
        unit = unit_of(size, n_rows, FLOAT_BITS) if size > 0 else 1.0
        return cls(low=math.floor(low / unit), high=math.ceil(high / unit), unit=unit)

    def reach(self, neighbours: Neighbours) -> float:
        """Return how far one row moves the sum, rounding included."""
        return (self.high - self.low if neighbours == "replace" else max(-self.low, self.high)) * self.unit

    @property
    def largest(self) -> float:
        """Largest absolute value of a row's number."""
        return max(-self.low, self.high) * self.unit

    def add(self, total: Array, found: Array, base: Array, weights: Array) -> None:
        """Add ``found - base``, held within the interval, to a sum in whole units.

        Parameters
        ----------
        total : (n_points,) int64 array
            Changed in place.
        found : (n_points, n_rows) array
        base : (n_rows,) array
        weights : (n_rows,) int64 array
        """
        from pymc_dp.step_methods.row_functions.summing import add_ratios

        found = _dense(found)
        base = np.ascontiguousarray(np.broadcast_to(base, found.shape[1:]), dtype=np.float64)
        add_ratios(found, base, weights, 1.0 / self.unit, float(self.low), float(self.high), total)

    def total(self, found: Array, base: Array, n_rows: int) -> float:
        """Return the sum of ``found - base`` in nats, each held within the interval. **Private**.

        Parameters
        ----------
        found, base : (n_held,) array
        n_rows : int
            Most rows that a table may have: a sum is held within what so many can add up to.
        """
        from pymc_dp.step_methods.row_functions.summing import sum_ratios

        found, base, whole = _dense(found), _dense(base), 0
        for start in range(0, len(found), CHUNK):
            part = slice(start, start + CHUNK)
            whole += int(sum_ratios(found[part], base[part], 1 / self.unit, float(self.low), float(self.high), BLOCK))
        most = n_rows * max(-self.low, self.high)
        return min(max(whole, -most), most) * self.unit


def _times(neighbours: Neighbours) -> int:
    return 2 if neighbours == "replace" else 1


def _dense(found: Array) -> Array:
    return np.ascontiguousarray(found, dtype=np.float64)


__all__ = ["Limit", "RatioLimit", "bits_of", "unit_of"]
