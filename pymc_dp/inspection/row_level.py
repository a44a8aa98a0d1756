"""Which arrays that reach a likelihood are columns of the table, and what is wrong with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp._column_bounds import pairs_of, written
from pymc_dp.inspection.findings import Findings, by_hand
from pymc_dp.inspection.made_by_pymc import placed_by_data
from pymc_dp.inspection.privacy_rule import arrays_of, in_likelihood, is_data, way_to_name
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import array_leaves, reached, shape_of


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
    plain = _numbers_of_a_density(findings, rv, ends, stop) if findings.single_row else set[Variable]()
    for leaf in arrays_of(findings, ends, stop, single=findings.single_row):
        if leaf in plain:
            continue
        name = leaf.name
        shown = repr(name) if name else f"an unnamed array of {leaf.type.dtype}"
        alone = leaf.type.shape[:1] == (1,)  # a column of a table of one row, or what broadcasts against any
        on_rows = leaf in rows or (alone and findings.single_row and axis.known.get(leaf, True))
        standing = in_likelihood(findings, leaf, on_rows=on_rows)
        if standing == "named":
            _check_named(findings, rv, leaf, on_rows=on_rows, observed=leaf in observed)
        elif standing != "assumed":
            findings.private[name or f"unnamed array in {rv.name}"] = None
            findings.private_variables.append(leaf)
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
        elif not on_rows and standing in ("private", "refused"):
            what = "is not named in Domain(public=)" if is_data(findings, leaf) else "may be made of rows"
            findings.problem(rv.name, f"{shown} does not have the row axis, and {what}", way_to_name(findings, leaf))
        elif on_rows and leaf.type.ndim > 1 and not wide:
            findings.problem(
                rv.name,
                f"{'the public column ' if standing == 'named' else ''}{shown} has {leaf.type.ndim} dimensions",
                "Wrap each of its columns in its own pm.Data.",
            )
        found[leaf] = 0 if on_rows else None
        if on_rows:
            findings.row_leaves.add(leaf)
    return found


def _check_named(findings: Findings, rv: Variable, leaf: Variable, *, on_rows: bool, observed: bool) -> None:
    """Refuse a name in ``Domain(public=)`` that protects too little; else note that the array is public."""
    if observed:
        findings.problem(
            rv.name,
            f"{leaf.name!r} is declared public, but it is also what a likelihood observes",
            "Leave it out of Domain(public=...): what is observed is protected.",
        )
    elif on_rows and findings.domain.neighbours == "add_remove":
        findings.private_variables.append(leaf)
        findings.problem(
            rv.name,
            f"{leaf.name!r} is declared public, but it is a column, and under neighbours='add_remove' the row that is "
            "added brings its own values",
            f"Leave {leaf.name!r} out of Domain(public=...), or use neighbours='replace'.",
        )
    else:
        findings.public[str(leaf.name)] = None


def check_bases(findings: Findings) -> None:
    """Refuse a basis that PyMC placed by an X: its numbers are as private as that, and nothing of them is read."""
    model = findings.model
    for x, numbers, periodic in placed_by_data([*model.basic_RVs, *model.deterministics, *model.potentials]):
        findings.private_variables += numbers
        shown = repr(x.name) if x.name else "a column"
        pairs = findings.domain.bounds.get(x.name or "")
        bounds = "(low, high)" if pairs is None else written(pairs)
        bounds = bounds if periodic or (pairs and pairs_of(pairs)) else f"[{bounds}]"
        kind, others = ("HSGPPeriodic", "m=...") if periodic else ("HSGP", "m=..., c=...")
        findings.cause(
            x.name or "model",
            f"pm.gp.{kind} places the basis of {shown} by the X that it sees first, which may be rows",
            f"Place it by public bounds: gp = dp.models.{kind}({others}, bounds={bounds}, cov_func=...).",
        )


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


__all__ = ["check_bases", "row_level_arrays"]
