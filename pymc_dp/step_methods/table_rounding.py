"""What floats do to the likelihood of exact sums: how far off it may be, from public numbers alone.

The sums are whole numbers, but the likelihood of them is added up in floats, of terms that may nearly cancel: beside
(x - μ)² / 2 with μ near 10⁶ and 10⁷ rows no float has a digit left for one row. So its rounding is charged, and where
that would cost more than the rows themselves the model is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytensor.tensor as pt

from pymc_dp.errors import Problem
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.transforms.likelihood import TableLikelihood, sums_logp

OPERATIONS = 32
"""Roundings of a term, from the parameter to the sum; each cell adds one more."""
SHARE = 0.1
"""Of the range of a row, above which rounding is refused rather than charged."""
Ends = tuple[Array, Array]


def rounding(table: TableLikelihood, boxes: Sequence[Ends], rows: float | None = None) -> float:
    """Return how far floats may be off at one point of the parameter space.

    Parameters
    ----------
    table : TableLikelihood
    boxes : sequence of (low, high)
        Bounds of its parameters in each cell.
    rows : float, optional
        Rows that are added up; all by default.
    """
    cells = table.cells
    count = float(cells.groups.sum()) / max(1, cells.n_private) if rows is None else rows
    return max(count, 1.0) * largest_term(table, boxes) * float(np.finfo(np.float64).eps) * (OPERATIONS + cells.count)


def with_rounding(found: RowRange, off: float) -> RowRange:
    """Add what rounding can move a log-likelihood of sums by: at two points (for Δl at one), on each of two tables."""
    if not 0 < found.value < np.inf:
        return found
    return RowRange(value=found.value + 4 * off, sensitivity=found.sensitivity + 2 * off, reason=found.reason)


def rounding_problem(found: RowRange, off: float, name: str) -> Problem | None:
    """Say where rounding costs so much that draws would be of it rather than of the rows."""
    if not 0 < found.value < np.inf or 4 * off <= SHARE * found.value:
        return None
    return Problem(
        where=name,
        what="the log-likelihood of all rows can be so large that floats have no digits left for that of one row",
        remedy="Subtract a public number from its values and from their mean, so that both lie near 0, or give its "
        "parameters bounds nearer to those of its values.",
    )


def largest_term(table: TableLikelihood, boxes: Sequence[Ends]) -> float:
    """Return the largest absolute value of the terms that one row adds, over the corners of the parameters' bounds."""
    if table.cells.count == 0:
        return 0.0
    inputs = [
        pt.TensorType("float64", (None,) * np.ndim(low))(f"parameter_{place}") for place, (low, _) in enumerate(boxes)
    ]
    sums, sizes = pt.matrix("sums"), pt.vector("sizes")
    count, width = table.cells.count, len(table.statistic.labels)
    graph = sums_logp(table.family, table.statistic, inputs, count, sums, sizes)
    function = plain_function([*inputs, sums, sizes], graph)
    one, none = np.ones(count), np.zeros(count)
    largest = 0.0
    for corner in product(*boxes):
        held = [np.broadcast_to(end, (count, *np.shape(end)[1:])).astype(np.float64) for end in corner]
        with np.errstate(all="ignore"):
            terms = [
                scale * np.abs(function(*held, np.tile(unit, (count, 1)), none))
                for scale, unit in zip(_scales(table), np.eye(width), strict=True)
            ]
            level = np.abs(function(*held, np.zeros((count, width)), one))
        together = np.max(terms, axis=0) if isinstance(table.statistic, LevelCounts) else np.sum(terms, axis=0)
        found = together + np.where(np.isfinite(level), level, 0.0)
        largest = max(largest, float(np.max(found[np.isfinite(found)], initial=0.0)))
    return largest


def _scales(table: TableLikelihood) -> Sequence[float]:
    """Largest absolute value of what a row adds to each sum."""
    statistic = table.statistic
    if isinstance(statistic, LevelCounts):
        return [float(statistic.per_row)] * len(statistic.labels)
    pairs = zip(statistic.scales, statistic.shifts, strict=True)
    return [scale + abs(shift) for scale, shift in pairs]


__all__ = ["largest_term", "rounding", "rounding_problem", "with_rounding"]
