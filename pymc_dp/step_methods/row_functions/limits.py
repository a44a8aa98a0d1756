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
FEWEST_BITS = 8
ANY_TABLE = 2**33
"""Rows, more than any memory holds."""
LEAST_EXPONENT = -1022
"""Of a unit: smaller ones have no inverse."""


def bits_of(n_rows: int) -> int:
    """Return how many bits the number of one row may have, so that sums over rows stay within int64."""
    return max(FEWEST_BITS, min(MOST_BITS, SUM_BITS - max(1, n_rows).bit_length()))


def unit_of(size: float, n_rows: int) -> float:
    """Return a public power of 2, of which numbers up to `size` are few enough multiples to be summed in int64."""
    return 2.0 ** max(math.frexp(size)[1] - bits_of(n_rows), LEAST_EXPONENT)


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
        from pymc_dp.step_methods.row_functions.summing_kernels import add_rows

        owner = np.zeros(len(weights), dtype=np.int64) if owner is None else owner
        size = -1.0 if self.size is None else float(self.size)
        add_rows(_dense(found), weights, owner, 1.0 / self.unit, float(self.width), size, total)

    def values(self, total: Array) -> Array:
        """Return a sum in nats; without a `size` less its largest entry in every column: floats have digits near 0."""
        return (total - total.max(axis=0, keepdims=True) if self.size is None else total) * self.unit


def _times(neighbours: Neighbours) -> int:
    return 2 if neighbours == "replace" else 1


def _dense(found: Array) -> Array:
    return np.ascontiguousarray(found, dtype=np.float64)


__all__ = ["Limit", "bits_of", "unit_of"]
