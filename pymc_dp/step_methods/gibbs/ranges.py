"""How far one row can move the log-likelihood over one free variable, the others held anywhere in their bounds.

What to say about variables that a row could move by any amount, and what would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.priors import Prior
from pymc_dp.intervals.expression import substituted
from pymc_dp.intervals.feeds import MANY, NONE
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.conditional_ranges import prove_conditional_range, prove_conditional_ranges
from pymc_dp.proofs.lipschitz_in_rows import prove_per_unit
from pymc_dp.proofs.one_variable import parameters_of
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.proofs.remedies import problem_of
from pymc_dp.proofs.row_likelihood import Part, RowLikelihood
from pymc_dp.proofs.row_ranges import Proof
from pymc_dp.step_methods.gibbs.conjugacy import Dependents
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.transforms.likelihood import TableLikelihood

FEW_BOXES = 2_000
"""Enough to see whether bounds that a remedy would propose make a range finite."""

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
    touched = []
    for box in boxes:
        owner = box.owner(name)
        hit = (owner != NONE) if element is None else (owner == element) | (owner == MANY)
        touched.append(hit.reshape(len(hit), -1).any(axis=1))
    return table.row_range([(box.low, box.high) for box in boxes], neighbours, moves=moves, moving=touched)


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
    form = table.family.closed_form
    assert form is not None
    for slot, box in enumerate(boxes):
        low, high = form.inside(slot)
        if not ((box.low > low) & (box.high < high)).all():
            names.update(dict.fromkeys(name for name, places in box.feeds.items() if (places != NONE).any()))
    return list(names)


MARGINALISE = "Marginalise it, or sample dp.privatize(...) instead."


def unbounded(
    prior: Prior, dependents: Dependents, free: Mapping[Variable, Box], priors: Mapping[str, Prior]
) -> Problem:
    """Say which variables have to be bounded for an update to have a finite range.

    Parameters
    ----------
    prior : Prior
        Of the variable that is to be updated.
    dependents : Dependents
    free : mapping of Variable to Box
        Of every free variable.
    priors : mapping of str to Prior
        Likewise, by name.
    """
    boxes = {str(rv.name): box for rv, box in free.items()}
    blamed = {name for table, bounds in dependents.tables for name in improper(table, bounds)}
    names = [name for name in priors if name in blamed]
    own = boxes[prior.name]
    if not names and not np.isfinite([own.low, own.high]).all():
        names = [prior.name]
    bounds = ", ".join(f"{name!r}: {_suggestion(boxes[name], priors[name])}" for name in names)
    return Problem(
        where=prior.name,
        what=f"one row can move the conditional of {prior.name!r}, whose support is "
        f"({float(own.low.min()):g}, {float(own.high.max()):g}), by any amount",
        remedy=f"Bound the parameter space by public numbers: dp.truncate(model, {{{bounds}}})."
        if names
        else "Keep the numbers in the likelihood away from the ends of their range (a probability of 0).",
    )


def joint(prior: Prior) -> Problem:
    """Say why a variable whose elements have a joint prior has no update, and what would move it."""
    what = (
        f"the elements of {prior.name!r} have a joint prior ({prior.distribution}), and TemperedGibbs moves them one "
        "by one, each between public bounds of its own"
    )
    if not prior.variable.type.dtype.startswith("float"):
        return Problem(where=prior.name, what=what, remedy=MARGINALISE)
    remedy = "Give its elements bounded priors of their own, or use dp.BarkerMetropolis(), which moves all at once."
    if prior.distribution == "dirichlet":
        alone = "of categorical or multinomial variables alone"
        what = f"{prior.name!r} is a dirichlet that is not itself the parameter {alone}"
        remedy = f"Use it as their probabilities, and for nothing else. {remedy}"
    return Problem(where=prior.name, what=what, remedy=remedy)


def _suggestion(box: Box, prior: Prior) -> str:
    if (box.low >= 0).all() and (box.high <= 1).all():
        return "(0.01, 0.99)" if prior.distribution != "dirichlet" else "(0.01, None)"
    return "(0.1, 10.0)" if (box.low >= 0).all() else "(-10.0, 10.0)"


__all__ = ["MARGINALISE", "Ranges", "held_per_unit", "held_ranges", "improper", "joint", "unbounded", "update_range"]
