"""Indices that the model computes, ``p[(age > 40).astype(int)]``: columns of a few levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem
from pymc_dp.inspection.columns import level_labels, shown_length, unknown_length
from pymc_dp.inspection.computed.columns import ComputedColumn, computed_column
from pymc_dp.inspection.computed.expressions import Formula, entries_of, range_of
from pymc_dp.inspection.computed.linear_forms import LinearForms
from pymc_dp.inspection.computed.terms import NotLinear
from pymc_dp.inspection.declared_bounds import bounded_columns
from pymc_dp.inspection.findings import MAX_CELLS, Findings
from pymc_dp.inspection.leaves import declared, leaf_of
from pymc_dp.inspection.owners import check_levels_of_persons
from pymc_dp.inspection.rows import Column, rebuild, unwrap
from pymc_dp.inspection.taint import IndexUse, RowFlow, trace_rows


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """Graphs with columns in the place of indices that are computed.

    Attributes
    ----------
    ends : list of Variable
    row_level : dict
        Arrays that reach them, without `columns`, and the axis that counts rows.
    flow : RowFlow
        Of the ends; uses of `columns` as an index are left out.
    columns : tuple of ComputedColumn
    """

    ends: list[Variable]
    row_level: dict[Variable, int | None]
    flow: RowFlow
    columns: tuple[ComputedColumn, ...] = ()


def with_computed_indices(
    findings: Findings,
    name: str,
    ends: Sequence[Variable],
    row_level: Mapping[Variable, int | None],
    flow: RowFlow,
    free: Collection[Variable],
) -> Indexed:
    """Replace indices that are functions of private continuous columns, or merge levels; problems are noted.

    Parameters
    ----------
    findings : Findings
    name : str
        Of the observed variable.
    ends : sequence of Variable
        Parameters of its likelihood.
    row_level : mapping
        Arrays that reach them, and free variables.
    flow : RowFlow
        Of the ends.
    free : collection of Variable
        Free variables as they stand in the ends.
    """
    groups: dict[Formula, list[Variable]] = {}
    held: dict[Variable, Column] = {}
    for index in dict.fromkeys(use.index for use in flow.index_uses):
        formula = _formula_of(findings, name, index, held, row_level, flow, free)
        if formula is not None:
            groups.setdefault(formula, []).append(index)
    every = [index for indices in groups.values() for index in indices]
    groups = {one: indices for one, indices in groups.items() if _continuous(one) or _merges(one, ends, every)}
    taken, columns, leaves = {str(var.name) for var in row_level}, list[ComputedColumn](), dict[Variable, Variable]()
    for formula, indices in groups.items():
        made = computed_column(name, formula, "int64", taken)
        if isinstance(made, Problem):
            findings.problem(made.where, made.what, made.remedy)
            continue
        own = {index: pt.TensorType(index.type.dtype, (None,))(made.name) for index in indices}
        made = replace(made, stand_ins=tuple(own.values()))
        columns.append(_with_levels(findings, name, made, [use for use in flow.index_uses if use.index in own]))
        leaves.update(own)
    if not leaves:
        return Indexed(ends=list(ends), row_level=dict(row_level), flow=flow)
    changed, _ = rebuild(list(ends), leaves)
    above = set(ancestors(changed))
    left = {var: axis for var, axis in row_level.items() if axis is None or var in above}
    traced = trace_rows(changed, {**left, **dict.fromkeys(leaves.values(), 0)})
    uses = [use for use in traced.index_uses if use.index not in leaves.values()]
    return Indexed(ends=changed, row_level=left, flow=replace(traced, index_uses=uses), columns=tuple(columns))


def _formula_of(
    findings: Findings,
    name: str,
    index: Variable,
    held: dict[Variable, Column],
    row_level: Mapping[Variable, int | None],
    flow: RowFlow,
    free: Collection[Variable],
) -> Formula | None:
    """Return an index as a function of the row, if private columns are in it: continuous ones, or some with bounds.

    Columns of numbers that are in several indices are the same ones, in `held`.
    """
    above = set(ancestors([index], blockers=list(free)))
    numeric = {var: axis for var, axis in row_level.items() if axis is not None and var in above}
    private = [var for var in numeric if var in findings.private_variables]
    if not private or above & set(free) or index.type.ndim != 1 or not index.type.dtype.startswith("int"):
        return None
    if not any(var.type.dtype.startswith("float") for var in private):
        observed = [var for var in numeric if leaf_of(findings, var) in findings.data_of.values()]
        known = [declared(findings, var, name).bounds for var in numeric]
        if observed or None in known or unwrap(index) in numeric:
            return None
    columns = bounded_columns(findings, name, {var: axis for var, axis in numeric.items() if var not in held})
    if columns is None:
        return None
    held.update({var: column for column in columns for var in column.stand_ins})
    forms = LinearForms(columns=held, axes=flow.axes, given=free, hidden={*findings.private_variables})
    try:
        return forms.of(index).require()
    except NotLinear:
        return None


def _continuous(formula: Formula) -> bool:
    return not all(entry.column.integer for entry in entries_of(formula))


def _merges(formula: Formula, ends: Sequence[Variable], indices: Sequence[Variable]) -> bool:
    """Whether an index has fewer levels than the whole numbers it is computed from, which nothing else is read from."""
    bounds, columns = range_of(formula), {entry.column for entry in entries_of(formula)}
    others = set(ancestors(list(ends), blockers=list(indices)))
    if bounds is None or any(others & set(column.stand_ins) for column in columns):
        return False
    levels = [high - low + 1 for low, high in (column.bounds or (0.0, 0.0) for column in columns)]
    return bounds[1] - bounds[0] + 1 < prod(levels)


def _with_levels(findings: Findings, name: str, column: ComputedColumn, uses: Sequence[IndexUse]) -> ComputedColumn:
    """Return a computed index with its levels; note where it may leave an axis."""
    assert column.bounds is not None
    low, high = int(np.ceil(column.bounds[0])), int(np.floor(column.bounds[1]))
    for use in uses:
        length = shown_length(findings, use, [high + 1])
        check_levels_of_persons(findings, column.name, [length])
        if length is None:
            findings.problem(name, *unknown_length(findings, column.name))
        elif low < 0 or high >= length:
            what = f"the computed index {column.name!r} runs over {low}..{high} within the bounds of its columns"
            remedy = "Give bounds of the columns so that the index stays on the axis, or cut it off by pt.clip."
            findings.problem(name, f"{what}, outside the axis of length {length}", remedy)
    if high - low >= MAX_CELLS:
        what = f"the computed index {column.name!r} has more than {MAX_CELLS} levels, nearly all of them empty"
        findings.problem(name, what, "Merge levels into fewer, wider ones.")
        high = low
    levels, dims = np.arange(low, high + 1), findings.model.named_vars_to_dims
    found = [dims[use.indexed.name][use.axis] for use in uses if dims.get(use.indexed.name or "")]
    dim = found[0] if found else None
    bounds, labels = (float(low), float(high)), level_labels(findings, dim, levels)
    return replace(column, bounds=bounds, levels=levels, dim=dim, labels=labels)


__all__ = ["Indexed", "with_computed_indices"]
