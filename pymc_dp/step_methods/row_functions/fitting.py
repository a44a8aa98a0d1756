"""Which bound fits a likelihood: no less than what is proved of it, and no less than what its numbers need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.step_methods.row_functions.bounds import RangeBound, References
from pymc_dp.step_methods.row_functions.limits import Limit

MOST_POINTS = 512
"""Points at which rows are compared."""
MOST_CUTS = 50
"""Linear programs that are solved for a mean in the middle of all rows."""
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
        options = [(tried, References(), 0.0)]
        options += [
            ([one - centre for one, centre in zip(tried, centres, strict=True)], references, float(centres[0][0, 0]))
            for references, centres in candidates
        ]
        found = [tried_range(centred) for centred, *_ in options]
    enough = max(range_ / 2, min(found)) * (1 + ROUNDING)  # the simplest of those that are charged least
    turn = next(turn for turn, needed in enumerate(found) if needed <= enough)
    needed, (centred, references, level) = found[turn], options[turn]
    if references.rows:  # whatever floats say: a mean of differences of two rows ranges over no more than one of them
        needed = min(needed, range_)
    if needed <= range_ / 2 * (1 + ROUNDING) + NOTHING:
        needed = 0.0
    if size is None:
        return RangeBound(limit=Limit.of(range_, neighbours, n_rows, needed=needed), references=references)
    low, high = _ends(centred)
    middle, half = low / 2 + high / 2, (high / 2 - low / 2) * (1 + ROUNDING)
    return RangeBound(
        limit=Limit.of(range_, neighbours, n_rows, needed=needed, size=max(size / 2, half)),
        references=references,
        middle=middle,
        level=middle + (level if math.isfinite(level) else 0.0),
    )


def _ends(tried: Sequence[Array]) -> tuple[float, float]:
    held = np.concatenate([found[np.isfinite(found)] for found in tried])
    return (float(held.min()), float(held.max())) if held.size else (0.0, 0.0)


def extreme(columns: Sequence[Column], rows: Sequence[Array]) -> References:
    """Return the lowest and the highest row, which come first, as references."""
    return References(rows=(_reference(columns, rows, 0), _reference(columns, rows, 1)))


def _reference(columns: Sequence[Column], rows: Sequence[Array], place: int) -> tuple[Array | None, ...]:
    """Return a row as a reference: its private columns, beside the public ones of every row."""
    return tuple(None if column.public else held[place : place + 1] for column, held in zip(columns, rows, strict=True))


def proposed(columns: Sequence[Column], rows: Sequence[Array], tried: Sequence[Array]) -> list[References]:
    """Propose references: the lowest and the highest row, and the mean that lies in the middle of all rows.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of (n_rows, ...) array
        Public rows, one array per column.
    tried : sequence of (n_points, n_rows) arrays
        Their log-likelihoods. With public columns, where references stand beside every row, the middle is not looked
        for: evaluating many of them would take many times as long.
    """
    found = [extreme(columns, rows)]
    if not any(column.public for column in columns):
        mean = middle(tried)
        held = tuple(_reference(columns, rows, place) for place in mean)
        found.append(References(rows=held, weights=tuple(mean.values())))
    return found


def middle(tried: Sequence[Array]) -> dict[int, float]:
    """Return weights of columns whose weighted mean lies in the middle: the others range least about it over points.

    A linear program. Only those of its conditions, two points and a column each, that are broken are added, until none
    is.
    """
    from scipy.optimize import linprog  # heavy, and not needed by most

    with np.errstate(all="ignore"):
        held = [found[:: max(1, len(found) // MOST_POINTS)] for found in tried]
        kept = np.flatnonzero(np.all([np.isfinite(found).all(axis=0) for found in held], axis=0))
    if not len(kept):
        return {0: 0.5, 1: 0.5}
    tables = [found[:, kept] for found in held]
    weights, aim, conditions, limits = np.eye(1, len(kept))[0], -1.0, list[Array](), list[Array]()
    for _ in range(MOST_CUTS):
        centred = [found - found @ weights[:, None] for found in tables]
        if max(float(np.ptp(one, axis=0).max()) for one in centred) <= aim * (1 + ROUNDING) + NOTHING:
            break
        for table, one in zip(tables, centred, strict=True):
            between = table[one.argmax(axis=0)] - table[one.argmin(axis=0)]
            conditions.append(np.column_stack([-between, np.full(len(kept), -1.0)]))
            limits.append(-np.diagonal(between))
        solved = linprog(
            np.append(np.zeros(len(kept)), 1.0),
            A_ub=np.concatenate(conditions),
            b_ub=np.concatenate(limits),
            A_eq=np.append(np.ones(len(kept)), 0.0)[None],
            b_eq=[1.0],
        )
        if not solved.success:
            break
        weights, aim = np.where(solved.x[:-1] > NOTHING, solved.x[:-1], 0.0), float(solved.x[-1])
        weights /= weights.sum()
    return {int(kept[place]): float(weights[place]) for place in np.flatnonzero(weights)}


__all__ = ["extreme", "fitting_range", "middle", "proposed", "tried_range"]
