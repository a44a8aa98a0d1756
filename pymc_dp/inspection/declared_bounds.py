"""Bounds that a domain declares, held against the model: of arrays of several columns, and of columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytensor.graph.basic import Variable

from pymc_dp._column_bounds import each_of, hull_of, pairs_of, written
from pymc_dp.errors import DomainError, needs_bounds
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.leaves import by_leaf, declared, names_of, range_held
from pymc_dp.inspection.rows import Column, shape_of, unwrap


def check_pairs(findings: Findings) -> None:
    """Raise on a list of bounds of what is no covariate with as many columns."""
    model = findings.model
    observed = {name: rv for rv in model.observed_RVs for name in (rv.name, unwrap(model.rvs_to_values[rv]).name)}
    for name, ends in findings.domain.bounds.items():
        pairs = pairs_of(ends)
        if not pairs:
            continue
        one = f"Domain(bounds={{{name!r}: {written(hull_of(ends))}}})"
        if name in observed:
            raise DomainError(
                f"bounds[{name!r}] lists {len(pairs)} pairs, but {observed[name].name!r} is observed, and what a "
                f"likelihood observes has one pair for all of its values. Write {one}."
            )
        shape = shape_of(model[name])
        if len(shape) != 2:
            several = "one value" if len(shape) == 1 else f"an array of {len(shape) - 1} axes"
            raise DomainError(
                f"bounds[{name!r}] has a pair per column, but a row of {name!r} is {several}. Write {one}."
            )
        if shape[1] != len(pairs):
            raise DomainError(
                f"bounds[{name!r}] lists {len(pairs)} pairs, but {name!r} has {shape[1]} columns. Give a pair for each "
                f"in their order, or one for all of them, {one}."
            )


def bounded_columns(findings: Findings, name: str, numeric: Mapping[Variable, int | None]) -> list[Column] | None:
    """Return arrays that are numbers with their public sets; None, with problems noted, where one has none."""
    found: list[Column] = []
    complete, nameless = True, list[Variable]()
    for place, (leaf, stand_ins) in enumerate(by_leaf(findings, numeric).items()):
        column = declared(findings, leaf, f"unnamed array {place} of {name}", stand_ins)
        shown, bounds = column.name, column.bounds
        if bounds is None and leaf.type.dtype == "bool":
            bounds = 0.0, 1.0
        elif bounds is None and column.public and (bounds := range_held(findings, leaf)) is not None:
            low, high = bounds
            bounds = bounds if low < high else (low - 1.0, high + 1.0)
        if column.norm is None and bounds is None:
            if names_of(findings, leaf, stand_ins):
                findings.problem(
                    name,
                    f"the private column {shown!r} has no bounds, so one row could move its sums by any amount",
                    f"{needs_bounds(shown)}{each_of(leaf.type.ndim)}, or, "
                    f"for an array, a norm of its rows, norms=; if anyone may know it, dp.Domain(public=[{shown!r}]).",
                    "declaration",
                )
            else:
                nameless.append(leaf)
            complete = False
        # Bounds by another name are for the sums of a likelihood that observes the column.
        if {shown, *column.aliases} & findings.domain.norms.keys() & findings.domain.bounds.keys():
            findings.problem(
                name, f"{shown!r} has bounds and a norm", "Give only one of bounds and norms, to release statistics."
            )
            complete = False
        if len(shape_of(leaf)) > 2:
            findings.problem(name, f"{shown!r} has more than two axes", "Give one row of numbers per row.")
            complete = False
        found.append(replace(column, bounds=None if column.norm is not None else bounds))
    if nameless:
        findings.without_name(name, nameless)
    return found if complete else None


__all__ = ["bounded_columns", "check_pairs"]
