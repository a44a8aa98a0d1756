"""The distribution function of one row: what counts in bins need to know of a likelihood, whatever it is.

A plain distribution has it by its parameters. For mixtures, censored, truncated and hand-written ones it is taken from
the graph of the model, once that is proved to keep rows apart.

Derivatives that stay finite where a density or distribution function has a branch that is not taken.

The derivative of ``switch(c, a, b)`` is that of one branch plus 0 times that of the other; and 0 times infinity is not
a number. PyMC writes the logarithm of a normal distribution function, say, in two ways: far below the mean, the one
that is not taken is log 0. Infinite bounds it writes as numbers like others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.abstract import _logccdf, _logcdf, _logprob
from pytensor.compile import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Add, Cast, Mul, Neg, Sub, Switch, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type_other import NoneConst

from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.row_density import density, of_any_values, per_row, replaced
from pymc_dp.inspection.rows import reached, rebuild
from pymc_dp.inspection.taint import trace_rows

Edge = tuple[Apply, int]


class FiniteGradient(Op):
    """What passes through; a derivative that is no finite number becomes 0 on its way back.

    This is not a ``ViewOp``: PyMC simplifies densities before it takes their derivatives, and that removes every view.

    Parameters
    ----------
    place : int
        PyTensor takes equal operations on one variable for one. Those of different places are different ones: else what
        is no number in the one would be added to the derivative of the other.
    kept : bool
        Whether it stays in a graph that is compiled, because JAX will take the derivatives of that.
    """

    __props__ = ("place", "kept")
    view_map: ClassVar[dict[int, list[int]]] = {0: [0]}

    def __init__(self, place: int = 0, *, kept: bool = False) -> None:
        self.place, self.kept = place, kept

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
def _taken(fgraph: Any, node: Apply) -> list[Variable] | None:
    return None if node.op.kept else [node.inputs[0]]


@node_rewriter([FiniteGradient])
def _kept(fgraph: Any, node: Apply) -> list[Variable] | None:
    if node.op.kept:
        return None
    import_module("pymc_dp.inspection.finite_gradient_jax")
    return [FiniteGradient(node.op.place, kept=True)(node.inputs[0])]


# PyMC has JAX take the derivatives of a graph that was rewritten.
optdb.register("finite_gradient_for_jax", out2in(_kept), "jax", position=0.05)
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


SUMMED = ("beta_binomial", "hypergeometric")
"""Plain distributions on 0, 1, ... whose distribution function PyMC knows for one number at a time only."""
MOST_SUMMED = 2048


@dataclass(frozen=True, kw_only=True, eq=False)
class Cumulative:
    """Distribution function of one row as graphs that treat each row by itself; NaN where parameters are invalid.

    Attributes
    ----------
    at : Variable
        (n_rows,) numbers; no part of the model.
    below : Variable
        (n_rows,) log-probability to be at most `at`.
    above : Variable or None
        The same to be above, where PyMC has it in a form of its own: exact in the upper tail.
    inputs : tuple of Variable
        (n_rows,) parameters, for a plain distribution; else the graphs hold the variables of the model.
    numbers : tuple of Variable
        Constants of the likelihood, for the list of what is assumed public.
    """

    at: Variable
    below: Variable
    above: Variable | None = None
    inputs: tuple[Variable, ...] = ()
    numbers: tuple[Variable, ...] = ()


def cumulative_graphs(rv: Variable, at: Variable, axis: RowAxis) -> tuple[Variable, list[Variable]]:
    """Return the distribution function per row, and what has to be free of coupling between rows.

    Raises
    ------
    NotImplementedError
        If PyMC knows no distribution function, or no density.
    """
    below, logp = of_any_values(lambda rv, at: pm.logcdf(rv, at, warn_rvs=False), rv, at), density(rv, at)
    return per_row(below, axis), [below, logp]


def row_wise(below: Variable, levels: Mapping[Variable, int | None], at: Variable) -> Variable:
    """Return a distribution function that raises nothing, and whose derivatives are finite."""
    return finite_branches(with_finite_gradients(invalid_as_nan(below), levels, at.shape[0]))


def invalid_as_nan(graph: Variable) -> Variable:
    """Return a graph that is NaN, and raises nothing, where PyMC's checks of parameters fail."""

    def switched(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if not isinstance(node.op, CheckAndRaise):
            return None
        return pt.switch(pt.all(list(inputs[1:])), inputs[0], np.nan)

    return replaced(graph, switched)


def with_finite_gradients(graph: Variable, levels: Mapping[Variable, int | None], length: Variable) -> Variable:
    """Return a graph per row in which no row gives a parameter a derivative that is not finite.

    Where a parameter first meets rows it is repeated for each of them, so that their derivatives are added up last.
    """
    flow = trace_rows([graph], levels)
    memo: dict[Variable, Variable] = {}
    for node in toposort([graph], blockers=list(levels)):
        axis = next((flow.axes.get(out) for out in node.outputs), None)
        inputs = [memo.get(var, var) for var in node.inputs]
        if axis is not None and isinstance(node.op, Elemwise):
            inputs = [
                new if flow.axes.get(old) is not None or isinstance(old, Constant) else _repeated(new, axis, length)
                for old, new in zip(node.inputs, inputs, strict=True)
            ]
        first = axis is not None and all(flow.axes.get(var) is None for var in node.inputs[:1])
        if first and not isinstance(node.op, Elemwise) and node.outputs[0].type.dtype.startswith("float"):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo[node.outputs[0]] = finite_gradient(rebuild(node.outputs, changed)[0][0])
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            # One input may occur twice, repeated in one place and not in the other: by place, not by variable.
            memo.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return memo.get(graph, graph)


def _repeated(parameter: Variable, axis: int, length: Variable) -> Variable:
    if not str(parameter.type.dtype).startswith("float"):
        return parameter
    shape = [length if place == axis else parameter.shape[place] for place in range(parameter.type.ndim)]
    return finite_gradient(pt.broadcast_to(parameter, shape))


def own_numbers(rv: Variable, below: Variable) -> tuple[Variable, ...]:
    """Return the constants that reach a distribution function and were given by the user, not by PyMC."""
    used = set(reached([below]))
    given = reached([var for var in rv.owner.inputs if var in used or var.owner is not None])
    return tuple(var for var in given if isinstance(var, Constant) and var in used)


def of_plain(variable: Variable, parameters: Sequence[Variable]) -> Cumulative | None:
    """Return the distribution function of a plain distribution by its parameters; None if PyMC knows none."""
    at = pt.tensor("at", shape=(None,), dtype=variable.type.dtype)
    inputs = tuple(pt.tensor(shape=(None,), dtype=item.type.dtype) for item in parameters)
    op: Any = variable.owner.op
    if any(getattr(op, "ndims_params", None) or ()):  # vectors, such as the probabilities of a categorical
        return None
    given = (variable.owner.inputs[0], NoneConst, *inputs)  # without a size: a density would be repeated up to it
    try:
        below = _summed(op, at, given) if getattr(op, "name", None) in SUMMED else _logcdf(op, at, *given)
    except NotImplementedError:
        return None
    try:
        above = _logccdf(op, at, *given)
    except NotImplementedError:
        above = None
    above = None if above is None else finite_branches(invalid_as_nan(above))
    return Cumulative(at=at, below=finite_branches(invalid_as_nan(below)), above=above, inputs=inputs)


def _summed(op: Any, at: Variable, given: Sequence[Any]) -> Variable:
    """Return the log-probability of a number on 0, 1, ... to be at most `at`, by the sum of its probabilities."""
    values = pt.arange(pt.clip(at.max(), 0, MOST_SUMMED) + 1)[None, :]
    source, size, *parameters = given
    terms = _logprob(op, [values], source, size, *(item[:, None] for item in parameters))
    return pt.logsumexp(pt.switch(values <= at[:, None], terms, -np.inf), axis=1)


def beside_infinities(graph: Variable) -> Variable:
    """Return a graph in which what is computed of an infinite constant has finite derivatives by all else.

    With b infinite the derivative of ``(b - m) / s`` by s would be 0 times infinity, and spoil all others.
    """
    infinite, number = set[Variable](), 0

    def rule(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        nonlocal number
        held = [_is_infinite(var) or var in infinite for var in inputs]
        if not any(held):
            return None
        if isinstance(node.op, DimShuffle):
            return noted(node.clone_with_new_inputs(list(inputs)))
        if not (
            isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add | Cast | Mul | Neg | Sub | TrueDiv)
        ):
            return None
        if isinstance(node.op.scalar_op, TrueDiv) and not held[0]:
            return None
        number += 1
        guarded = [
            var if known or isinstance(var, Constant) else FiniteGradient(-len(inputs) * number - place)(var)
            for place, (var, known) in enumerate(zip(inputs, held, strict=True))
        ]
        return noted(node.clone_with_new_inputs(guarded))

    def noted(node: Apply) -> Variable:
        infinite.add(node.outputs[0])
        return node.outputs[0]

    return replaced(graph, rule)


def _is_infinite(var: Variable) -> bool:
    return isinstance(var, Constant) and np.ndim(var.data) == 0 and var.type.dtype[:5] == "float" and np.isinf(var.data)


__all__ = [
    "MOST_SUMMED",
    "SUMMED",
    "Cumulative",
    "FiniteGradient",
    "beside_infinities",
    "cumulative_graphs",
    "finite_branches",
    "finite_gradient",
    "of_plain",
    "own_numbers",
    "row_wise",
]
