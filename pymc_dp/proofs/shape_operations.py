"""Operations that move, repeat, choose or join entries, as expressions."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.scalar.basic import EQ, Switch
from pytensor.tensor.subtensor import indices_from_subtensor

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.chain_rule import ArrayMap
from pymc_dp.intervals.expression import Expression, UnknownOperation, constant, elementwise, moved, switch
from pymc_dp.intervals.rules import RULES
from pymc_dp.proofs import meeting_points

if TYPE_CHECKING:
    from pymc_dp.proofs.lowering import Lowering


def dimshuffle(lowering: Lowering, node: Apply) -> Expression:
    """Axes dropped, exchanged and added."""
    order = tuple(node.op.new_order)
    return moved("DimShuffle", _turning(node.inputs[0].type.ndim, order), [lowering.input(node, 0)])


@cache
def _turning(ndim: int, order: tuple[int | str, ...]) -> ArrayMap:
    """Return how axes are dropped, exchanged and added; one function for each order, so that equal ones are known."""
    kept = [int(axis) for axis in order if axis != "x"]
    dropped = tuple(1 + axis for axis in range(ndim) if axis not in kept)
    ranks = {axis: rank for rank, axis in enumerate(sorted(kept))}

    def move(array: Array) -> Array:
        squeezed = array.squeeze(dropped) if dropped else array
        turned = squeezed.transpose(0, *(1 + ranks[axis] for axis in kept))
        return np.expand_dims(turned, tuple(1 + place for place, axis in enumerate(order) if axis == "x"))

    return move


def reshape(lowering: Lowering, node: Apply) -> Expression:
    """The same entries in another shape."""
    shape = tuple(int(n) for n in lowering.number(node.inputs[1]))
    return moved("Reshape", lambda array: array.reshape(array.shape[0], *shape), [lowering.input(node, 0)])


def join_axes(lowering: Lowering, node: Apply) -> Expression:
    """Neighbouring axes made one."""
    first, last = 1 + node.op.start_axis, 1 + node.op.start_axis + node.op.n_axes

    def move(array: Array) -> Array:
        return array.reshape(*array.shape[:first], int(np.prod(array.shape[first:last])), *array.shape[last:])

    return moved("JoinDims", move, [lowering.input(node, 0)])


def split_axis(lowering: Lowering, node: Apply) -> Expression:
    """One axis made several."""
    axis, lengths = 1 + node.op.axis, tuple(int(n) for n in lowering.number(node.inputs[1]))

    def move(array: Array) -> Array:
        return array.reshape(*array.shape[:axis], *lengths, *array.shape[axis + 1 :])

    return moved("SplitDims", move, [lowering.input(node, 0)])


def alloc(lowering: Lowering, node: Apply) -> Expression:
    """Entries repeated along axes."""
    shape = tuple(int(lowering.number(item)) for item in node.inputs[1:])

    def move(array: Array) -> Array:
        fitted = array.reshape(array.shape[0], *(1,) * (len(shape) - array.ndim + 1), *array.shape[1:])
        return np.broadcast_to(fitted, (array.shape[0], *shape))

    return moved("Alloc", move, [lowering.input(node, 0)])


def subtensor(lowering: Lowering, node: Apply) -> Expression:
    """Entries at known places, and slices; also the one along the first axis that a parameter chooses."""
    entries = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    if len(entries) == 1 and isinstance(entries[0], Variable) and lowering.moves(entries[0]):
        place = lowering.of(entries[0])
        if place.symbols:
            return _chosen(lowering.input(node, 0), place)
    index = tuple(_known_entry(lowering, entry) for entry in entries)
    return moved("Subtensor", lambda array: array[(slice(None), *index)], [lowering.input(node, 0)])


def _known_entry(lowering: Lowering, entry: Any) -> Any:
    if isinstance(entry, slice):
        ends = (
            None if end is None else int(lowering.number(end)) if isinstance(end, Variable) else int(end)
            for end in (entry.start, entry.stop, entry.step)
        )
        return slice(*ends)
    value = lowering.number(entry) if isinstance(entry, Variable) else np.asarray(entry)
    if value.dtype == bool:
        return value
    return value.astype(np.int64) if value.ndim else int(value)


def advanced(lowering: Lowering, node: Apply) -> Expression:
    """Entries at places that arrays name; a row's own index makes a symbol of its own."""
    idx_list = getattr(node.op, "idx_list", (0,))
    entries = indices_from_subtensor(node.inputs[1:], idx_list)
    variables = [entry for entry in entries if isinstance(entry, Variable)]
    indices = [lowering.known[var] if var in lowering.known else lowering.of(var) for var in variables]
    if any(index.symbols for index in indices):
        if len(entries) == 1 and variables[0].type.dtype != "bool" and meeting_points.of_parameters(indices[0]):
            return _chosen(lowering.input(node, 0), indices[0])
        shape = node.outputs[0].type.shape
        if None in shape:
            raise UnknownOperation("an index whose result has no known shape")
        axes = [place for place, entry in enumerate(entries) if isinstance(entry, Variable)]
        return meeting_points.gathered(lowering.input(node, 0), indices, axes, tuple(int(n or 0) for n in shape))
    index = tuple(_known_entry(lowering, entry) for entry in entries)
    return moved("AdvancedSubtensor", partial(_taken, index), [lowering.input(node, 0)])


