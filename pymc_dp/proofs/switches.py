"""Switches whose branches meet where the condition changes, as in Huber's density: continuous, and maybe concave.

A condition on parameters makes an expression jump, unless both branches agree there. Where everything depends on one
number t compared with a constant k, that is checked at t = k (and -k for |t|), to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.intervals.expression import Expression, Symbol, Tape, leaf, moved, replaced, switch
from pymc_dp.intervals.rules import RULES
from pymc_dp.proofs.recognised_functions import number, plain

ROUNDING = 1e-13
COMPARISONS = ("GT", "GE", "LT", "LE")


def joined(inputs: Sequence[Expression]) -> Expression | None:
    """Return a switch known to be continuous, called ``Joined`` if it is concave in t too; None if that is not proved.

    Parameters
    ----------
    inputs : (condition, value where it holds, value elsewhere)
    """
    from pytensor.scalar.basic import Switch

    condition, yes, no = inputs
    if condition.kind == "moved":
        return _beneath(inputs)
    compared = argument(condition)
    if compared is None:
        return None
    t, size, inside = compared
    if any(_beside(branch, t) for branch in (yes, no)):
        return None
    symbol = Symbol(name="t", low=np.asarray(-np.inf), high=np.asarray(np.inf))
    branches = [replaced(branch, t, leaf(symbol)) for branch in (yes, no)]
    places = [-size, size] if inside is not None else [size]
    values = [[_at(branch, symbol, place) for branch in branches] for place in places]
    if not all(_close(one, two) for one, two in values):
        return None
    bent = [two[1] - one[1] for one, two in values]  # slope of `no` less that of `yes`
    left_is_yes = _left_is_yes(condition, inside, len(places))
    falling = all(
        change <= ROUNDING * (1 + abs(one[1])) if first else -change <= ROUNDING * (1 + abs(one[1]))
        for change, first, (one, _) in zip(bent, left_is_yes, values, strict=True)
    )
    from pymc_dp.proofs.concavity import shape_of

    concave = falling and all(shape_of(branch).concave for branch in branches)
    return switch(RULES[Switch], inputs, name="Joined" if concave else "Continuous")


def _beside(branch: Expression, t: Expression) -> bool:
    """Whether a branch is more than one function of one number, the same for every entry of t."""
    nodes, known = [branch], set[Expression]()
    while nodes:
        node = nodes.pop()
        if node is t or node in known:
            continue
        known.add(node)
        if node.symbols and node.kind not in ("elementwise", "switch"):
            return True
        if not node.symbols and number(node) is None:
            return True
        nodes.extend(node.inputs if node.symbols else ())
    return False


def _beneath(inputs: Sequence[Expression]) -> Expression | None:
    """Look beneath a change of shape that the condition and the branches have in common."""
    shell = inputs[0]
    shells = [item for item in inputs if item.symbols]
    if shell.move is None or any(item.move is not shell.move or len(item.inputs) != 1 for item in shells):
        return None
    inner = [item.inputs[0] if item.symbols else plain(item) for item in inputs]
    ready = [item for item in inner if item is not None]
    found = joined(ready) if len(ready) == len(inner) else None
    return None if found is None else moved(shell.name, shell.move, [found])


def argument(condition: Expression) -> tuple[Expression, float, bool | None] | None:
    """Return (t, k, where) of a condition on t or |t|: `where` is whether |t| < k means True, None for t itself."""
    if condition.kind != "elementwise" or condition.name not in COMPARISONS:
        return None
    first, second = condition.inputs
    sizes = number(first), number(second)
    if (sizes[0] is None) == (sizes[1] is None):
        return None
    left = sizes[1] is not None
    side, size = (first, sizes[1]) if left else (second, sizes[0])
    assert size is not None
    less = (condition.name in ("LT", "LE")) == left
    if side.name == "Abs":
        return (side.inputs[0], size, less) if size > 0 else None
    return side, size, None


def _left_is_yes(condition: Expression, inside: bool | None, count: int) -> list[bool]:
    """Whether, at each place from left to right, the branch to its left is the one where the condition holds."""
    if inside is not None:
        return [not inside, inside]
    less = (condition.name in ("LT", "LE")) == (number(condition.inputs[1]) is not None)
    return [less] * count


def _at(branch: Expression, symbol: Symbol, place: float) -> tuple[float, float]:
    """Value and slope of a branch at a place."""
    if not branch.symbols:
        known = number(branch)
        return (np.nan if known is None else known), 0.0
    tape = Tape([branch])
    at = np.array([[place]])
    (value,), (slopes,) = tape.with_slopes(at, at)
    slope = slopes.get(0)
    if value.flags.any() or slope is None or slope.flags.any():
        return np.nan, np.nan
    return float(value.low[0] + value.high[0]) / 2, float(slope.low[0] + slope.high[0]) / 2


def _close(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Equal to rounding, infinities and NaN never."""
    return bool(abs(first[0] - second[0]) <= ROUNDING * (1 + abs(first[0])))


__all__ = ["argument", "joined"]
