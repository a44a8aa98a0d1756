"""Proof that a likelihood separates over rows: where row-level arrays flow in a PyTensor graph.

Every variable is either free of rows (``None``) or varies along the rows at exactly one axis, entry ``i`` of
which depends on row ``i`` alone. An operation without a rule here, or used in a way its rule cannot prove, is a
problem that names it: unknown operations are refused, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.basic import Join, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

NUMBER_OF_ROWS = "the shape of a row-level array (the number of rows) is used as a value"
PER_ROW = "one latent per row"
INTEGRATE = "Integrate a normal latent of rows out, model = dp.integrate(model, 'theta'), or let rows share parameters."
RUNS = "runs over the rows"
PUBLIC_NUMBERS = (
    "Take numbers that anyone may know for what is computed of all rows: (x - 50) / 10 for (x - x.mean()) / x.std()."
)
SCALARS = ("pytensor.scalar.", "pymc.")
"""Packages whose scalar operations have a result for every value, as functions over rows are compiled."""
Axis = int | None
"""Axis along which a variable varies over rows, or None if it is free of rows."""


class NotSeparable(Exception):
    """An operation mixes rows, or is not known to keep them apart; the text has no private value."""


@dataclass(frozen=True)
class IndexUse:
    """A row-level integer array used as an index into one axis of a row-free array."""

    index: Variable
    length: int | None
    indexed: Variable
    axis: int


@dataclass
class RowFlow:
    """What the analysis found: the axis of every variable visited, and every use as an index."""

    axes: dict[Variable, Axis]
    index_uses: list[IndexUse] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    shapes: dict[Variable, int] = field(default_factory=dict)
    """Shapes of row-level arrays, as vectors, and the place in each that holds the number of rows."""


Rule = Callable[[Apply, Sequence[Axis], RowFlow], Axis]


def trace_rows(outputs: Sequence[Variable], row_level: Mapping[Variable, Axis]) -> RowFlow:
    """Follow row-level leaves through the graph of `outputs`.

    Parameters
    ----------
    outputs : sequence of Variable
        Ends of the graph, for example the parameters of a likelihood.
    row_level : mapping of Variable to int
        Leaves that vary along rows, and the axis of each; variables mapped to None are treated as free of rows.

    Returns
    -------
    RowFlow
        ``axes`` has an entry for every output; ``problems`` says where rows could not be kept apart.
    """
    flow = RowFlow(axes=dict(row_level))
    for node in toposort(list(outputs), blockers=list(row_level)):
        if all(out in flow.axes for out in node.outputs):
            continue
        inputs = [flow.axes.get(var) for var in node.inputs]
        axis: Axis = None
        if any(var in flow.shapes for var in node.inputs) and not _reads_another_length(node, flow):
            flow.problems.append(NUMBER_OF_ROWS)
        if any(item is not None for item in inputs):
            try:
                axis = _rule(node.op)(node, inputs, flow)
            except NotSeparable as error:
                flow.problems.append(str(error))
        for out in node.outputs:
            flow.axes.setdefault(out, axis)
    for out in outputs:
        flow.axes.setdefault(out, None)
        if out in flow.shapes:
            flow.problems.append(NUMBER_OF_ROWS)
    return flow


def depends_on(variable: Variable, sources: Sequence[Variable]) -> bool:
    """Whether any of `sources` is an ancestor of `variable` or the variable itself."""
    wanted = set(sources)
    return any(var in wanted for var in ancestors([variable]))


def way_out(problem: str, otherwise: str) -> str:
    """Return what to write where rows are not kept apart, by the text that says why."""
    if PER_ROW in problem:
        return INTEGRATE
    return PUBLIC_NUMBERS if RUNS in problem or problem == NUMBER_OF_ROWS else otherwise


def _rule(op: Op) -> Rule:
    for kind in type(op).__mro__:
        if kind in RULES:
            return RULES[kind]
    return _unknown


def _unknown(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    raise NotSeparable(
        f"operation {node.op} is applied to a row-level array and is not known to treat each row by itself"
    )


def _same_axis(axes: Sequence[Axis], op: Op) -> int:
    found = {axis for axis in axes if axis is not None}
    if len(found) != 1:
        raise NotSeparable(
            f"operation {op} pairs every row with every other (row-level arrays meet along different axes)"
        )
    return found.pop()


def _elemwise(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    axis = _same_axis(axes, node.op)
    if not type(node.op.scalar_op).__module__.startswith(SCALARS):
        raise NotSeparable(
            f"operation {node.op} is not one of PyTensor's or PyMC's own, and may fail for the values of a row"
        )
    for var, found in zip(node.inputs, axes, strict=True):
        if found is None and not var.type.broadcastable[axis]:
            raise NotSeparable(f"{label(var)} has an entry of its own for every row ({PER_ROW})")
    return axis


def _dimshuffle(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    order = list(node.op.new_order)
    if axes[0] not in order:
        raise NotSeparable(f"operation {node.op} drops the row axis")
    return order.index(axes[0])


def _pass_through(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    if any(axis is not None for axis in axes[1:]):
        return _unknown(node, axes, flow)
    return axes[0]


def _specify_shape(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    axis = axes[0]
    if axis is None or getattr(node.inputs[1 + axis], "data", 0) is not None:
        raise NotSeparable("the number of rows is fixed by specify_shape, so that it is used as a value")
    return axis


def _shape(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    """Note where the number of rows stands: whoever takes another length has a number of the schema."""
    assert axes[0] is not None
    flow.shapes[node.outputs[0]] = axes[0]
    return None


def _length(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    if node.op.i % node.inputs[0].type.ndim == axes[0]:
        raise NotSeparable(NUMBER_OF_ROWS)
    return None


def _reads_another_length(node: Apply, flow: RowFlow) -> bool:
    """Whether a node takes one length out of a shape, and not the number of rows."""
    shape = node.inputs[0]
    if not isinstance(node.op, Subtensor) or shape not in flow.shapes or len(node.op.idx_list) != 1:
        return False
    place = getattr(indices_from_subtensor(node.inputs[1:], node.op.idx_list)[0], "data", None)
    length = shape.type.shape[0]
    return place is not None and length is not None and int(place) % length != flow.shapes[shape]


def _along_axes(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    reduced = node.op.axis
    if reduced is None or axes[0] in (reduced if isinstance(reduced, tuple) else (reduced,)):
        raise NotSeparable(f"operation {node.op} {RUNS}, so that one row changes the terms of others")
    return axes[0]


def _reduce(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    axis = _along_axes(node, axes, flow)
    assert axis is not None
    return axis - sum(item < axis for item in node.op.axis)


def _join(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    axis = _same_axis(axes, node.op)
    if axis == node.op.axis or None in axes:
        raise NotSeparable(f"operation {node.op} appends rows to rows or to arrays that are not row-level")
    return axis


def _blockwise(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    if isinstance(node.op.core_op, Dot):
        return _dot(node, axes, flow)
    return _solved(node, axes, flow) if isinstance(node.op.core_op, SolveTriangular) else _unknown(node, axes, flow)


def _solved(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    """Take rows that are vectors, solved one by one with one matrix: only this can be singular, and it holds no row."""
    matrix, vectors = node.inputs
    alone = all(matrix.type.broadcastable[:-2])
    if tuple(axes) != (None, 0) or not alone or vectors.type.ndim != 2 or node.op.core_op.b_ndim != 1:
        return _unknown(node, axes, flow)
    return 0


def _dot(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    if tuple(axes) != (0, None) or node.inputs[0].type.ndim != 2:
        raise NotSeparable(f"operation {node.op} sums over rows")
    return 0


def _subtensor(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    if any(axis is not None for axis in axes[1:]) or axes[0] is None:
        raise NotSeparable(f"operation {node.op} takes its index from one row-level value")
    axis = axes[0]
    entries = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    entries += [slice(None)] * (node.inputs[0].type.ndim - len(entries))
    if entries[axis] != slice(None):
        raise NotSeparable(f"operation {node.op} picks some rows out of the table")
    return axis - sum(not isinstance(entry, slice) for entry in entries[:axis])


def _advanced_subtensor(node: Apply, axes: Sequence[Axis], flow: RowFlow) -> Axis:
    indexed = node.inputs[0]
    entries = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    if axes[0] is not None:
        return _columns(node, entries, axes)
    arrays = [(place, entry) for place, entry in enumerate(entries) if isinstance(entry, Variable)]
    if any(
        isinstance(part, Variable) and flow.axes.get(part) is not None
        for entry in entries
        if isinstance(entry, slice)
        for part in (entry.start, entry.stop, entry.step)
    ):
        raise NotSeparable(f"operation {node.op} slices {label(indexed)} by row-level values")
    if any(getattr(entry.type, "dtype", "") == "bool" for _, entry in arrays):
        raise NotSeparable(f"{label(indexed)} is indexed by a mask; use an integer column")
    ndim = max(getattr(entry.type, "ndim", 0) for _, entry in arrays)
    aligned: list[Axis] = []
    for place, entry in arrays:
        axis = flow.axes.get(entry)
        if axis is None:
            if any(not flag for flag in getattr(entry.type, "broadcastable", ())):
                raise NotSeparable(f"{label(indexed)} is indexed by a row-level column and by {label(entry)} together")
            continue
        aligned.append(axis + ndim - entry.type.ndim)
        flow.index_uses.append(IndexUse(entry, indexed.type.shape[place], indexed, place))
    axis = _same_axis(aligned, node.op)
    places = [place for place, _ in arrays]
    adjacent = places == list(range(places[0], places[-1] + 1))
    return axis + (places[0] if adjacent else 0)


def _columns(node: Apply, entries: Sequence[Any], axes: Sequence[Axis]) -> Axis:
    """Take columns of a row-level array, the same ones of every row: x[:, [0, 2]]."""
    whole = slice(None)
    vector = len(entries) == 2 and getattr(getattr(entries[1], "type", None), "ndim", 0) == 1
    if axes[0] != 0 or entries[0] != whole or not vector or any(axis is not None for axis in axes[1:]):
        raise NotSeparable(f"operation {node.op} picks or reorders rows of {label(node.inputs[0])}")
    return 0


def label(variable: Variable) -> str:
    """Return a name for messages: the variable's own, or its nearest named ancestors', never its values."""
    if variable.name:
        return repr(variable.name)
    if isinstance(variable, Constant):
        return f"a constant array of {getattr(variable.type, 'ndim', 0)} dimension(s)"
    names: list[str] = []
    frontier: list[Any] = [variable]
    seen: set[Any] = set()
    while frontier and len(names) < 3:
        var = frontier.pop(0)
        if var in seen:
            continue
        seen.add(var)
        if var.name:
            names.append(repr(var.name))
        elif var.owner is not None:
            frontier.extend(var.owner.inputs)
    return f"an expression of {', '.join(dict.fromkeys(names))}" if names else "an expression without a name"


RULES: dict[type[Op], Rule] = {
    Elemwise: _elemwise,
    DimShuffle: _dimshuffle,
    ViewOp: _pass_through,
    SpecifyShape: _specify_shape,
    TensorFromScalar: _pass_through,
    Shape: _shape,
    Shape_i: _length,
    CAReduce: _reduce,
    Softmax: _along_axes,
    LogSoftmax: _along_axes,
    LogSumExp: _reduce,
    CumOp: _along_axes,
    Join: _join,
    Dot: _dot,
    Blockwise: _blockwise,
    Subtensor: _subtensor,
    AdvancedSubtensor: _advanced_subtensor,
}
