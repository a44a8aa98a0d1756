"""How far one row can move the log-likelihood over one free variable, the others held anywhere in their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity.conditionals import prove_conditional_range, prove_conditional_ranges
from pymc_dp.sensitivity.moving import parameters_of
from pymc_dp.sensitivity.proofs import Proof
from pymc_dp.sensitivity.ranges import RowRange, row_range
from pymc_dp.sensitivity.remedies import problem_of
from pymc_dp.sensitivity.row_likelihood import RowLikelihood
from pymc_dp.step_methods.gibbs.boxes import MANY, NONE, Box
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.transforms.likelihood import TableLikelihood

SAFE = {"bernoulli": (0.5,), "poisson": (1.0,), "normal": (0.0, 1.0)}
"""Any parameters inside of the support, for cells that an update does not touch."""
INSIDES: dict[str, tuple[tuple[float, float], ...]] = {
    "bernoulli": ((0.0, 1.0),),
    "categorical": ((0.0, 1.0),),
    "poisson": ((0.0, np.inf),),
    "normal": ((-np.inf, np.inf), (0.0, np.inf)),
}
"""Open intervals that parameters must be bounded within."""

FEW_BOXES = 2_000
"""Enough to see whether bounds that a remedy would propose make a range finite."""

Ends = tuple[Array, Array]
Ranges = tuple[tuple[float, ...], str]
"""One for each mechanism of an update, and where they come from."""


def update_range(
    table: TableLikelihood, boxes: Sequence[Box], name: str, element: int | None, *, neighbours: str, moves: bool
) -> RowRange:
    """Bound the range over one free variable of what one row adds to the log-likelihood of a table.

    Parameters
    ----------
    table : TableLikelihood
    boxes : sequence of Box
        Bounds of its parameters in each cell.
    name : str
        The free variable.
    element : int or None
        Its only element that is updated; None for all at once.
    neighbours : {"replace", "add_remove"}
    moves : bool
        Whether a row can leave its cell for another.
    """
    if table.cells.count == 0:
        return RowRange(value=0.0, sensitivity=0.0, reason="no rows")
    touched = []
    for box in boxes:
        owner = box.owner(name)
        hit = (owner != NONE) if element is None else (owner == element) | (owner == MANY)
        touched.append(hit.reshape(len(hit), -1).any(axis=1))
    anywhere = np.any(touched, axis=0)
    family = table.family.distribution
    safe = SAFE[family] if family in SAFE else (1 / boxes[0].low.shape[-1],)
    ends = []
    for box, inside in zip(boxes, safe, strict=True):
        mask = anywhere.reshape(-1, *(1,) * (box.low.ndim - 1))
        ends.append((np.where(mask, box.low, inside), np.where(mask, box.high, inside)))
    held = _others_held(table, ends, touched) if family == "normal" else ends
    return row_range(family, table.statistic, held, neighbours=neighbours, moves=moves and table.cells.count > 1)


def _others_held(table: TableLikelihood, ends: Sequence[Ends], touched: Sequence[Array]) -> list[Ends]:
    """Boxes over one parameter of a normal, with the other held where the range is largest.

    Over the mean, log-likelihood differences are proportional to the precision: largest at the least sd. Over the sd
    they are, for every pair of rows, convex in the squared distances to the mean: largest at an end of the mean's
    bounds, or where a distance is 0. These three means stand as cells of their own, so that a row that leaves one cell
    for another may meet the worst of each.
    """
    mean, sd = ends
    if not touched[1].any():
        return [mean, (sd[0], sd[0])]
    if touched[0].any() or not np.isfinite(mean).all():
        return list(ends)
    statistic: Any = table.statistic
    middle = np.clip((statistic.low + statistic.high) / 2, *mean)
    places = np.concatenate([mean[0], mean[1], middle])
    return [(places, places), (np.tile(sd[0], 3), np.tile(sd[1], 3))]


def held_ranges(
    likelihood: HeldLikelihood, name: str, neighbours: Neighbours, elements: Sequence[int | None]
) -> Ranges | Problem:
    """Bound the range over one free variable of what one row adds to a likelihood whose rows are held one by one.

    Parameters
    ----------
    likelihood : HeldLikelihood
    name : str
        The free variable.
    neighbours : {"replace", "add_remove"}
    elements : sequence of int or None
        Its elements, each updated by itself; [None] for all at once.

    Returns
    -------
    (tuple of float, str) or Problem
        A range for each, and where they come from; what is in the way if one of them is not finite.
    """

    def prove(row: RowLikelihood, most: int | None = None) -> Sequence[Proof]:
        symbol = parameters_of(row).get(name)
        if symbol is None:
            value = 0.0 if row.whole is not None else math.inf
            return [Proof(value=value, attained=0.0, obstacle=row.failure)] * len(elements)
        if list(elements) == [None]:
            return [prove_conditional_range(row, neighbours, symbol, most=most)]
        return prove_conditional_ranges(row, neighbours, symbol, most=most)

    def worst(row: RowLikelihood) -> Proof:
        return max(prove(row, FEW_BOXES), key=lambda proof: proof.value)

    proofs = prove(likelihood.row)
    if any(math.isinf(proof.value) for proof in proofs):
        return problem_of(likelihood.row, worst, max(proofs, key=lambda proof: proof.value))
    gap = max(proof.gap for proof in proofs)
    return tuple(proof.value for proof in proofs), f"proved from the graph of {likelihood.name}, to within {gap:.1%}"


def improper(table: TableLikelihood, boxes: Sequence[Box]) -> list[str]:
    """Free variables behind parameters that can reach an end of their support."""
    names: dict[str, None] = {}
    for box, (low, high) in zip(boxes, INSIDES[table.family.distribution], strict=True):
        if not ((box.low > low) & (box.high < high)).all():
            names.update(dict.fromkeys(name for name, places in box.feeds.items() if (places != NONE).any()))
    return list(names)


__all__ = ["Ranges", "held_ranges", "improper", "update_range"]
