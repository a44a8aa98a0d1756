"""What a private model may keep of the original: data and Deterministics that are known to be public."""

from __future__ import annotations

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.rows import array_leaves, opaque
from pymc_dp.inspection.taint import depends_on


def kept_data(findings: Findings) -> tuple[str, ...]:
    """Names of the pm.Data that the private model may keep: not observed, not row-level, not private."""
    out = set(findings.private_variables) | findings.row_leaves
    dims = findings.model.named_vars_to_dims
    return tuple(
        var.name
        for var in findings.model.data_vars
        if var not in out
        and not any(dim in findings.row_dims for dim in dims.get(var.name) or ())
        and _reaches_kept(findings, var)
    )


def may_keep(findings: Findings, deterministic: Variable, kept: Sequence[str]) -> bool:
    """Whether a Deterministic is a function of free variables and known public arrays alone.

    An array that reaches no likelihood and no prior (another version of the covariates, say) is not known to be
    public, so what is computed from it stays behind.
    """
    dims = findings.model.named_vars_to_dims.get(deterministic.name) or ()
    if any(dim in findings.row_dims for dim in dims):
        return False
    if depends_on(deterministic, [*findings.private_variables, *findings.row_leaves]):
        return False
    leaves = array_leaves([deterministic], findings.model.free_RVs, single=findings.single_row)
    known = {findings.model[name] for name in [*kept, *findings.domain.public]}
    return known.issuperset(leaves) and not opaque([deterministic], findings.model.free_RVs)


def _reaches_kept(findings: Findings, var: Variable) -> bool:
    ends: list[Variable] = [*findings.model.free_RVs, *findings.model.potentials]
    for rv in findings.model.observed_RVs:
        _, parameters = likelihood_of(rv)
        ends += list(parameters or ())
        if rv in findings.cumulatives:
            ends.append(findings.cumulatives[rv].below)
    if var.type.ndim == 0:
        ends += findings.model.deterministics
    return _depends_on_any(ends, var)


def _depends_on_any(ends: Sequence[Variable], var: Variable) -> bool:
    """Whether any of `ends` has `var` among its ancestors."""
    return any(item is var for item in ancestors(list(ends)))
