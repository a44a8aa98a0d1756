"""The log-density of an observed variable as a graph that treats each row by itself.

Observed variables whose rows have bounded log-likelihoods, and how to tell them.

Operations that PyTensor would call once per row, applied to all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.logprob.abstract import MeasurableOp, ValuedRV, _logprob
from pytensor.compile import SharedVariable
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.basic import CategoricalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.special import LogAddExp, LogSumExp, XLog1PY, XLogY
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.type import TensorType

from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import Array, array_leaves, rebuild, shape_of
from pymc_dp.inspection.taint import RowFlow, trace_rows


def density(rv: Variable, value: Variable) -> Variable:
    """Return the log-density of every value: PyMC's own, but for the categorical, whose steps mix rows by indexing."""
    if isinstance(rv.owner.op, CategoricalRV):
        (p,) = rv.owner.op.dist_params(rv.owner)
        n_levels = p.type.shape[-1] or p.shape[-1]
        levels = pt.arange(n_levels, dtype="int64")
        logp = pt.sum(pt.switch(pt.eq(value[..., None], levels), pt.log(p), 0.0), axis=-1)
        logp = pt.switch((value >= 0) & (value < n_levels), logp, -np.inf)
        return check_parameters(logp, p >= 0, p <= 1, pt.isclose(pt.sum(p, axis=-1), 1), msg="0 <= p <=1, sum(p) = 1")
    return of_any_values(lambda rv, value: pm.logp(rv, value, warn_rvs=False), rv, value)


def of_any_values(function: Callable[[Variable, Variable], Variable], rv: Variable, value: Variable) -> Variable:
    """Return what a function makes of a random variable and its value, whatever the arrays hold that these are from.

    PyMC simplifies a graph before it derives a density: ``rate[g]`` becomes ``rate[:3]`` if g is 0, 1, 2. Whether a
    model is understood would depend on the rows. An array of one element may be the row of a table of one.
    """
    drawn = [node for node in toposort([rv]) if isinstance(node.op, SymbolicRandomVariable)]
    sizes = [node.op.size_param(node) for node in drawn if node.op.extended_signature is not None]
    every = [*sizes, *(node.op.size_param(node) for node in toposort([rv]) if isinstance(node.op, RandomVariable))]
    arrays = [*array_leaves([rv, value], sizes), *array_leaves([rv, value], every, single=True)]
    leaves = {leaf for leaf in arrays if isinstance(leaf, Constant)}
    stand_ins = {leaf: TensorType(leaf.type.dtype, leaf.type.shape)(leaf.name) for leaf in leaves}
    (plain, held), _ = rebuild([rv, value], stand_ins)
    return rebuild([function(plain, held)], {stand_in: leaf for leaf, stand_in in stand_ins.items()})[0][0]


def unchecked(density: Variable) -> Variable:
    """Return a density without parameter checks.

    An error raised for one row would show that row: where a parameter is invalid, the gradient is whatever it is, and
    is clipped.
    """
    return replaced(density, lambda node, inputs: inputs[0] if isinstance(node.op, CheckAndRaise) else None)