def _chosen(base: Expression, index: Expression) -> Expression:
    """Return the entry of `base` along its first axis that parameters choose: a switch between all that they may.

    Raises
    ------
    UnknownOperation
        If a row chooses, or among what depends on one, and if the index may leave the axis.
    """
    if not meeting_points.of_parameters(index) or not (meeting_points.of_parameters(base) or not base.symbols):
        raise UnknownOperation("an index that depends on a parameter or on a row")
    shape, (low, high) = np.shape(meeting_points.hull(base)[0]), meeting_points.hull(index)
    if not ((low >= -shape[0]) & (high < shape[0])).all():
        raise UnknownOperation(f"an index that may leave its axis of length {shape[0]}")
    after = len(shape) - 1
    place = moved("Axes", lambda array: array.reshape(*array.shape, *(1,) * after), [index])
    found: Expression | None = None
    for number in range(int(low.min()), int(high.max()) + 1) if low.size else range(1):
        entry = moved("Subtensor", partial(_entry, number, low.shape), [base])
        equal = elementwise("EQ", RULES[EQ], [place, constant(np.asarray(float(number)))])
        found = entry if found is None else switch(RULES[Switch], [equal, entry, found])
    assert found is not None
    return found


def _entry(number: int, shape: tuple[int, ...], array: Array) -> Array:
    """Return an entry along the first axis, as often as it may be chosen."""
    one = array[:, number].reshape(array.shape[0], *(1,) * len(shape), *array.shape[2:])
    return np.broadcast_to(one, (array.shape[0], *shape, *array.shape[2:]))


def _taken(index: tuple[Any, ...], array: Array) -> Array:
    """Index every box: NumPy would move the axes of arrays apart if the axis of boxes were a slice among them."""
    return (
        np.stack([one[index] for one in array])
        if array.shape[0] < 2
        else np.moveaxis(np.moveaxis(array, 0, -1)[index], -1, 0)
    )


def make_vector(lowering: Lowering, node: Apply) -> Expression:
    """Scalars as a vector."""
    return moved("MakeVector", _stacked, lowering.inputs(node))


def _stacked(*arrays: Array) -> Array:
    count = max(array.shape[0] for array in arrays)
    return np.stack([np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays], axis=1)


def join(lowering: Lowering, node: Apply) -> Expression:
    """Arrays one after the other."""
    if len(node.inputs) and node.inputs[0].type.ndim == 0 and not hasattr(node.op, "axis"):
        axis, parts = int(lowering.number(node.inputs[0])), lowering.inputs(node)[1:]
    else:
        axis, parts = int(node.op.axis), lowering.inputs(node)
    place = axis + 1 if axis >= 0 else axis

    def move(*arrays: Array) -> Array:
        count = max(array.shape[0] for array in arrays)
        return np.concatenate([np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays], axis=place)

    return moved("Join", move, parts)


def diagonal(lowering: Lowering, node: Apply) -> Expression:
    """The diagonal of two axes."""
    op = node.op
    first, second = (axis + 1 if axis >= 0 else axis for axis in (op.axis1, op.axis2))
    return moved("ExtractDiag", lambda array: np.diagonal(array, op.offset, first, second), [lowering.input(node, 0)])


__all__ = [
    "advanced",
    "alloc",
    "diagonal",
    "dimshuffle",
    "join",
    "join_axes",
    "make_vector",
    "reshape",
    "split_axis",
    "subtensor",
]
