"""Which arrays that reach a likelihood are columns of the table, and what is wrong with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp._column_bounds import hull_of, pairs_of
from pymc_dp.inspection.findings import Findings, by_hand
from pymc_dp.inspection.made_by_pymc import Box, boxes, plainly_made
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import Array, array_leaves, public_values, reached, shape_of


def row_level_arrays(
    findings: Findings,
    rv: Variable,
    ends: Sequence[Variable],
    stop: Sequence[Variable],
    axis: RowAxis,
    *,
    along: Iterable[Variable] = (),
    wide: bool = False,
) -> dict[Variable, int | None]:
    """Classify the arrays that reach a likelihood: columns of the table (axis 0), and arrays free of rows (None).

    Parameters
    ----------
    findings : Findings
    rv : Variable
        The observed variable.
    ends, stop : sequence of Variable
        Arrays are followed to `ends` other than through `stop`.
    axis : RowAxis
    along : iterable of Variable
        Those of `ends` that are known to broadcast against rows.
    wide : bool
        Whether a row of a column may be an array itself.
    """
    found: dict[Variable, int | None] = {}
    rows, openly = axis.among(ends, stop, along), set(ancestors(list(ends), blockers=list(stop)))
    observed = {leaf for leaf in findings.data_of.values() if leaf is not None}
    placed = [*boxes(ends, stop)]
    for box in placed:
        if (wrong := box.problem(_known_bounds(findings, box))) is not None:
            findings.cause(rv.name, *wrong)
    by_pymc = {leaf for box in placed for leaf in box.arrays}
    plain = _numbers_of_a_density(findings, rv, ends, stop) if findings.single_row else set[Variable]()
    for leaf in array_leaves(ends, stop, single=findings.single_row):
        if leaf in plain:
            continue
        name = leaf.name
        shown = repr(name) if name else f"an unnamed array of {leaf.type.dtype}"
        public = name in findings.domain.public and leaf in findings.model.data_vars
        alone = leaf.type.shape[0] == 1  # a column of a table of one row, or what broadcasts against any
        on_rows = leaf in rows or (alone and findings.single_row and axis.known.get(leaf, True))
        # An array as long as the table is not read. What others hold decides, and they are listed as assumed public.
        made = leaf in by_pymc or (axis.n_rows not in (None, *shape_of(leaf)) and plainly_made(leaf))
        if public and leaf in observed:
            findings.problem(
                rv.name,
                f"{name!r} is declared public, but it is also what a likelihood observes",
                "Leave it out of Domain(public=...): what is observed is protected.",
            )
        elif public:
            findings.public[str(name)] = None
        elif on_rows or not made:
            findings.private[name or f"unnamed array in {rv.name}"] = None
            findings.private_variables.append(leaf)
            dims = findings.model.named_vars_to_dims.get(name or "")
            if on_rows and dims:
                findings.row_dims |= {str(dims[0])}
        if leaf not in openly:
            findings.problem(
                rv.name,
                f"an array inside a composite operation ({repr(name) if name else 'unnamed'}) reaches the likelihood",
                "Write the expression with plain PyTensor operations, so that it can be followed.",
            )
        elif on_rows and shape_of(leaf)[0] != findings.n_rows:
            findings.problem(
                rv.name,
                f"{shown} and the observed values have different numbers of rows",
                "Give every column of the table the same length, for example by one pm.set_data for all.",
            )
        elif not on_rows and not public and not made:
            findings.problem(
                rv.name,
                f"{shown} does not have the row axis, and may be made of rows",
                _public(findings, leaf),
            )
        elif on_rows and leaf.type.ndim > 1 and not wide:
            findings.problem(
                rv.name,
                f"{'the public column ' if public else ''}{shown} has {leaf.type.ndim} dimensions",
                "Wrap each of its columns in its own pm.Data.",
            )
        found[leaf] = 0 if on_rows else None
        if on_rows:
            findings.row_leaves.add(leaf)
    return found


def _numbers_of_a_density(
    findings: Findings, rv: Variable, ends: Sequence[Variable], stop: Sequence[Variable]
) -> set[Variable]:
    """Return the numbers that PyMC writes a density with: a table of one row has none that the model has not.

    Where such a number counted as a column, one row would be refused which two are not. In a density by hand any may be
    the row: a function in Python holds it where the graph of the variable does not show it.
    """
    others = [var for var in (*findings.model.free_RVs, *findings.data_of) if var is not rv]
    if by_hand(rv, others):
        return set()
    written = set(reached([rv, findings.model.rvs_to_values[rv]]))
    arrays = (leaf for leaf in array_leaves(ends, stop, single=True) if isinstance(leaf, Constant))
    return {leaf for leaf in arrays if int(np.prod(shape_of(leaf))) == 1 and leaf not in written}


def _public(findings: Findings, leaf: Variable) -> str:
    """Return what to write if an array is public."""
    name = leaf.name or "x"
    if findings.domain.neighbours == "add_remove":
        return "If public: write it as pt.stack of numbers, pt.eye, pt.zeros or pt.ones. Else leave it out."
    held = leaf in findings.model.data_vars
    data = "" if held else f"{name} = pm.Data({name!r}, {name}) in the model, "
    return f"If public: {data}dp.Domain(public=[{name!r}]). Else leave it out."


def _known_bounds(findings: Findings, box: Box) -> tuple[Array, Array] | None:
    """Bounds of what a basis is of, that anyone may know, of each of its columns or the same ones of all."""
    found = [_ends_of(findings, column) for column in box.columns]
    known = [ends for ends in found if ends is not None]
    if len(known) < len(found):
        return None
    low, high = (np.concatenate(ends) for ends in zip(*known, strict=True))
    return low, high


def _ends_of(findings: Findings, column: Variable) -> tuple[Array, Array] | None:
    """Bounds that are declared, or the range of a public array."""
    name = column.name or ""
    if name in findings.domain.public and column in findings.model.data_vars:
        values = public_values(column, findings.private_variables)
        return np.atleast_1d(values.min(axis=0)), np.atleast_1d(values.max(axis=0))
    ends = findings.domain.bounds.get(name)
    if ends is None:
        return None
    low, high = np.array(pairs_of(ends) or [hull_of(ends)]).T
    return low, high


__all__ = ["row_level_arrays"]