def guarded(density: Variable, of_rows: Collection[Variable] = ()) -> Variable:
    """Return a density that is minus infinity, and no error, where parameters of all rows alike are invalid.

    Checks that data or `of_rows` enter are left out: they hold for all rows or for none, so that one row would decide
    for others.
    """

    def switched(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if not isinstance(node.op, CheckAndRaise):
            return None
        plain = [condition for condition in inputs[1:] if not _holds_data(condition, of_rows)]
        return pt.switch(pt.all(plain), inputs[0], -np.inf) if plain else inputs[0]

    return replaced(density, switched)


def _holds_data(condition: Variable, of_rows: Collection[Variable]) -> bool:
    """Whether any array, or any of `of_rows`, reaches a condition other than by a random variable without a value."""
    stack, seen = [condition], set[Variable]()
    while stack:
        var = stack.pop()
        if var in seen or not isinstance(var.type, TensorType | ScalarType):
            continue
        seen.add(var)
        if var in of_rows:
            return True
        if var.owner is not None and isinstance(var.owner.op, ValuedRV):
            stack.append(var.owner.inputs[1])
        elif var.owner is not None and not isinstance(var.owner.op, MeasurableOp):
            stack.extend(var.owner.inputs)
        elif isinstance(var, Constant | SharedVariable) and int(np.prod(shape_of(var))) != 1:
            return True
    return False


def per_row(density: Variable, axis: RowAxis) -> Variable:
    """Return a density without what only repeats a value for every row: it broadcasts against the rows as before."""
    rows = axis.among([density])

    def single(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if isinstance(node.op, Alloc) and node.outputs[0] in rows:
            return _not_repeated(inputs[0], inputs[1:])
        return None

    return replaced(density, single)


def marked(density: Variable, axis: RowAxis) -> tuple[Variable, dict[Variable, int | None]]:
    """Return the density with a row-level column added to whatever it repeats for every row, and these columns."""
    markers, rows = dict[Variable, int | None](), axis.among([density])

    def with_marker(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if not isinstance(node.op, Alloc) or node.outputs[0] not in rows:
            return None
        made = node.outputs[0].type
        marker = pt.tensor("repeated", shape=(None, *(1,) * (made.ndim - 1)), dtype=made.dtype)
        markers[marker] = 0
        return _not_repeated(inputs[0], inputs[1:]) + marker

    return replaced(density, with_marker), markers


def kept_apart(
    single: Sequence[Variable], whole: Sequence[Variable], levels: Mapping[Variable, int | None], axis: RowAxis
) -> tuple[RowFlow, list[str]]:
    """Follow rows through densities; return where they vary, and every reason why they do not separate.

    `single` are without checks and without what only repeats a value for every row, which may meet rows one by one
    alone: a sum of it would not be the same. `whole` are as they were.
    """
    flow = trace_rows(single, levels)
    problems = list(flow.problems)
    for graph in whole:
        repeated, markers = marked(unchecked(graph), axis)
        problems += trace_rows([repeated], {**levels, **markers}).problems
    return flow, list(dict.fromkeys(problems))


def replaced(
    density: Variable, rule: Callable[[Apply, Sequence[Variable]], Variable | list[Variable] | None]
) -> Variable:
    """Return a density in which operations are replaced by what a rule makes of them and of their new inputs."""
    memo: dict[Variable, Variable] = {}
    for node in toposort([density]):
        inputs = [memo.get(var, var) for var in node.inputs]
        new = rule(node, inputs)
        if new is not None:
            memo.update(zip(node.outputs, new if isinstance(new, list) else [new], strict=True))
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo.update(zip(node.outputs, rebuild(node.outputs, changed)[0], strict=True))
    return memo.get(density, density)


def _not_repeated(value: Variable, shape: Sequence[Variable]) -> Variable:
    missing = len(shape) - value.type.ndim
    if missing:
        value = pt.expand_dims(value, tuple(range(missing)))
    rest = list(zip(value.type.broadcastable[1:], shape[1:], strict=True))
    if not any(flag and getattr(length, "data", None) != 1 for flag, length in rest):
        return value
    return pt.alloc(value, value.shape[0] if not value.type.broadcastable[0] else 1, *shape[1:])


class ClampedRV(MeasurableOp, Op):
    """A random variable with the draws of another, and a log-likelihood per row that is clipped to [low, high].

    Parameters
    ----------
    low, high : float
        In nats, per row.
    """

    __props__ = ("low", "high")
    _print_name = ("Clamped", "\\operatorname{Clamped}")
    view_map = {0: [0]}  # noqa: RUF012  (PyTensor's own declaration)

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def make_node(self, rv: Variable) -> Apply:
        """Wrap a random variable."""
        return Apply(self, [rv], [rv.type()])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Shape of what is wrapped."""
        return [shapes[0]]

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Any) -> None:
        """Draw what is wrapped."""
        outputs[0][0] = inputs[0]

    def clip(self, logp: Variable) -> Variable:
        """Clip the sum of every row of log-densities; what is not a number becomes the low end."""
        rows = logp.sum(axis=tuple(range(1, logp.type.ndim)))
        low, high = (pt.constant(np.float64(end)) for end in (self.low, self.high))
        return pt.switch(pt.isnan(rows), low, pt.clip(rows, low, high))


@_logprob.register(ClampedRV)
def _clipped(op: ClampedRV, values: Sequence[Variable], rv: Variable, **kwargs: Any) -> Variable:
    # Checks that hold for all rows at once would let one row turn off the others.
    return op.clip(guarded(density(rv, values[0])))


@node_rewriter([ClampedRV])
def _drawn(fgraph: Any, node: Apply) -> list[Variable]:
    return [node.inputs[0]]


# For compiled draws; PyMC derives log-densities by other rewrites, before these.
optdb.register("draw_clamped", out2in(_drawn), "fast_run", "fast_compile", position=0.05)


def clamped(model: Model) -> dict[str, tuple[float, float]]:
    """Return the observed variables whose rows are clamped, and to which log-likelihoods (in nats, per row)."""
    return {
        str(rv.name): (rv.owner.op.low, rv.owner.op.high)
        for rv in model.observed_RVs
        if isinstance(rv.owner.op, ClampedRV)
    }


def clamped_facts(limits: Mapping[str, tuple[float, float]]) -> list[tuple[str, str]]:
    """Say for the trace of a sampler what the limits that `clamped` returned make of its target."""
    return [
        ("target", f"log-likelihood of a row of {name} clamped to ({low:g}, {high:g}): a pseudo-posterior")
        for name, (low, high) in limits.items()
    ]


def unclamped(rv: Variable) -> Variable:
    """Return the random variable itself, or that which was clamped."""
    return rv.owner.inputs[0] if isinstance(rv.owner.op, ClampedRV) else rv


ELEMENT_BY_ELEMENT = (LogAddExp, XLogY, XLog1PY)


def written_out(graph: Variable, row: Collection[Variable]) -> Variable:
    """Write products of matrices that a row reaches as sums of products, entry by entry.

    A library of linear algebra chooses its instructions, and the share of each of its threads, by the number of rows:
    one row more changes the last digits of what others give. A sum over the entries of one row does not.
    """
    reached = set[Variable](row)

    def without_library(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if reached.isdisjoint(node.inputs):
            return None
        reached.update(node.outputs)
        if isinstance(node.op, Dot):
            return _product(inputs[0], inputs[1], [item.type.ndim for item in inputs])
        if isinstance(node.op, Blockwise) and isinstance(node.op.core_op, Dot):
            return _product(inputs[0], inputs[1], [len(core) for core in node.op.inputs_sig])
        return None

    return replaced(graph, without_library)


def _product(one: Any, other: Any, axes: Sequence[int]) -> Any:
    """Multiply vectors or matrices, of 1 or 2 last axes each, as PyTensor's dot does."""
    if 0 in axes:
        return one * other
    left = one if axes[0] == 2 else one[..., None, :]
    right = other if axes[1] == 2 else other[..., None]
    found = (left[..., None] * right[..., None, :, :]).sum(axis=-2)
    found = found if axes[1] == 2 else found[..., 0]
    return found if axes[0] == 2 else found[..., 0] if axes[1] == 1 else found[..., 0, :]


def vectorized(outputs: Any, over: Mapping[Variable, Variable]) -> Any:
    """Return a graph, or several, with inputs that have a new first axis, as ``vectorize_graph`` does."""
    found = vectorize_graph(outputs, over)
    return [replaced(one, _at_once) for one in found] if isinstance(found, list) else replaced(found, _at_once)


def _at_once(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
    """Return what a loop over rows gives as one operation on arrays; None where the node is no such loop."""
    if not isinstance(node.op, Blockwise):
        return None
    operation, axes = node.op.core_op, node.op.batch_ndim(node)
    if isinstance(operation, LogSumExp):
        return pt.logsumexp(inputs[0], axis=tuple(axis + axes for axis in operation.axis))
    if isinstance(operation, ELEMENT_BY_ELEMENT):
        most = max(item.type.ndim for item in inputs)
        aligned: list[Any] = [pt.expand_dims(item, tuple(range(axes, axes + most - item.type.ndim))) for item in inputs]
        return operation(*aligned)
    if isinstance(operation, Join):
        return _joined(inputs, operation.axis + axes)
    if isinstance(operation, Subtensor | AdvancedSubtensor) and len(inputs) == 2 and operation.idx_list == (0,):
        return _picked(inputs[0], inputs[1], axes)
    if isinstance(operation, AdvancedSubtensor) and operation.idx_list == tuple(range(inputs[0].type.ndim - axes)):
        return _picked_by_several(inputs[0], inputs[1:], axes)
    return None


def _picked_by_several(array: Any, indices: Sequence[Any], axes: int) -> Variable:
    """Return entries of arrays, chosen by an index for each of their axes, all at once."""
    width, places = max(index.type.ndim for index in indices), list[Any]()
    for axis in range(axes):
        places.append(pt.shape_padright(pt.arange(array.shape[axis]), width - axis - 1))
    for index in indices:
        places.append(pt.expand_dims(index, tuple(range(axes, axes + width - index.type.ndim))))
    found: Variable = array[tuple(places)]
    return found


def _picked(array: Any, index: Any, axes: int) -> Variable:
    """Return the elements, or rows, that each of many indices picks of one of as many arrays."""
    each = [pt.shape_padright(pt.arange(array.shape[axis]), index.type.ndim - axis - 1) for axis in range(axes)]
    found: Variable = array[(*each, index)]
    return found


def _joined(parts: Sequence[Any], axis: int) -> Variable:
    """Join arrays that broadcast against each other along all other axes."""
    wide = reduce(pt.second, (pt.expand_dims(one[(slice(None),) * axis + (0,)], axis) for one in parts))
    found: Variable = pt.concatenate([pt.second(wide, one) for one in parts], axis=axis)
    return found


__all__ = [
    "ClampedRV",
    "clamped",
    "clamped_facts",
    "density",
    "guarded",
    "kept_apart",
    "marked",
    "per_row",
    "replaced",
    "unchecked",
    "unclamped",
    "vectorized",
    "written_out",
]
