"""Conditions that a search may decide: what is chosen by one then has slopes, whichever way it goes.

Where a condition is open on a box, an expression jumps there as far as interval arithmetic can tell. With the condition
replaced by a free choice of true or false, each choice is as smooth as its branch; it holds all that the expression can
be, and boxes on which the condition goes the other way are empty. The values at atoms of a censored variable, for
example, are one choice each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.intervals.expression import Expression, Symbol, Tape, decision, in_order, leaf, rebuilt
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.meeting_points import roles, unmoved

MOST_CHOICES = 8
"""Entries of a condition that are decided one by one."""
Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Symbol):
    """Whether a condition holds, as a symbol."""


def with_decisions(expression: Expression) -> Expression:
    """Return an expression whose conditions, where they are open, are decided by choices of their own.

    Notes
    -----
    Its supremum is that of `expression`, but its slopes say nothing about how `expression` changes from one branch to
    the other: it is for bounds of values, not of slopes.
    """
    tape = Tape([expression])
    known = tape.values(tape.low[None], tape.high[None])
    conditions = dict.fromkeys(node.inputs[0] for node in tape.nodes if node.kind == "switch" and node.name == "Switch")
    choices: dict[Expression, Expression] = {}
    for condition in conditions:
        base, found = unmoved(condition), known[condition]
        size = max(found.low.size, known[base].low.size)
        is_open = (found.low != found.high).any() or found.flags.any()
        if condition.symbols and is_open and size <= MOST_CHOICES and base not in choices:
            choices[base] = leaf(_choice(base, known[base].shape[1:]))
    return _with_choices(expression, choices)


def _choice(condition: Expression, shape: tuple[int, ...]) -> Choice:
    found = roles(condition)
    role = next(iter(found))
    if len(found) > 1:
        of_row, of_parameters = found & {"row", "joint"}, found & OF_PARAMETERS
        role = ("joint" if of_row else "public joint") if of_parameters else "row"
    return Choice(name="a condition", low=np.zeros(shape), high=np.ones(shape), integer=True, role=role)


def _with_choices(expression: Expression, choices: dict[Expression, Expression]) -> Expression:
    """Return the expression with the conditions of its switches decided by choices, and nothing else that uses them."""
    memo: dict[Expression, Expression] = {}
    made: dict[Expression, Expression] = {}
    for node in in_order([expression]):
        inputs = [memo[item] for item in node.inputs]
        if node.kind == "switch" and node.name == "Switch" and (base := unmoved(node.inputs[0])) in choices:
            made.setdefault(base, decision(memo[base], choices[base]))
            inputs[0] = _over(made[base], node.inputs[0])
        memo[node] = rebuilt(node, inputs)
    return memo[expression]


def _over(base: Expression, condition: Expression) -> Expression:
    """Return what moves entries in `condition`, over another base."""
    if condition.kind != "moved":
        return base
    return rebuilt(condition, [_over(base, condition.inputs[0])])


def limits(condition: Expression) -> tuple[Symbol, tuple[Ends, Ends]] | None:
    """Return what a condition leaves of the only scalar it depends on, where it fails and where it holds.

    None where it is more than a comparison of a scalar with a number. The number belongs to both sides.
    """
    if condition.kind != "elementwise" or condition.name not in SIDES:
        return None
    ends = [_number(item) for item in condition.inputs]
    symbols = [unmoved(item).symbol for item in condition.inputs]
    side = 0 if ends[0] is None else 1
    symbol, size = symbols[side], ends[1 - side]
    if symbol is None or symbol.size != 1 or size is None:
        return None
    ranges = {"below": (-np.inf, size[1]), "above": (size[0], np.inf), "at": size, "anywhere": (-np.inf, np.inf)}
    fails, holds = SIDES[condition.name]
    if side == 1:
        fails, holds = (OPPOSITE.get(item, item) for item in (fails, holds))
    return symbol, (ranges[fails], ranges[holds])


SIDES = {
    "LT": ("above", "below"),
    "LE": ("above", "below"),
    "GT": ("below", "above"),
    "GE": ("below", "above"),
    "EQ": ("anywhere", "at"),
    "NEQ": ("at", "anywhere"),
}
"""Where the left side of a comparison is where it fails, and where it holds."""
OPPOSITE = {"above": "below", "below": "above"}


def _number(expression: Expression) -> Ends | None:
    """Enclose what depends on no symbol, in one interval; None for anything else."""
    if expression.symbols:
        return None
    nowhere = np.zeros((1, 0))
    found = Tape([expression]).values(nowhere, nowhere)[expression]
    if found.flags.any() or np.ptp(found.low) or np.ptp(found.high):
        return None
    return float(found.low.flat[0]), float(found.high.flat[0])


__all__ = ["Choice", "limits", "with_decisions"]
