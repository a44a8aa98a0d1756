"""Means and squares of private columns, released before a walk: made-up rows have those of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.gradients.row_parts import ROOM
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.persons import Grouped

MOST_ENTRIES = 128
"""Numbers of a row of which moments are released; with more, noise is all that is seen."""
EVEN = 1 / 3
"""Mean square of what is spread evenly from -1 to 1."""
UNKNOWN = 0.1
"""Variance of a moment before anything is released."""
HIDDEN, FAR = 0.5, 3.0
"""Noise over a variance above which it is hidden, and deviations of noise above which a mean is not."""
LEAST_VARIANCE = 1e-6
FARTHEST = 30.0
"""Standard deviations below 0 beyond which a noised value is taken to lie there."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One number of a row: of which column, where in it, and its bounds."""

    place: int
    at: int
    low: float
    high: float
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Moments:
    """What is released of columns.

    Attributes
    ----------
    entries : tuple of Entry

    Notes
    -----
    A row adds 1, and u and u² of each number, u from -1 to 1 between its bounds, divided by the largest norm that this
    may have; a person adds the mean of that over all rows.

    **Guarantee.** The norm is at most 1, which the kernel enforces; a row that holds NaN adds nothing.
    """

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, inspection: RowInspection, stated: Mapping[str, Any]) -> Moments:
        """Return what is released of columns: of those with bounds that nobody stated and nothing observes."""
        observed = {item.leaf for item in inspection.observed}
        found = list[Entry]()
        for place, column in enumerate(inspection.columns):
            if column.public or column.name in stated or column.leaf in observed or len(column.levels) > 2:
                continue
            if place == inspection.weight or column.bounds is None:
                continue
            found += _entries(place, column)
        return cls(entries=tuple(found) if len(found) <= MOST_ENTRIES else ())

    @property
    def count(self) -> int:
        """Numbers that are released."""
        return 1 + 2 * len(self.entries)

    def rows(self, chunk: Sequence[Array] | Grouped) -> Array:
        """Return what rows add, or persons, (n, count)."""
        if not isinstance(chunk, Grouped):
            return self._of(chunk)
        found, lengths = self._of(chunk.columns), np.diff(chunk.edges)
        return np.add.reduceat(found, chunk.edges[:-1], axis=0) / lengths[:, None] if len(lengths) else found[:0]

    def _of(self, columns: Sequence[Array]) -> Array:
        own = [_flat(columns[one.place])[:, one.at] for one in self.entries]
        low, high = (np.array([getattr(one, end) for one in self.entries]) for end in ("low", "high"))
        places = (np.column_stack(own).astype(np.float64) - (low + high) / 2) / ((high - low) / 2)
        return np.column_stack([np.ones(len(places)), places, places**2]) * (ROOM / math.sqrt(self.count))

    def drawn(
        self, columns: Sequence[Array], released: Array, deviation: float, rng: np.random.Generator
    ) -> tuple[list[Array], list[int]]:
        """Return made-up columns with the moments that were released, and the places of those that are well known.

        Parameters
        ----------
        columns : sequence of (n_rows, ...) arrays
            Made up.
        released : (count,) array
            In units of `rows`.
        deviation : float
            Of the noise on it.
        rng : numpy.random.Generator

        Notes
        -----
        A number is drawn from the beta distribution between its bounds that has its mean and variance. Where that is
        almost as large as it may be, that lies at the ends: it is a dummy, with its share. A number of which noise
        hides both stays as it was made up.
        """
        size = math.sqrt(self.count) / ROOM
        rows, count = released * size, len(self.entries)
        total = max(float(rows[0]), deviation * size)
        noise = deviation * size / total
        weight = UNKNOWN / (UNKNOWN + noise**2)
        means, squares = np.split(rows[1:] / total, [count])
        found, known = list(columns), list[int]()
        for place in dict.fromkeys(one.place for one in self.entries):
            shape = columns[place].shape
            flat = _flat(columns[place]).astype(np.float64)
            clear = True
            for index, one in enumerate(self.entries):
                if one.place != place:
                    continue
                mean = float(np.clip(weight * means[index], -0.999, 0.999))
                spread = _positive(float(squares[index]) - mean**2, noise)
                if noise > HIDDEN * spread and abs(mean) < FAR * noise:
                    clear = False  # noise hides both: as it was made up, evenly
                    continue
                variance = weight * spread + (1 - weight) * EVEN * (1 - mean**2)
                flat[:, one.at] = one.low + (one.high - one.low) * _beta(mean, variance, len(flat), rng)
                if one.whole:
                    flat[:, one.at] = _rounded(flat[:, one.at], rng)
            found[place] = flat.reshape(shape).astype(columns[place].dtype)
            if clear:
                known.append(place)
        return found, known


def _flat(column: Array) -> Array:
    """Return the numbers of rows side by side, also of no rows."""
    return column.reshape(len(column), math.prod(column.shape[1:]))


def _entries(place: int, column: Column) -> list[Entry]:
    shape, found = (column.width,), list[Entry]()
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), shape) for end in _ends(column))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).any()):
        return []
    for at in range(column.width):
        if low[at] < high[at]:
            found.append(
                Entry(place=place, at=at, low=float(low[at]), high=float(high[at]), whole=bool(column.integer))
            )
    return found


def _ends(column: Column) -> tuple[Any, Any]:
    assert column.bounds is not None
    return column.ends if column.ranges else column.bounds


def _positive(value: float, noise: float) -> float:
    """Return the mean of a positive number of which a noised value is known, and nothing else."""
    from scipy.special import log_ndtr

    at = max(value / noise, -FARTHEST)
    return max(value + noise * math.exp(-at * at / 2 - math.log(2 * math.pi) / 2 - float(log_ndtr(at))), LEAST_VARIANCE)


def _beta(mean: float, variance: float, count: int, rng: np.random.Generator) -> Array:
    """Draw from a beta distribution, given mean and variance of what lies between -1 and 1."""
    middle, most = (1 + mean) / 2, (1 - mean**2) / 4
    size = most / min(max(variance / 4, LEAST_VARIANCE), 0.98 * most) - 1
    return rng.beta(middle * size, (1 - middle) * size, size=count)


def _rounded(values: Array, rng: np.random.Generator) -> Array:
    """Round to whole numbers such that means stay."""
    low = np.floor(values)
    return low + (rng.random(len(values)) < values - low)


__all__ = ["Moments"]
