"""How far one row can move the log-likelihood over one free variable, the others held anywhere in their bounds.

What to say about variables that a row could move by any amount, and what would do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.inspection.priors import Prior
from pymc_dp.intervals.feeds import MANY, NONE
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.step_methods.gibbs.conjugacy import Dependents
from pymc_dp.transforms.likelihood import TableLikelihood

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


__all__ = ["MARGINALISE", "Ranges", "improper", "joint", "unbounded", "update_range"]
