"""Inspection of a PyMC model: every private input, where it flows, and what each likelihood is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pymc import Model, modelcontext
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.assumptions import list_assumptions
from pymc_dp.inspection.beside_likelihoods import check_priors
from pymc_dp.inspection.findings import Findings, Inspected, Inspection, Observed, RowInspection
from pymc_dp.inspection.likelihoods import check_row_counts, freeze_dims, observe
from pymc_dp.inspection.metric_columns import Named, check_known, check_metric
from pymc_dp.inspection.public_parts import kept_data, may_keep
from pymc_dp.inspection.row_terms import follow_rows, likelihood_alone
from pymc_dp.inspection.schema import (
    check_dimensions,
    check_masked,
    check_names,
    check_reserved_names,
    count_rows,
    data_leaf,
    find_row_dims,
)


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


def inspect(model: Model, domain: Domain | None = None, *, per_unit: bool = False) -> Inspected:
    """Read a model and its domain once; never raises for what it finds in them, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.
    per_unit : bool
        Whether the caller accounts ε per unit of ``domain.metric``. If not, a metric is a problem.

    Returns
    -------
    Inspected
        What releases of sums need, and what samplers need that see rows one by one. Each is found when it is first
        asked for, and has problems of its own.

    Raises
    ------
    DomainError
        If `domain` names variables that the model does not have.

    Notes
    -----
    Reads shapes and dtypes of private arrays, never a value. Public columns are read.
    """
    check_domain(domain)
    findings = Findings(model, domain or Domain())
    check_known(findings, per_unit=per_unit)
    _read_table(findings)
    return _Inspected(table=findings, frozen=freeze_dims(findings))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Inspected:
    """A model that was read once: its table, as it was found before any likelihood was followed."""

    table: Findings
    frozen: Mapping[Variable, Variable]

    @property
    def model(self) -> Model:
        """The model."""
        return self.table.model

    @property
    def domain(self) -> Domain:
        """What is public about its rows."""
        return self.table.domain

    @cached_property
    def sums(self) -> Inspection:
        """What releases of sums need: likelihoods by their statistics, cells and designs."""
        findings = self.table.again()
        check_dimensions(findings)
        check_reserved_names(findings)
        observed, clean = [], []
        for rv in findings.model.observed_RVs:
            before = len(findings.problems)
            if (found := observe(findings, rv, self.frozen)) is not None:
                observed.append(found)
                clean += [found] * (len(findings.problems) == before)
        scaled = [column.leaf for found in observed for column in found.beside if column.norm]
        why = "no likelihood is released by the norms of its rows"
        way_out = "Leave it out, or use a sampler that sees rows one by one."
        _check_norms(findings, scaled, why, way_out)
        check_metric(findings, _named(findings, observed))
        return Inspection(**self._concluded(findings, observed, clean))

    @cached_property
    def rows(self) -> RowInspection:
        """What samplers need that see rows one by one: a term of the log-likelihood per row."""
        findings = self.table.again()
        stand_ins, terms, columns = follow_rows(findings, self.frozen)
        why = "it is no column that a likelihood reads"
        _check_norms(findings, [column.leaf for column in columns], why, "Leave it out.")
        check_metric(findings, [((column.name, *column.aliases), column.public) for column in columns])
        named = {term.name for term in terms}
        observed = [likelihood_alone(findings, rv) for rv in findings.model.observed_RVs if rv.name in named]
        known = self._concluded(findings, observed, ())
        return RowInspection(**known, terms=tuple(terms), columns=tuple(columns), stand_ins=stand_ins)

    def _concluded(self, findings: Findings, observed: Sequence[Observed], clean: Sequence[Observed]) -> dict[str, Any]:
        """Check everything beside the likelihoods, once these were followed; return the fields of an `Inspection`."""
        model = findings.model
        findings.private_variables += [length for dim, length in model.dim_lengths.items() if dim in findings.row_dims]
        check_row_counts(findings)
        check_priors(findings)
        kept = kept_data(findings)
        dropped = tuple(det.name for det in model.deterministics if not may_keep(findings, det, kept))
        return {
            "inspected": self,
            "model": model,
            "domain": findings.domain,
            "observed": tuple(observed),
            "clean": tuple(clean),
            "n_rows": findings.n_rows,
            "axis": findings.axis,
            "row_dims": findings.row_dims,
            "private": tuple(findings.private),
            "public": tuple(findings.public),
            "dropped": dropped,
            "kept_data": kept,
            "assumptions": tuple(list_assumptions(findings, observed, kept)),
            "problems": tuple(findings.problems),
            "hidden": frozenset(findings.private_variables) | frozenset(findings.row_leaves),
        }


def _named(findings: Findings, observed: Sequence[Observed]) -> list[Named]:
    """Names of every column that a likelihood observes or is indexed by."""
    found: dict[Variable, Named] = {}
    for item in observed:
        own = [rv.name for rv, leaf in findings.data_of.items() if leaf is item.leaf]
        found[item.leaf] = (tuple(dict.fromkeys([item.name, *own, *([item.leaf.name] * bool(item.leaf.name))])), False)
        for column in item.beside:
            found.setdefault(column.leaf, ((column.name,), column.public))
    return list(found.values())


def _check_norms(findings: Findings, used: Collection[Variable], why: str, way_out: str) -> None:
    """Refuse norms of other columns than those that are used by their norms."""
    held = {str(rv.name): leaf for rv, leaf in findings.data_of.items()}
    for name in findings.domain.norms:
        if held.get(name, findings.model[name]) not in used:
            findings.problem(name, f"its norm is not used: {why}", way_out)


def check_domain(domain: object) -> None:
    """Refuse what is no domain."""
    if domain is not None and not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a dp.Domain, got {_validate.shown(domain)}. Write dp.Domain(bounds=...).")


def _read_table(findings: Findings) -> None:
    """Find the table before anything is followed: what its rows are and how many, which every later part asks for."""
    model = findings.model
    check_names(findings)
    if model.parent is not None:
        findings.problem("model", "it is nested in another model", "Inspect the outermost model.")
    if not model.observed_RVs:
        findings.problem("model", "it has no observed variable", "Give a likelihood its data by observed=.")
    findings.data_of = {rv: data_leaf(findings, rv) for rv in model.observed_RVs}
    check_masked(findings)
    findings.n_rows = count_rows(findings)
    findings.row_dims = find_row_dims(findings)
