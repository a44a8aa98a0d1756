"""Two graphs that differ in the values they hold alone: a function compiled for one then serves the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import toposort

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
    memo: dict[Variable, Variable] = {}
    for node, twin in zip_longest(toposort([graph]), toposort([other])):
        if node is None or twin is None or node.op != twin.op or not _match(node.inputs, twin.inputs, memo):
            return None
        memo.update(zip(node.outputs, twin.outputs, strict=True))
    if not _match([graph], [other], memo):
        return None
    held = [(one, two) for one, two in memo.items() if isinstance(one, SharedVariable)]
    return [(one, two) for one, two in held if isinstance(two, SharedVariable)]


def _match(inputs: Sequence[Variable], others: Sequence[Variable], memo: dict[Variable, Variable]) -> bool:
    return len(inputs) == len(others) and all(_same(one, two, memo) for one, two in zip(inputs, others, strict=True))


def _same(one: Variable, two: Variable, memo: dict[Variable, Variable]) -> bool:
    """Whether two inputs stand for each other; those met for the first time are noted."""
    if one in memo:
        return memo[one] is two
    if one.owner is not None or two.owner is not None or one.type != two.type:
        return False
    if isinstance(one, Constant):
        return isinstance(two, Constant) and _equal(one, two)
    if isinstance(one, SharedVariable) != isinstance(two, SharedVariable):
        return False
    memo[one] = two
    return one.name == two.name or isinstance(one, SharedVariable)


def _equal(one: Constant, two: Constant) -> bool:
    first, second = one.data, two.data
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return bool(first == second) or (first != first and second != second)


__all__ = ["shared_pairs"]
