"""How far one row can move the log-likelihood over one free variable, the others held anywhere in their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families import FAMILIES
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import substituted
from pymc_dp.intervals.feeds import MANY, NONE
from pymc_dp.proofs.closed_form_one_parameter import one_parameter_range
from pymc_dp.proofs.closed_form_ranges import RULED, RowRange, row_range
from pymc_dp.proofs.conditional_ranges import prove_conditional_range, prove_conditional_ranges
from pymc_dp.proofs.lipschitz_in_rows import prove_per_unit
from pymc_dp.proofs.one_variable import parameters_of
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.proofs.remedies import problem_of
from pymc_dp.proofs.row_likelihood import Part, RowLikelihood
from pymc_dp.proofs.row_ranges import Proof
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.transforms.likelihood import TableLikelihood

SAFE = {"bernoulli": (0.5,), "poisson": (1.0,), "normal": (0.0, 1.0)}
"""Any parameters inside of the support, for cells that an update does not touch."""
ANY = (-np.inf, np.inf)
INSIDES: dict[str, tuple[tuple[float, float], ...]] = {
    "bernoulli": ((0.0, 1.0),),
    "categorical": ((0.0, 1.0),),
    "poisson": ((0.0, np.inf),),
    "normal": (ANY, (0.0, np.inf)),
    "lognormal": (ANY, (0.0, np.inf)),
    "multinomial": (ANY, (0.0, 1.0)),
}
"""Open intervals that parameters must be bounded within."""

FEW_BOXES = 2_000
"""Enough to see whether bounds that a remedy would propose make a range finite."""

Ends = tuple[Array, Array]
Ranges = tuple[tuple[float, ...], str]
"""One for each mechanism of an update, and where they come from."""


def summed() -> frozenset[str]:
    """Return the likelihoods of which exact sums are enough, by the names of their random operations."""
    known = {name for name, family in FAMILIES.items() if family.one_parameter is not None}
    return RULED | known | {"lognormal", "multinomial"}


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
    return table_range(table, [(box.low, box.high) for box in boxes], touched, neighbours=neighbours, moves=moves)


def table_range(
    table: TableLikelihood, ends: Sequence[Ends], touched: Sequence[Array], *, neighbours: str, moves: bool
) -> RowRange:
    """Bound the range of what one row adds to the log-likelihood of a table, over some of its parameters.

    Parameters
    ----------
    table : TableLikelihood
    ends : sequence of (low, high)
        Bounds of its parameters in each cell.
    touched : sequence of (n_cells,) boolean arrays
        For each parameter the cells in which it moves; where it does not, it is held anywhere within its bounds.
    neighbours : {"replace", "add_remove"}
    moves : bool
        Whether a row can leave its cell for another.
    """
    anywhere = np.any(touched, axis=0)
    family, statistic, moves = table.family.distribution, table.statistic, moves and len(anywhere) > 1
    if table.family.one_parameter is not None:
        value = one_parameter_range(
            table.family.one_parameter, statistic, ends, anywhere, neighbours=neighbours, moves=moves
        )
        return RowRange(value=value, sensitivity=math.inf, reason=f"{table.observed.title} rows, one parameter")
    if family == "multinomial":
        shares = _safe(ends[1:], anywhere, (1 / ends[1][0].shape[-1],))
        one = row_range("categorical", statistic, shares, neighbours=neighbours, moves=moves)
        trials = statistic.per_row if isinstance(statistic, LevelCounts) else math.inf
        return RowRange(
            value=trials * one.value, sensitivity=trials * one.sensitivity, reason=f"trials by {one.reason}"
        )
    if family == "lognormal":
        family, statistic = "normal", _of_logarithm(statistic)
    inside = SAFE[family] if family in SAFE else (1 / ends[0][0].shape[-1],)
    safe = _safe(ends, anywhere, inside)
    held = _others_held(statistic, safe, touched) if family == "normal" else safe
    return row_range(family, statistic, held, neighbours=neighbours, moves=moves)


def _safe(ends: Sequence[Ends], anywhere: Array, inside: Sequence[float]) -> list[Ends]:
    """Put parameters of cells that nothing touches to a place inside of their support."""
    found = []
    for (low, high), place in zip(ends, inside, strict=True):
        mask = anywhere.reshape(-1, *(1,) * (low.ndim - 1))
        found.append((np.where(mask, low, place), np.where(mask, high, place)))
    return found


def _of_logarithm(statistic: Any) -> BoundedMoments:
    """Return the bounds of a logarithm, which is normal.

    Its line and its square are rounded apart, by half a step each; about the rounded line the square is then off by
    less than 3/2 of ``half_width^2 / GRID``. The range of a normal leaves room for one of these: so twice that width.
    """
    low, high = float(np.log(statistic.low)), float(np.log(statistic.high))
    powers = (1, 2) if statistic.features[-1].transform == "log_square" else (1,)
    return BoundedMoments(low=low, high=high, centre=0.0, unit=1.0, half_width=high - low, powers=powers)


def separate(table: TableLikelihood, boxes: Sequence[Box]) -> bool:
    """Whether closed forms bound what a row moves: all parameters but one are known, where they ask for that."""
    family = table.family.one_parameter
    if family is None:
        return True
    return len(table.statistic.labels) == 1 and all(
        slot == family.slot or bool((box.low == box.high).all()) for slot, box in enumerate(boxes)
    )


def _others_held(statistic: Any, ends: Sequence[Ends], touched: Sequence[Array]) -> list[Ends]:
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


def held_per_unit(likelihood: HeldLikelihood, name: str, elements: Sequence[int | None]) -> Ranges | Problem:
    """Bound the range per unit of a metric, over one free variable or each element of it, the others anywhere.

    Variables that rows meet in a linear predictor, or choose among, are proved together, which bounds each of them.
    """
    nodes = likelihood.nodes
    assert nodes is not None
    row = _moving_alone(likelihood.row, name)
    if name not in parameters_of(row):
        return (0.0,) * len(elements), "no row"
    try:
        found = prove_per_unit([row], likelihood.every, nodes.metric)
    except UnsupportedModelError as error:
        return error.problems[0]
    reason = f"per unit of ρ = {nodes.metric}, proved from the graph of {likelihood.name}, at {nodes}"
    return (found.value,) * len(elements), reason


def _moving_alone(row: RowLikelihood, name: str) -> RowLikelihood:
    """Return the log-likelihood with other variables shared by two places, where these stand by themselves."""
    if row.whole is None:
        return row
    others = {
        symbol: replace(symbol, role="public")
        for symbol in row.symbols
        if symbol.role == "parameter" and symbol.name != name
    }
    parts = tuple(Part(sign=part.sign, expression=substituted(part.expression, others)) for part in row.parts)
    return RowLikelihood(name=row.name, whole=substituted(row.whole, others), parts=parts)


def improper(table: TableLikelihood, boxes: Sequence[Box]) -> list[str]:
    """Free variables behind parameters that can reach an end of their support."""
    names: dict[str, None] = {}
    one = table.family.one_parameter
    known = [(one.low, one.high) if slot == one.slot else ANY for slot in range(len(boxes))] if one else None
    for box, (low, high) in zip(boxes, known or INSIDES[table.family.distribution], strict=True):
        if not ((box.low > low) & (box.high < high)).all():
            names.update(dict.fromkeys(name for name, places in box.feeds.items() if (places != NONE).any()))
    return list(names)


__all__ = ["Ranges", "held_per_unit", "held_ranges", "improper", "separate", "summed", "table_range", "update_range"]
