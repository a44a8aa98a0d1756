"""One row of a table as placeholders: its log-likelihood as a graph, and a check that rows are independent factors."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.findings import RowInspection, RowTerm
from pymc_dp.inspection.interpreted import NUMPY, plain_function, start_of
from pymc_dp.inspection.rows import Array, Column, public_values, shape_of
from pymc_dp.inspection.taint import RowFlow

DUMMY_ROWS = 7
TOLERANCE = 1e-8


def placeholder(leaf: Variable, shape: Sequence[int | None]) -> Variable:
    """Return a variable for rows of a column; axes that do not count rows have the lengths of the column."""
    known = leaf.type.shape[1:] if None not in leaf.type.shape[1:] else _trailing(leaf)
    shape = (*shape[: len(shape) - len(known)], *known)
    return pt.TensorType(leaf.type.dtype, shape)(leaf.name)


def _trailing(leaf: Variable) -> tuple[int, ...]:
    """Lengths of the axes that do not count rows: schema."""
    return shape_of(leaf)[1:]


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


def dummy_rows(columns: Sequence[Column], n_rows: int, rng: np.random.Generator) -> list[Array]:
    """Return random rows that only the schema knows: integers 0 and 1, positive numbers below 1, within the bounds."""
    tables = []
    for column in columns:
        shape = (n_rows, *_trailing(column.leaf))
        kind = np.dtype(column.leaf.type.dtype).kind
        drawn = rng.integers(0, 2, size=shape) if kind in "iub" else rng.uniform(0.1, 0.9, size=shape)
        tables.append(column.clamped(drawn.astype(column.leaf.type.dtype)))
    return tables


def verify_on_dummy_rows(
    inspection: RowInspection,
    free: Mapping[Variable, Variable],
    one_row: Variable,
    one: Mapping[Variable, Variable],
) -> None:
    """Compare the model's log-likelihood of a dummy table with the sum over its rows, at a few random positions.

    Raises
    ------
    UnsupportedModelError
        If they differ, the model's log-likelihood does not separate over rows in this way.
    """
    rng = np.random.default_rng(0)
    tables = dummy_rows(inspection.columns, DUMMY_ROWS, rng)
    whole = [with_rows(term, _constants(inspection.columns, tables), free).sum() for term in inspection.terms]
    rows = {one[column.leaf]: pt.constant(table) for column, table in zip(inspection.columns, tables, strict=True)}
    separate = vectorize_graph(one_row, rows).sum()
    totals = [pt.add(*whole) if len(whole) > 1 else whole[0], separate]
    names = ", ".join(term.name for term in inspection.terms)
    roots = [var for var in ancestors(totals) if var.owner is None]
    inputs = [var for var in roots if not isinstance(var, Constant | SharedVariable)]
    shapes = [var.type.shape for var in inputs]
    if any(None in shape for shape in shapes):
        start = start_of(inspection.model)
        shapes = [np.shape(start[str(var.name)]) for var in inputs]
    # Composite operations compile what is inside of them, by the default mode or in C, which may take minutes.
    with pytensor.config.change_flags(**NUMPY):
        function = plain_function(inputs, totals, few=True)
        for _ in range(3):
            point = [np.asarray(rng.normal(0, 0.3, shape)) for shape in shapes]
            whole_sum, row_sum = function(*point)
            if not np.allclose(whole_sum, row_sum, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                what = (
                    "on dummy rows its log-likelihood is not the sum of terms of single rows: it does not factorise "
                    "over rows"
                )
                remedy = "Write a density that is a product over rows."
                raise UnsupportedModelError([Problem(where=names, what=what, remedy=remedy)])


def _constants(columns: Sequence[Column], tables: Sequence[Array]) -> dict[Variable, Variable]:
    return {column.leaf: pt.constant(table) for column, table in zip(columns, tables, strict=True)}


__all__ = ["dummy_rows", "frozen_shared", "of_one_row", "placeholder", "verify_on_dummy_rows", "with_rows"]
