"""Conditions that a search may decide: what is chosen by one then has slopes, whichever way it goes.

Where a condition is open on a box, an expression jumps there as far as interval arithmetic can tell. With the condition
replaced by a free choice of true or false, each choice is as smooth as its branch; it holds all that the expression can
be, and boxes on which the condition
goes the other way are empty. The values at atoms of a censored variable, for
example, are one choice each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.sensitivity.curvature import OF_PARAMETERS
from pymc_dp.sensitivity.cuts import roles
from pymc_dp.sensitivity.expression import Expression, Symbol, Tape, decision, in_order, leaf, rebuilt

MOST_CHOICES = 8
"""Entries of a condition that are decided one by one."""


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
    chosen = {}
    for condition in conditions:
        found = known[condition]
        size = int(np.prod(found.shape[1:]))
        is_open = (found.low != found.high).any() or found.flags.any()
        if condition.symbols and is_open and size <= MOST_CHOICES:
            chosen[condition] = decision(condition, leaf(_choice(condition, found.shape[1:])))
    return _with_conditions(expression, chosen)


def _choice(condition: Expression, shape: tuple[int, ...]) -> Choice:
    found = roles(condition)
    role = next(iter(found))
    if len(found) > 1:
        of_row, of_parameters = found & {"row", "joint"}, found & OF_PARAMETERS
        role = ("joint" if of_row else "public joint") if of_parameters else "row"
    return Choice(name="a condition", low=np.zeros(shape), high=np.ones(shape), integer=True, role=role)


def _with_conditions(expression: Expression, chosen: dict[Expression, Expression]) -> Expression:
    """Return the expression with the conditions of its switches replaced, and nothing else that uses them."""
    memo: dict[Expression, Expression] = {}
    for node in in_order([expression]):
        inputs = [memo[item] for item in node.inputs]
        if node.kind == "switch" and node.name == "Switch" and node.inputs[0] in chosen:
            old = chosen[node.inputs[0]]
            inputs[0] = rebuilt(old, [inputs[0], old.inputs[1]])
        memo[node] = rebuilt(node, inputs)
    return memo[expression]


__all__ = ["Choice", "with_decisions"]
