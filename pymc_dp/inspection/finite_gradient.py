"""Derivatives that stay finite where a density or distribution function has a branch that is not taken.

The derivative of ``switch(c, a, b)`` is that of one branch plus 0 times that of the other; and 0 times infinity is not
a number. PyMC writes the logarithm of a normal distribution function, say, in two ways: far below the mean, the one
that is not taken is log 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytensor.tensor as pt
from pytensor.compile import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.traversal import toposort
from pytensor.scalar.basic import Switch
from pytensor.tensor.elemwise import Elemwise

Edge = tuple[Apply, int]


class FiniteGradient(Op):
    """What passes through; a derivative that is no finite number becomes 0 on its way back.

    This is not a ``ViewOp``: PyMC simplifies densities before it takes their derivatives, and that removes every view.

    Parameters
    ----------
    place : int
        PyTensor takes equal operations on one variable for one. Those of different places are different ones: else what
        is no number in the one would be added to the derivative of the other.
    """

    __props__ = ("place",)
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def __init__(self, place: int = 0) -> None:
        self.place = place

    def make_node(self, x: Variable) -> Apply:
        """Return a node with an output of the type of the input."""
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        """Pass on."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: list[Any]) -> list[Any]:
        """Return the shape of the input."""
        return shapes

    def pullback(self, args: Sequence[Any], outputs: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        """Replace what is not finite."""
        return [pt.switch(pt.isnan(g) | pt.isinf(g), 0.0, g) for g in gradients]


@node_rewriter([FiniteGradient])
def _taken(fgraph: Any, node: Apply) -> list[Variable]:
    return [node.inputs[0]]


# Once derivatives are taken it would only keep operations from being fused.
optdb.register("finite_gradient", out2in(_taken), "fast_run", "fast_compile", position=0.06)
finite_gradient = FiniteGradient()


def finite_branches(graph: Variable) -> Variable:
    """Return a graph in which a branch that is not taken adds 0 to every derivative, whatever its own are.

    Derivatives that leave what a branch alone uses are made finite one by one, before they are added up, in the branch
    that is taken too: at an infinite bound b the derivative of ``(b - m) / s`` by s is not finite, and must not remove
    that of the other bound.
    """
    numbers = {edge: number for number, edge in enumerate(_edges(graph), start=1)}
    memo: dict[Variable, Variable] = {}
    for node in toposort([graph]):
        inputs = [memo.get(var, var) for var in node.inputs]
        for place in range(len(inputs)):
            if (node, place) in numbers:
                inputs[place] = FiniteGradient(numbers[node, place])(inputs[place])
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            memo.update(zip(node.outputs, node.clone_with_new_inputs(inputs).outputs, strict=True))
    return memo.get(graph, graph)


def _edges(graph: Variable) -> list[Edge]:
    """Where what only a branch uses takes from the rest of a graph."""
    nodes = list(toposort([graph]))
    clients: dict[Variable, set[Edge]] = {}
    for node in nodes:
        for place, var in enumerate(node.inputs):
            clients.setdefault(var, set()).add((node, place))
    found: dict[Edge, None] = {}
    for last, switch in enumerate(nodes):
        if not (isinstance(switch.op, Elemwise) and isinstance(switch.op.scalar_op, Switch)):
            continue
        for place in (1, 2):
            own = _used_alone(nodes[:last], (switch, place), clients)
            for node in filter(own.__contains__, nodes):  # in an order that equal graphs share
                for position, var in enumerate(node.inputs):
                    inside = var.owner is not None and var.owner in own
                    if not inside and not isinstance(var, Constant) and str(var.type.dtype).startswith("float"):
                        found[node, position] = None
    return list(found)


def _used_alone(nodes: Sequence[Apply], branch: Edge, clients: dict[Variable, set[Edge]]) -> set[Apply]:
    """Operations that nothing but one branch of a switch depends on."""
    own: set[Apply] = set()
    for node in reversed(nodes):
        users = [user for out in node.outputs for user in clients.get(out, ())]
        if users and all(user == branch or user[0] in own for user in users):
            own.add(node)
    return own


__all__ = ["FiniteGradient", "finite_branches", "finite_gradient"]
