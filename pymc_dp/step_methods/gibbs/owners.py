"""Which one element of a free variable each entry of a graph depends on, given the values of the others.

Elements that share no entry of a log-density are independent given the rest, and drawn at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import SELECTING, SHAPED, Prior, constant_values
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.compiled import Functions

NOWHERE, MANY = -1.0, -2.0
"""No element, or several (or it is not known which)."""
PIECES = (Join, MakeVector, ScalarFromTensor, TensorFromScalar)


def moving(graphs: Sequence[Variable], rv: Variable, free: Sequence[Variable]) -> set[Variable]:
    """Return what depends on a free variable among the ancestors of graphs; shapes do not."""
    found = {rv}
    for node in toposort(list(graphs), blockers=list(free)):
        if any(var in found for var in _carrying(node)):
            found.update(node.outputs)
    return found


def _carrying(node: Any) -> list[Variable]:
    """Return the inputs of an operation whose values count."""
    if isinstance(node.op, Shape | Shape_i):
        return []
    if isinstance(node.op, SHAPED):
        return list(node.inputs[:1])
    if isinstance(node.op, Elemwise) and type(node.op.scalar_op).__name__ == "Second":
        return list(node.inputs[1:])
    return list(node.inputs)


def owners_of(
    graphs: Sequence[Variable], prior: Prior, functions: Functions
) -> Callable[[Mapping[str, Array]], list[Array]]:
    """Return owners of the entries of graphs, as a function of the values of free variables.

    Each is the place of the one element of the variable that the entry depends on, `NOWHERE`, or `MANY`.
    """
    free = list(functions.symbols)
    walk = _Walk(graphs, prior, free)
    owners = [walk.of(graph) for graph in graphs]
    values = constant_values(owners, free)
    if values is not None:
        held = [np.asarray(value) for value in values]
        return lambda values: held
    call = functions.call(
        functions.over_values(owners), list(functions.symbols.values()), make=lambda a, b: plain_function(a, b)
    )
    return lambda values: call(values)


class _Walk:
    """Follows a free variable down graphs, with the places of its elements instead of their values."""

    def __init__(self, graphs: Sequence[Variable], prior: Prior, free: Sequence[Variable]) -> None:
        self.rv, self.moving = prior.variable, moving(graphs, prior.variable, free)
        self.known: dict[Variable, Any] = {
            prior.variable: pt.constant(np.arange(prior.size, dtype=np.float64).reshape(prior.shape))
        }

    def of(self, var: Variable) -> Any:
        if var not in self.known:
            self.known[var] = self._of(var) if var in self.moving else pt.full_like(var, NOWHERE, dtype="float64")
        return self.known[var]

    def _of(self, var: Variable) -> Any:
        node: Any = var.owner
        op, inputs = node.op, list(node.inputs)
        if isinstance(op, SELECTING) and (isinstance(op, SHAPED) or not any(one in self.moving for one in inputs[1:])):
            return self._same(node, [self.of(inputs[0]), *inputs[1:]])
        if isinstance(op, AdvancedSubtensor | Subtensor) and inputs[0] not in self.moving and not _sliced(op):
            return self._chosen(var, inputs)
        if isinstance(op, PIECES):
            return self._same(node, [self.of(one) for one in inputs])
        if isinstance(op, Elemwise):
            name = type(op.scalar_op).__name__
            if name == "Switch" and inputs[0] not in self.moving:
                return pt.switch(inputs[0], self.of(inputs[1]), self.of(inputs[2]))
            found = self.of(inputs[-1]) if name == "Second" else self.of(inputs[0])
            for one in inputs[:-1] if name == "Second" else inputs[1:]:
                found = pt.second(one, found) if name == "Second" else _both(found, self.of(one))
            return found
        if isinstance(op, CAReduce):
            return _joined(self.of(inputs[0]), op.axis)
        return pt.full_like(var, MANY, dtype="float64")

    def _chosen(self, var: Variable, inputs: Sequence[Variable]) -> Any:
        """Return the owner of what is chosen of other numbers, by indices one of which is the variable's."""
        found = self.of(inputs[1])
        for one in inputs[2:]:
            found = _both(found, self.of(one))
        return pt.second(var, pt.shape_padright(found, var.type.ndim - found.type.ndim))

    @staticmethod
    def _same(node: Any, inputs: Sequence[Variable]) -> Any:
        return node.clone_with_new_inputs(list(inputs), strict=False).outputs[0]


def _sliced(op: Any) -> bool:
    """Whether an axis that is sliced comes before one that is not: then numbers do not come first in the result."""
    slices = [isinstance(one, slice) for one in op.idx_list]
    return sorted(slices) != slices


def _both(one: Any, other: Any) -> Any:
    """Return the owner of what depends on two entries."""
    alike = pt.eq(one, other) | pt.eq(other, NOWHERE)
    return pt.switch(alike, pt.second(other, one), pt.switch(pt.eq(one, NOWHERE), other, MANY))


def _joined(owners: Any, axis: Any) -> Any:
    top = owners.max(axis=axis)
    least = pt.switch(owners < 0, np.inf, owners).min(axis=axis)
    several = pt.eq(owners, MANY).any(axis=axis) | (least < top)
    return pt.switch(several, MANY, top)


def joined(owners: Array, axis: int) -> Array:
    """Merge owners along an axis: the one element that all name, if any names one.

    Examples
    --------
    >>> joined(np.array([[0, -1], [0, 1], [-1, -1], [0, -2]]), 1).tolist()
    [0.0, -2.0, -1.0, -2.0]
    """
    top = owners.max(axis=axis, keepdims=True, initial=NOWHERE)
    several = ((owners != top) & (owners != NOWHERE)).any(axis=axis)
    return np.where(several, MANY, top.reshape(several.shape))


__all__ = ["MANY", "NOWHERE", "joined", "moving", "owners_of"]
