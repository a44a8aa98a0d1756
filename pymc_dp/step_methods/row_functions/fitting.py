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
NOTHING = 1e-9
"""Range, in nats, that is put down to rounding where rows are proved to say nothing."""
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
    size: float | None = None,
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
    size : float, optional
        Proved bound of a difference of two rows (``replace``), of one row (``add_remove``), at any one point: where
        sizes are charged as well as ranges.
    """
    if neighbours == "add_remove":  # how many rows there are is private, and so is what references would add up to
        return RangeBound(limit=Limit.of(range_, neighbours, n_rows, size=size))
    with np.errstate(all="ignore"):
        options = [(tried, References())]
        options += [
            ([one - centre for one, centre in zip(tried, centres, strict=True)], references)
            for references, centres in candidates
        ]
        found = [(tried_range(centred), turn) for turn, (centred, _) in enumerate(options)]
    needed, turn = min(found)
    centred, references = options[turn]
    if references.rows:  # whatever floats say: a mean of differences of two rows ranges over no more than one of them
        needed = min(needed, range_)
    if needed <= range_ / 2 * (1 + ROUNDING) + NOTHING:
        needed = 0.0
    if size is None:
        limit, middle = Limit.of(range_, neighbours, n_rows, needed=needed), 0.0
    else:
        low, high = _ends(centred)
        middle, half = low / 2 + high / 2, (high / 2 - low / 2) * (1 + ROUNDING)
        limit = Limit.of(range_, neighbours, n_rows, needed=needed, size=max(size / 2, half))
    return RangeBound(limit=limit, references=references, middle=middle)


def _ends(tried: Sequence[Array]) -> tuple[float, float]:
    held = np.concatenate([found[np.isfinite(found)] for found in tried])
    return (float(held.min()), float(held.max())) if held.size else (0.0, 0.0)


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
    low, high = _ends([np.append(tried, 0.0)])
    short = range_ / (2 if neighbours == "replace" else 1) - (high - low)
    room = max(short, ROUNDING * (high - low)) / 2
    limit = RatioLimit.of(low - room, high + room, n_rows)
    return IntervalBound(limit=limit, anchor=anchor, neighbours=neighbours, references=references)


__all__ = ["farthest", "fitting_interval", "fitting_range", "tried_range"]
