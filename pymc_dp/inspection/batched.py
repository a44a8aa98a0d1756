"""Operations that PyTensor would call once per row, applied to all rows at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot
from pytensor.tensor.special import LogAddExp, LogSumExp, XLog1PY, XLogY

from pymc_dp.inspection.row_density import replaced

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
    return None


__all__ = ["vectorized", "written_out"]
