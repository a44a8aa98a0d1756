"""Missing values of observed variables, of which PyMC makes parameters."""

from __future__ import annotations

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.taint import depends_on


def check_masked(findings: Findings) -> None:
    """Refuse missing values: the number of parameters PyMC makes of them is itself a private count."""
    names = {var.name for var in findings.model.free_RVs}
    for rv in findings.model.observed_RVs:
        stem = (rv.name or "").removesuffix("_observed")
        if stem != rv.name and f"{stem}_unobserved" in names:
            findings.cause(
                stem,
                "it has masked or NaN values, and PyMC made a parameter of each, which shows how many are missing",
                _instead_of_masked(findings, stem),
            )
            findings.settled = True


def _instead_of_masked(findings: Findings, stem: str) -> str:
    """Say what to write for missing values: of a covariate, where another likelihood reads it, or of an outcome."""
    held = [var for var in findings.model.free_RVs if var.name == f"{stem}_unobserved"]
    others = [rv for rv in findings.model.observed_RVs if not str(rv.name).startswith(stem)]
    if any(depends_on(rv, held) for rv in others):
        return f"A missing covariate is dp.fill(model, {{{stem!r}: 0.0}}), with {stem!r} as pm.Data."
    return (
        f"{stem} is an outcome: leave rows without it out, if it is public which these are; or observe a level of its "
        "own for 'missing'."
    )


__all__ = ["check_masked"]
