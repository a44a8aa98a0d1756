"""The columns of a table, and the public set of each: levels that span cells, or bounds that rows are clamped to.

Levels of discrete free variables that are known beforehand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp._column_bounds import written
from pymc_dp.errors import needs_bounds
from pymc_dp.inspection.declared_levels import other_levels
from pymc_dp.inspection.findings import MAX_CELLS, Findings
from pymc_dp.inspection.implied_ranges import Implied
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.leaves import by_leaf, declared, names_of, range_held
from pymc_dp.inspection.owners import check_levels_of_persons
from pymc_dp.inspection.priors import Prior, constant_values, only_selects
from pymc_dp.inspection.rows import (
    Array,
    Bounds,
    Column,
    Outside,
    fitted_column,
    limits_of,
    public_values,
    reached,
    rebuild,
    shape_of,
    unwrap,
)
from pymc_dp.inspection.taint import IndexUse, RowFlow, depends_on

MOST_LEVELS = 1024
"""Of one variable: where a value is chosen, each of them is tried."""
WITHOUT = "is discrete without a known finite set of levels"


def static_levels(rv: Variable) -> int | None:
    """Return K for a variable with the levels 0..K-1, as far as the types of its parameters say so, else None."""
    op: Any = rv.owner.op
    if not isinstance(op, RandomVariable) or op.name not in ("bernoulli", "categorical", "markov_states"):
        return None
    if op.name == "bernoulli":
        return 2
    lengths = [item.type.shape[-1] for item in op.dist_params(rv.owner)[:2] if item.type.ndim]
    return next((length for length in lengths if length is not None), None)


def levels_of(prior: Prior) -> Array | None:
    """Levels of a discrete variable that are known beforehand, ascending; None where there are none or too many."""
    op: Any = prior.variable.owner.op
    if prior.distribution == "bernoulli":
        return np.arange(2)
    if prior.distribution == "categorical":
        length = prior.parameters[0].type.shape[-1]
        if length is None:
            values = constant_values(prior.parameters)
            length = None if values is None else values[0].shape[-1]
        return None if length is None or length > MOST_LEVELS else np.arange(length)
    if prior.distribution == "markov_states":
        length = static_levels(prior.variable)
        return None if length is None or length > MOST_LEVELS else np.arange(length)
    if prior.distribution in ("discrete_uniform", "binomial") and isinstance(op, RandomVariable):
        values = constant_values(prior.parameters)
        if values is None:
            return None
        low, high = (values[0], values[1]) if prior.distribution == "discrete_uniform" else (np.zeros(()), values[0])
        if np.unique(low).size == 1 and np.unique(high).size == 1 and high.max() - low.min() < MOST_LEVELS:
            return np.arange(int(low.min()), int(high.max()) + 1)
    return None


def find_columns(
    findings: Findings, rv: Variable, row_level: Mapping[Variable, int | None], flow: RowFlow
) -> list[Column]:
    """Return the columns of a likelihood with their public levels, which span the cells of its table."""
    columns, arrays = [], by_leaf(findings, row_level)
    for leaf, stand_ins in arrays.items():
        column = declared(findings, leaf, f"unnamed column of {rv.name}", stand_ins)
        uses = [use for use in flow.index_uses if unwrap(use.index) in stand_ins]
        dims = [
            findings.model.named_vars_to_dims[use.indexed.name][use.axis]
            for use in uses
            if findings.model.named_vars_to_dims.get(use.indexed.name or "")
        ]
        lengths = [shown_length(findings, use, declared_lengths(findings, column)) for use in uses]
        check_levels_of_persons(findings, column.name, lengths)
        found = _levels(findings, rv, column, lengths)
        if found is not None:
            levels, outside = found
            dim = dims[0] if dims else None
            if what := other_levels(findings, column.name, dim, lengths[0] if lengths else None):
                findings.problem(column.name, what, "Give both in the order of the codes: Domain(levels=...), coords=.")
            ends = (float(levels[0]), float(levels[-1])) if len(levels) else None
            labels = level_labels(findings, dim, levels)
            columns.append(
                replace(column, bounds=ends, norm=None, levels=levels, outside=outside, dim=dim, labels=labels)
            )
    if len(columns) == len(arrays) and not flow.problems:
        _check_derived_indices(findings, rv, columns, flow)
    return columns


def declared_lengths(findings: Findings, column: Column) -> set[int]:
    """Return the numbers of levels that a column is declared to have: by its bounds, its dtype, or its likelihood."""
    leaf, ends = column.leaf, [] if column.bounds is None else [int(column.bounds[1]) + 1]
    return {*ends, *([2] if leaf.type.dtype == "bool" else []), *_observed_levels(findings, leaf)}


def shown_length(findings: Findings, use: IndexUse, declared: Collection[int]) -> int | None:
    """Length of an indexed axis; None where it may be the private number of rows.

    Under ``add_remove`` a length has to be declared, for ``shape=len(y)`` has the number of rows and nothing shows it.
    Either it is among those that the column is declared to have, or it is that of a dimension with coords, of the
    variable or of a free variable that it is computed from, or of numbers that are written one by one, ``pt.stack``.
    """
    if findings.domain.neighbours == "replace" or use.length is None:
        return use.length
    if use.length in declared:
        return use.length
    model, above = findings.model, set(ancestors([use.indexed]))
    held = {str(var.name) for var in above if var.name}
    dims = [dim for name in held for dim in model.named_vars_to_dims.get(name) or ()]
    named = [dim for dim in dims if dim not in findings.row_dims and model.coords.get(dim) is not None]
    written = [var for var in above if var.owner and isinstance(var.owner.op, MakeVector) and "float" in var.type.dtype]
    lengths = [*(len(model.coords[dim]) for dim in named), *(len(var.owner.inputs) for var in written)]
    return use.length if use.length in lengths else None


def unknown_length(findings: Findings, name: str) -> tuple[str, str]:
    """Say that `shown_length` is None of what a column indexes, and what to write."""
    if findings.domain.neighbours == "replace":
        what = f"the length of the axis that {name!r} indexes is not known before sampling"
        return what, "Give the variable dims= or a constant shape."
    return (
        f"{name!r} indexes an axis whose length is {UNDECLARED}",
        f"Declare its levels up to the end of the axis, dp.Domain(bounds={{{name!r}: (0, last)}}), or give the axis "
        "dims with coords.",
    )


UNDECLARED = "not declared, and may be the number of rows"


def level_labels(findings: Findings, dim: str | None, levels: Array) -> tuple[str, ...]:
    """Labels of the dimension that a column indexes, one per level; none where it has no labels."""
    known = findings.model.coords.get(dim) if dim is not None else None
    if known is not None and levels.dtype.kind in "iu" and levels[0] >= 0 and levels[-1] < len(known):
        return tuple(f"{dim}={known[int(level)]}" for level in levels)
    return ()


def _levels(
    findings: Findings, rv: Variable, column: Column, lengths: Sequence[int | None]
) -> tuple[Array, Outside] | None:
    name, leaf = column.name, column.leaf
    kind = np.dtype(leaf.type.dtype).kind
    known = {length for length in lengths if length is not None}
    if not lengths and column.bounds is None and kind != "f":
        known = _observed_levels(findings, leaf)
    if column.public:
        if kind in "iu" and len(known) == 1:
            return np.arange(min(known.pop(), limits_of(np.dtype(leaf.type.dtype))[1] + 1)), "first"
        return np.unique(public_values(leaf, findings.private_variables)) if shape_of(leaf)[0] else np.zeros(1), "first"
    if kind == "f":
        what, remedy = (
            f"the private column {name!r} is continuous",
            f"Cut {name!r} into a few public levels (an integer column)",
        )
        if names_of(findings, leaf, column.stand_ins):
            public = f"if anyone may know it, dp.Domain(public=[{name!r}])"
            findings.problem(rv.name, what, f"{remedy}; or, {public}.")
        else:
            findings.without_name(rv.name, [leaf])
        return None
    if len(known) > 1:
        findings.problem(
            rv.name,
            f"{name!r} indexes axes of different lengths {sorted(known)}",
            "Index axes of one length by a column.",
        )
        return None
    if lengths and not known:
        findings.problem(rv.name, *unknown_length(findings, name))
        return None
    if column.bounds is None:
        if not known:
            if names_of(findings, leaf, column.stand_ins):
                what = f"the range of the private column {name!r} is not public"
                remedy = f"{needs_bounds(name)}."
                findings.problem(rv.name, what, remedy, "declaration")
            else:
                findings.without_name(rv.name, [leaf])
            return None
        return np.arange(min(known.pop(), limits_of(np.dtype(leaf.type.dtype))[1] + 1)), "first"
    low, high = column.bounds
    if high - low >= MAX_CELLS:
        findings.problem(
            rv.name,
            f"bounds[{name!r}] = ({low:g}, {high:g}) span more than {MAX_CELLS} levels, nearly all of them empty",
            "Merge levels into fewer, wider ones.",
        )
        return None
    if low != int(low) or high != int(high):
        findings.problem(
            rv.name,
            f"bounds[{name!r}] = ({low}, {high}) are not whole numbers, but the column is",
            "Give whole numbers.",
        )
        return None
    length = next(iter(known), None)
    if length is not None and (low < 0 or high >= length):
        findings.problem(
            rv.name,
            f"bounds[{name!r}] = ({low:g}, {high:g}) reach beyond the axis of length {length} that the column indexes",
            f"Keep them within (0, {length - 1}).",
        )
        return None
    least, most = limits_of(np.dtype(leaf.type.dtype))
    low, high = max(low, least), min(high, most)
    if low > high:
        findings.problem(rv.name, f"bounds[{name!r}] lie outside of what its dtype can hold", "Give bounds that fit.")
        return None
    return np.arange(int(low), int(high) + 1), "nearest"


def _observed_levels(findings: Findings, leaf: Variable) -> set[int]:
    """Number of levels that likelihoods which observe a column give it; nothing where they do not say."""
    holders = [rv for rv, held in findings.data_of.items() if held is leaf]
    return {levels for rv in holders if (levels := static_levels(rv)) is not None}


def _check_derived_indices(findings: Findings, rv: Variable, columns: Sequence[Column], flow: RowFlow) -> None:
    """Evaluate computed indices (``p[rating - 1]``) on every public level and require that they fit."""
    stand_ins = {var for column in columns for var in column.stand_ins}
    for use in flow.index_uses:
        fits = _level_fits(findings, use, stand_ins)
        if unwrap(use.index) in stand_ins or fits:
            continue
        inner = [column for column in columns if depends_on(use.index, column.stand_ins)]
        upstream = list(reached([use.index], stand_ins))
        random = any(var.owner is not None and isinstance(var.owner.op, RandomVariable) for var in upstream)
        if random and fits is None and _picks_a_parameter(use.index, list(stand_ins)):
            continue
        many = int(np.prod([len(column.levels) for column in inner])) > MAX_CELLS
        if use.length is None or random or many:
            findings.problem(rv.name, "the range of a computed index cannot be checked", "Index by the column itself.")
            continue
        grid = np.meshgrid(*[column.levels for column in inner], indexing="ij")
        replace = {
            var: pt.constant(values.ravel().astype(var.type.dtype))
            for column, values in zip(inner, grid, strict=True)
            for var in column.stand_ins
        }
        (index,), _ = rebuild([use.index], replace)
        values = plain_function([], index)()
        shown = " and ".join(column.name for column in inner)
        length = shown_length(findings, use, [int(values.max()) + 1])
        check_levels_of_persons(findings, shown, [length])
        if length is None:
            findings.problem(rv.name, *unknown_length(findings, shown))
        elif values.min() < 0 or values.max() >= use.length:
            findings.problem(
                rv.name,
                f"an index computed from {', '.join(repr(c.name) for c in inner)} runs over "
                f"{values.min()}..{values.max()} on the public levels, outside the axis of length {use.length}",
                "Give bounds of the column so that the index stays on the axis, or index by the column itself.",
            )


def _picks_a_parameter(index: Variable, stand_ins: Sequence[Variable]) -> bool:
    """Whether columns only choose which parameter is the index, as in ``p[z[region]]``: it is ``p[z][region]``."""
    inner = unwrap(index)
    if inner.owner is None or not isinstance(inner.owner.op, Subtensor | AdvancedSubtensor):
        return False
    carried = inner.owner.inputs[0]
    return carried.type.dtype.startswith(("int", "uint")) and not depends_on(carried, stand_ins)


def _level_fits(findings: Findings, use: IndexUse, stand_ins: Collection[Variable]) -> bool | None:
    """Whether levels of a discrete variable of a row's cell fit, ``profile[state[region, month]]``; else None.

    The range is then one of the prior, whatever the rows are.
    """
    for rv in findings.model.free_RVs:
        known = [var for var in reached([use.index], stand_ins) if var is rv or var.name == rv.name]
        if len(known) == 1 and rv.type.dtype.startswith("int") and only_selects(use.index, known[0]):
            levels = static_levels(rv)
            return None if levels is None or use.length is None else levels <= use.length
    return None


def row_column(
    findings: Findings, leaf: Variable, place: int, flows: Sequence[RowFlow], implied: Sequence[Implied]
) -> Column:
    """Return a column of the table with its public set.

    Bounds are, in this order: those of the domain; those that the model implies (`implied` by the likelihoods that
    observe it, the axes that it indexes, a boolean dtype); for a public column, the range of the values held.
    """
    column = declared(findings, leaf, f"unnamed array {place}")
    uses = [use for flow in flows for use in flow.index_uses if unwrap(use.index) is leaf]
    lengths = [shown_length(findings, use, declared_lengths(findings, column)) for use in uses]
    if findings.domain.neighbours == "add_remove" and None in lengths:
        findings.problem(column.name, *unknown_length(findings, column.name))
    check_levels_of_persons(findings, column.name, lengths)
    bounds, outside = _by_the_model(leaf, lengths, implied)
    if column.bounds is not None:
        bounds, outside = column.bounds, "nearest"
    elif column.public and (ends := range_held(findings, leaf)) is not None:
        if column.norm is not None:
            ends = min(ends[0], 0.0), max(ends[1], 0.0)
        if bounds is None or bounds[0] <= ends[0] <= ends[1] <= bounds[1]:  # else what the model implies stands
            bounds, outside = ends, "nearest"
    found = fitted_column(replace(column, bounds=bounds, outside=outside))
    if not isinstance(found, Column):
        what = f"its bounds {written(found)} hold no value of its dtype, {leaf.type.dtype}"
        findings.problem(column.name, what, "Widen them.")
        return replace(column, bounds=None, ranges=(), outside=outside)
    _check(findings, found, bounds)
    return found


def _by_the_model(
    leaf: Variable, lengths: Sequence[int | None], implied: Sequence[Implied]
) -> tuple[Bounds | None, Outside]:
    found: list[Implied] = [*implied, *((length - 1.0, "first") for length in lengths if length)]
    if leaf.type.dtype == "bool":
        found.append((1.0, "first"))
    if not found:
        return None, "nearest"
    return (0.0, min(high for high, _ in found)), min(outside for _, outside in found)


def _check(findings: Findings, column: Column, bounds: Bounds | None) -> None:
    """Refuse bounds that rows may leave where they are scaled down to a norm."""
    if column.norm is not None and bounds is not None and not bounds[0] <= 0 <= bounds[1]:
        findings.problem(
            column.name,
            f"its bounds {written(bounds)} exclude 0, and a row that is scaled down to the norm "
            f"{column.norm:g} may leave them",
            "Give bounds that include 0, or only one of bounds and norms.",
        )


__all__ = ["MOST_LEVELS", "WITHOUT", "levels_of", "static_levels"]
