"""Indices that the model computes from continuous columns, ``p[(age > 40).astype(int)]``: columns of a few levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem
from pymc_dp.inspection.columns import level_labels, shown_length
from pymc_dp.inspection.computed.columns import ComputedColumn, computed_column
from pymc_dp.inspection.computed.linear_forms import LinearForms
from pymc_dp.inspection.computed.terms import NotLinear
from pymc_dp.inspection.design import bounded_columns
from pymc_dp.inspection.findings import MAX_CELLS, Findings
from pymc_dp.inspection.rows import rebuild
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
    """Replace indices that are functions of private continuous columns; problems are noted.

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
    found: dict[Variable, ComputedColumn] = {}
    taken = {str(var.name) for var in row_level}
    for index in dict.fromkeys(use.index for use in flow.index_uses):
        above = set(ancestors([index], blockers=list(free)))
        numeric = {var: axis for var, axis in row_level.items() if axis is not None and var in above}
        continuous = [
            var for var in numeric if var.type.dtype.startswith("float") and var in findings.private_variables
        ]
        if not continuous or above & set(free) or index.type.ndim != 1 or not index.type.dtype.startswith("int"):
            continue
        columns = bounded_columns(findings, name, numeric)
        if columns is None:
            continue
        held = {var: column for column in columns for var in column.stand_ins}
        forms = LinearForms(columns=held, axes=flow.axes, given=free, hidden={*findings.private_variables})
        try:
            formula = forms.of(index).require()
        except NotLinear:
            continue
        made = computed_column(name, formula, index.type.dtype, taken)
        if isinstance(made, Problem):
            findings.problem(made.where, made.what, made.remedy)
        else:
            found[index] = _with_levels(findings, name, made, [use for use in flow.index_uses if use.index is index])
    if not found:
        return Indexed(ends=list(ends), row_level=dict(row_level), flow=flow)
    changed, _ = rebuild(list(ends), {index: column.leaf for index, column in found.items()})
    above = set(ancestors(changed))
    left = {var: axis for var, axis in row_level.items() if axis is None or var in above}
    leaves = {column.leaf: 0 for column in found.values()}
    traced = trace_rows(changed, {**left, **leaves})
    uses = [use for use in traced.index_uses if use.index not in leaves]
    return Indexed(ends=changed, row_level=left, flow=replace(traced, index_uses=uses), columns=tuple(found.values()))


def _with_levels(findings: Findings, name: str, column: ComputedColumn, uses: Sequence[IndexUse]) -> ComputedColumn:
    """Return a computed index with its levels; note where it may leave an axis."""
    assert column.bounds is not None
    low, high = int(np.ceil(column.bounds[0])), int(np.floor(column.bounds[1]))
    for use in uses:
        length = shown_length(findings, use)
        if length is None:
            what = f"the length of the axis that {column.name!r} indexes is not known before sampling"
            findings.problem(name, what, "Give the variable dims= or a constant shape.")
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
