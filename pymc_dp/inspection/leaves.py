"""The arrays of a table: what they are called, what is declared of them, and which variables stand for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant, Variable

from pymc_dp._column_bounds import hull_of, pairs_of
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.rows import Bounds, Column, public_values, same_array


def declared(findings: Findings, leaf: Variable, otherwise: str, stand_ins: Sequence[Variable] = ()) -> Column:
    """Return a column as the model and the domain declare it; `otherwise` is its name where it has none."""
    names, domain = names_of(findings, leaf, stand_ins), findings.domain
    bounds = next((domain.bounds[name] for name in names if name in domain.bounds), None)
    return Column(
        name=names[0] if names else otherwise,
        leaf=leaf,
        public=leaf in findings.row_leaves and leaf not in findings.private_variables,
        bounds=None if bounds is None else hull_of(bounds),
        ranges=() if bounds is None else pairs_of(bounds),
        norm=next((domain.norms[name] for name in names if name in domain.norms), None),
        aliases=tuple(names[1:]),
        stand_ins=tuple(stand_ins),
    )


def names_of(findings: Findings, leaf: Variable, stand_ins: Sequence[Variable] = ()) -> list[str]:
    """Return what an array is called: by itself, and by the variables that observe it."""
    observing = [rv for rv, held in findings.data_of.items() if held is leaf]
    return list(dict.fromkeys(str(var.name) for var in (leaf, *stand_ins, *observing) if var.name))


def by_leaf(findings: Findings, row_level: Mapping[Variable, int | None]) -> dict[Variable, list[Variable]]:
    """Return the arrays of the table, and which row-level variables each of them stands behind.

    An array that a model uses twice is a constant of its own each time, but one column: the array itself says so. Two
    arrays whose values agree do not become one, for that would depend on rows.
    """
    found: dict[Variable, list[Variable]] = {}
    first: dict[tuple[int, Any], Variable] = {}
    for var, axis in row_level.items():
        if axis is not None:
            leaf = leaf_of(findings, var)
            if isinstance(leaf, Constant):
                leaf = first.setdefault((same_array(leaf), leaf.type), leaf)
            found.setdefault(leaf, []).append(var)
    return found


def leaf_of(findings: Findings, var: Variable) -> Variable:
    """Return the array that an observed variable observes; another variable, or one that observes none, itself."""
    held = findings.data_of.get(var)
    return var if held is None else held


def range_held(findings: Findings, leaf: Variable) -> Bounds | None:
    """Range of the values of a public column; None where there are none, or some are not finite."""
    values = public_values(leaf, findings.private_variables)
    return (float(values.min()), float(values.max())) if values.size and np.isfinite(values).all() else None


__all__ = ["by_leaf", "declared", "leaf_of", "names_of", "range_held"]
