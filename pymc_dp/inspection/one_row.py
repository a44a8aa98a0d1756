"""One row of a table as placeholders: its log-likelihood as a graph.

All free variables of a model as parts of one vector.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from pymc_dp.inspection.findings import RowTerm
from pymc_dp.inspection.rows import public_values, rebuild, shape_of
from pymc_dp.inspection.taint import RowFlow


def placeholder(leaf: Variable, shape: Sequence[int | None]) -> Variable:
    """Return a variable for rows of a column; axes that do not count rows have the lengths of the column."""
    known = leaf.type.shape[1:] if None not in leaf.type.shape[1:] else shape_of(leaf)[1:]
    shape = (*shape[: len(shape) - len(known)], *known)
    return pt.TensorType(leaf.type.dtype, shape)(leaf.name)


def of_one_row(term: RowTerm, one: Mapping[Variable, Variable], free: Mapping[Variable, Variable]) -> Variable:
    """Return the scalar log-likelihood of one row of placeholders."""
    graph = with_rows(term, {leaf: row[None] for leaf, row in one.items()}, free)
    return graph.sum()


def with_rows(term: RowTerm, rows: Mapping[Variable, Variable], free: Mapping[Variable, Variable]) -> Variable:
    """Return the graph of a term on other rows; an index outside of its axis becomes 0, whatever the row holds."""
    memo: dict[Variable, Variable] = {**rows, **free}
    for node in toposort([term.logp], blockers=list(memo)):
        if all(out in memo for out in node.outputs):
            continue
        changed = {old: memo[old] for old in node.inputs if old in memo}
        if isinstance(node.op, AdvancedSubtensor):
            changed |= _clamped_indices(node, changed, term.flow)
        if changed:
            memo.update(zip(node.outputs, rebuild(node.outputs, changed)[0], strict=True))
    return memo.get(term.logp, term.logp)


def _clamped_indices(node: Any, changed: Mapping[Variable, Variable], flow: RowFlow) -> dict[Variable, Variable]:
    """Return row-level indices of a node with every value outside of the axis, negative ones too, sent to 0."""
    indexed, found = node.inputs[0], {}
    lengths = changed.get(indexed, indexed)
    for axis, entry in enumerate(indices_from_subtensor(node.inputs[1:], node.op.idx_list)):
        if isinstance(entry, Variable) and entry in changed and flow.axes.get(entry) is not None:
            index = changed[entry]
            known = lengths.type.shape[axis]
            length = pt.constant(known, dtype="int64") if known is not None else lengths.shape[axis]
            found[entry] = pt.switch((index >= 0) & (index < length), index, 0).astype("int64")
    return found


def frozen_shared(graph: Variable, hidden: Container[Variable]) -> Variable:
    """Return a graph with its public shared variables as constants: later changes of the model do not reach it.

    Raises PrivacyError if it depends on one that is hidden.
    """
    shared = [var for var in ancestors([graph]) if isinstance(var, SharedVariable) and isinstance(var.type, TensorType)]
    held = {var: public_values(var, hidden).copy() for var in shared}
    return rebuild([graph], {var: pt.constant(held[var], dtype=var.type.dtype) for var in shared})[0][0]


def parts_of(flat: Variable, variables: Sequence[Variable], shapes: Sequence[tuple[int, ...]]) -> dict[Variable, Any]:
    """Return variables, of known shapes, as parts of one vector, one after the other."""
    vector: Any = flat
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
    places = zip(variables, shapes, ends[:-1], ends[1:], strict=True)
    return {var: vector[start:end].reshape(shape).astype(var.type.dtype) for var, shape, start, end in places}


__all__ = ["frozen_shared", "of_one_row", "parts_of", "placeholder", "with_rows"]
