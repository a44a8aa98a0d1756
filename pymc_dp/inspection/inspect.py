"""Inspection of a PyMC model: every private input, where it flows, and what each likelihood is."""

from __future__ import annotations

from collections.abc import Sequence

from pymc import Model, modelcontext
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.assumptions import list_assumptions
from pymc_dp.inspection.beside_likelihoods import check_priors
from pymc_dp.inspection.findings import Findings, Inspection, Observed
from pymc_dp.inspection.likelihoods import check_row_counts, freeze_dims, observe
from pymc_dp.inspection.metric_columns import Named, check_known, check_metric
from pymc_dp.inspection.public_parts import kept_data, may_keep
from pymc_dp.inspection.schema import (
    check_masked,
    check_names,
    check_reserved_names,
    count_rows,
    data_leaf,
    find_row_dims,
)
from pymc_dp.inspection.shared import kept_while_shared


def context_model(model: object) -> Model:
    """Return `model`, or the model of the context where it is None."""
    if model is None:
        try:
            return modelcontext(None)
        except TypeError:
            raise ArgumentError("There is no model: pass model=..., or call inside `with model:`.") from None
    if is_bambi(model):
        raise ArgumentError(
            "model must be a pymc.Model here, got a bambi.Model. Write it in PyMC first: "
            "model, domain = dp.models.from_bambi(model, domain)."
        )
    if not isinstance(model, Model):
        raise ArgumentError(
            f"model must be a pymc.Model, got {_validate.shown(model)}. Build it with `with pm.Model():`."
        )
    return model


def is_bambi(model: object) -> bool:
    """Whether a model is bambi's; bambi is not imported to tell."""
    return type(model).__module__.partition(".")[0] == "bambi"


@kept_while_shared
def inspect(model: Model, domain: Domain | None = None, *, per_unit: bool = False) -> Inspection:
    """Inspect a model; never raises for what it finds in it, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.
    per_unit : bool
        Whether the caller accounts ε per unit of ``domain.metric``. If not, a metric is a problem.

    Raises
    ------
    DomainError
        If `domain` names variables that the model does not have.

    Notes
    -----
    Reads shapes and dtypes of private arrays, never a value. Public columns are read.
    """
    findings = begin(model, domain)
    check_known(findings, per_unit=per_unit)
    read_schema(findings)
    frozen = freeze_dims(findings)
    observed = [found for rv in model.observed_RVs if (found := observe(findings, rv, frozen)) is not None]
    _check_norms(findings, observed)
    check_metric(findings, _named(findings, observed))
    return conclude(findings, observed)


def _named(findings: Findings, observed: Sequence[Observed]) -> list[Named]:
    """Names of every column that a likelihood observes or is indexed by."""
    found: dict[Variable, Named] = {}
    for item in observed:
        own = [rv.name for rv, leaf in findings.data_of.items() if leaf is item.leaf]
        found[item.leaf] = (tuple(dict.fromkeys([item.name, *own, *([item.leaf.name] * bool(item.leaf.name))])), False)
        for column in item.columns:
            found.setdefault(column.leaf, ((column.name,), column.public))
        for predictor in item.design.predictors if item.design else ():
            found.setdefault(predictor.leaf, ((predictor.name,), predictor.public))
    return list(found.values())


def _check_norms(findings: Findings, observed: Sequence[Observed]) -> None:
    """Refuse a norm that no likelihood is released by."""
    used = {item.name for found in observed if found.design for item in found.design.predictors if item.norm}
    held = {str(rv.name): leaf.name for rv, leaf in findings.data_of.items() if leaf is not None}
    for name in findings.domain.norms:
        if not {name, held.get(name)} & used:
            findings.problem(
                name,
                "its norm is not used: no likelihood is released by the norms of its rows",
                "Leave it out, or use a sampler that sees rows one by one.",
            )


def begin(model: Model, domain: Domain | None) -> Findings:
    """Return the empty collector of an inspection."""
    check_domain(domain)
    return Findings(model, domain or Domain())


def check_domain(domain: object) -> None:
    """Refuse what is no domain."""
    if domain is not None and not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a dp.Domain, got {_validate.shown(domain)}. Write dp.Domain(bounds=...).")


def conclude(findings: Findings, observed: Sequence[Observed]) -> Inspection:
    """Check everything beside the likelihoods, once these were followed, and return all that was found."""
    model = findings.model
    findings.private_variables += [length for dim, length in model.dim_lengths.items() if dim in findings.row_dims]
    check_row_counts(findings)
    check_priors(findings)
    kept = kept_data(findings)
    dropped = tuple(det.name for det in model.deterministics if not may_keep(findings, det, kept))
    return Inspection(
        model=model,
        domain=findings.domain,
        observed=tuple(observed),
        n_rows=findings.n_rows,
        axis=findings.axis,
        row_dims=findings.row_dims,
        private=tuple(findings.private),
        public=tuple(findings.public),
        dropped=dropped,
        kept_data=kept,
        assumptions=tuple(list_assumptions(findings, observed, kept)),
        problems=tuple(findings.problems),
        hidden=frozenset(findings.private_variables) | frozenset(findings.row_leaves),
    )


def read_schema(findings: Findings, *, wide: bool = False) -> None:
    """Find the table before anything is followed: what its rows are and how many, which every later part asks for.

    With `wide`, observed variables may hold several values per row, and no name is kept free for releases.
    """
    model = findings.model
    check_names(findings)
    if model.parent is not None:
        findings.problem("model", "it is nested in another model", "Inspect the outermost model.")
    if not model.observed_RVs:
        findings.problem("model", "it has no observed variable", "Give a likelihood its data by observed=.")
    findings.data_of = {rv: data_leaf(findings, rv) for rv in model.observed_RVs}
    check_masked(findings)
    findings.n_rows = count_rows(findings, wide=wide)
    findings.row_dims = find_row_dims(findings)
    if not wide:
        check_reserved_names(findings)
