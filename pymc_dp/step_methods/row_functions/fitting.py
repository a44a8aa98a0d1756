"""Which bound fits a likelihood: no less than what is proved of it, and no less than what its numbers need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.row_functions.bounds import IntervalBound, RangeBound, References
from pymc_dp.step_methods.row_functions.limits import Limit, RatioLimit

MOST_POINTS = 512
"""Points at which pairs of rows are compared."""
ROUNDING = 1e-6
"""Relative excess of what rows need over what is proved that is put down to rounding, and cut off."""


def tried_range(tried: Sequence[Array]) -> float:
    """Return the largest range over points of one column: of (n_points, n_rows) arrays without what is not finite."""
    with np.errstate(all="ignore"):
        ranges = np.concatenate([np.ptp(found, axis=0) for found in tried])
    return float(np.max(ranges[np.isfinite(ranges)], initial=0.0))


def fitting_range(
    tried: Sequence[Array],
    candidates: Iterable[tuple[References, Sequence[Array]]],
    *,
    range_: float,
    neighbours: Neighbours,
    n_rows: int,
) -> RangeBound:
    """Choose references, and a bound of how far the number of one row may range over points.

    Parameters
    ----------
    tried : sequence of (n_points, n_rows) arrays
        Log-likelihoods of public rows, for several values of other parameters.
    candidates : iterable of (References, sequence of arrays)
        What could be subtracted, and what it is for each of `tried`: (n_points, n_rows or 1) arrays.
    range_ : float
        Proved bound of the range of a difference of two rows (``replace``), of one row (``add_remove``).
    neighbours : {"replace", "add_remove"}
    n_rows : int
        Most rows that a table may have.
    """
    if neighbours == "add_remove":  # how many rows there are is private, and so is what references would add up to
        return RangeBound(limit=Limit.of(range_, neighbours, n_rows))
    options = [(tried_range(tried), References())]
    options += [
        (tried_range([one - centre for one, centre in zip(tried, centres, strict=True)]), references)
        for references, centres in candidates
    ]
    needed, references = min(options, key=lambda option: option[0])
    if needed <= range_ / 2 * (1 + ROUNDING):
        needed = 0.0
    return RangeBound(limit=Limit.of(range_, neighbours, n_rows, needed), references=references)


def farthest(tried: Sequence[Array]) -> tuple[int, int]:
    """Return the two columns whose difference ranges most over points."""
    best, pair = -1.0, (0, 0)
    for found in tried:
        some = found[:: max(1, len(found) // MOST_POINTS)]
        for place in range(found.shape[1]):
            with np.errstate(all="ignore"):
                ranges = np.ptp(some - some[:, place : place + 1], axis=0)
            ranges = np.where(np.isfinite(ranges), ranges, -1.0)
            if ranges.max() > best:
                best, pair = float(ranges.max()), (place, int(ranges.argmax()))
    return pair


def fitting_interval(
    tried: Array, *, anchor: Array, range_: float, neighbours: Neighbours, n_rows: int, references: References
) -> IntervalBound:
    """Choose an interval for the numbers of rows less those at an anchor.

    Parameters
    ----------
    tried : array
        Such numbers, of public rows.
    anchor : array
    range_ : float
        As for `fitting_range`.
    neighbours : {"replace", "add_remove"}
    n_rows : int
    references : References
    """
    held = tried[np.isfinite(tried)]
    low, high = float(np.min(held, initial=0.0)), float(np.max(held, initial=0.0))
    short = range_ / (2 if neighbours == "replace" else 1) - (high - low)
    room = max(short, ROUNDING * (high - low)) / 2
    limit = RatioLimit.of(low - room, high + room, n_rows)
    return IntervalBound(limit=limit, anchor=anchor, neighbours=neighbours, references=references)


__all__ = ["farthest", "fitting_interval", "fitting_range", "tried_range"]
