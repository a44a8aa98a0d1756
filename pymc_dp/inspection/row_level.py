"""Which arrays that reach the parameters of a likelihood are columns of the table, and what is wrong with others."""

from __future__ import annotations

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.rows import array_leaves, plainly_made, shape_of


def row_level_arrays(
    findings: Findings,
    rv: Variable,
    parameters: Sequence[Variable],
    free: Sequence[Variable],
    others: Sequence[Variable],
    *,
    wide: bool = False,
) -> dict[Variable, int | None]:
    """Classify what reaches the parameters: row-level leaves (axis 0), and everything else free of rows.

    With `wide`, a row of a leaf may be an array itself.
    """
    found: dict[Variable, int | None] = dict.fromkeys(free)
    reached_openly = set(ancestors(list(parameters), blockers=[*free, *others]))
    found.update({other: 0 for other in others if other in reached_openly})
    for leaf in array_leaves(parameters, [*free, *others], single=findings.single_row):
        name, dims = leaf.name, findings.model.named_vars_to_dims.get(leaf.name or "")
        if leaf not in reached_openly:
            findings.private_variables.append(leaf)
            findings.problem(
                rv.name,
                f"an array inside a composite operation ({repr(name) if name else 'unnamed'}) reaches the likelihood",
                "Write the expression with plain PyTensor operations, so that it can be followed.",
            )
            continue
        shape = shape_of(leaf)
        shown = repr(name) if name else f"an unnamed array of dtype {leaf.type.dtype}"
        on_rows = shape[0] == findings.n_rows if not (dims and findings.row_dims) else dims[0] in findings.row_dims
        if on_rows and shape[0] != findings.n_rows:
            findings.problem(
                rv.name,
                f"{shown} and the observed values have different numbers of rows",
                "Give every column of the table the same length, for example by one pm.set_data for all.",
            )
        declared_public = name in findings.domain.public and leaf in findings.model.data_vars
        if declared_public and leaf in findings.data_of.values():
            findings.problem(
                rv.name,
                f"{name!r} is declared public, but it is also what a likelihood observes",
                "Leave it out of Domain(public=...): what is observed is protected.",
            )
        elif declared_public:
            findings.public[str(name)] = None
            if on_rows:
                found[leaf] = 0
                findings.row_leaves.add(leaf)
                if leaf.type.ndim > 1 and not wide:
                    findings.problem(
                        rv.name,
                        f"the public column {shown} has {leaf.type.ndim} dimensions",
                        "Wrap each of its columns in its own pm.Data.",
                    )
            continue
        if not on_rows and plainly_made(leaf):
            continue
        findings.private[name or f"unnamed array in {rv.name}"] = None
        findings.private_variables.append(leaf)
        if on_rows and dims:
            findings.row_dims |= {str(dims[0])}
        if not on_rows:
            findings.problem(
                rv.name,
                f"{shown} reaches the likelihood and does not have the row axis, so the influence of a row on "
                "it is unknown",
                "If it is public, wrap it in pm.Data and name it in Domain(public=...); if it comes from the "
                "rows, take it out.",
            )
        elif leaf.type.ndim > 1 and not wide:
            findings.problem(
                rv.name, f"{shown} has {leaf.type.ndim} dimensions", "Wrap each of its columns in its own pm.Data."
            )
        found[leaf] = 0 if on_rows and (wide or leaf.type.ndim == 1) else None
        findings.row_leaves.add(leaf)
    return found


__all__ = ["row_level_arrays"]
