"""Two graphs that differ in the values they hold alone: a function compiled for one then serves the other."""

from __future__ import annotations

import numpy as np
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable

Pairs = list[tuple[SharedVariable, SharedVariable]]


def shared_pairs(graph: Variable, other: Variable) -> Pairs | None:
    """Return what the one holds beside what the other holds; None where the graphs differ in more than that.

    Parameters
    ----------
    graph, other : Variable

    Returns
    -------
    list of (SharedVariable, SharedVariable) or None
        Once each.
    """
    found: dict[Variable, Variable] = {}
    waiting: list[tuple[Variable, Variable]] = [(graph, other)]
    while waiting:
        one, two = waiting.pop()
        if one in found:
            if found[one] is not two:
                return None
            continue
        if not _alike(one, two):
            return None
        if isinstance(one, Constant):
            continue  # PyTensor keeps some numbers as one object, and others not
        found[one] = two
        if one.owner is not None:
            waiting.extend(zip(one.owner.inputs, two.owner.inputs, strict=True))
    return [(one, two) for one, two in found.items() if isinstance(one, SharedVariable)]


def _alike(one: Variable, two: Variable) -> bool:
    """Whether two variables come from the same operation, are equal constants, or hold or stand for values alike."""
    if one.owner is not None and two.owner is not None:
        same = one.owner.op == two.owner.op and one.index == two.index
        return same and len(one.owner.inputs) == len(two.owner.inputs)
    if one.owner is not two.owner or one.type != two.type:
        return False
    if isinstance(one, Constant):
        return isinstance(two, Constant) and _equal(one, two)
    if isinstance(one, SharedVariable):
        return isinstance(two, SharedVariable)
    return not isinstance(two, Constant | SharedVariable) and one.name == two.name


def _equal(one: Constant, two: Constant) -> bool:
    first, second = one.data, two.data
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return bool(first == second) or (first != first and second != second)


__all__ = ["shared_pairs"]
