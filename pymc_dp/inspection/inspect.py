"""Inspection of a PyMC model: every private input, where it flows, and what each likelihood is.

The log-likelihood as a sum of terms, one per row: for samplers that clip what a row adds, whatever it holds.

Statistics need discrete columns and known families. Here a row may hold any arrays, and its density may be any graph,
as long as the rows are proved to be kept apart.

Whether a metric is about every private column of a table: what it left out, it would say nothing about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.utils import MissingInputError

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.assumptions import kept_data, list_assumptions, may_keep
from pymc_dp.inspection.causes import check_series, refuse_latents
from pymc_dp.inspection.columns import UNDECLARED, row_column, shown_length
from pymc_dp.inspection.findings import (
    Findings,
    Inspected,
    Inspection,
    Observed,
    RowInspection,
    RowTerm,
)
from pymc_dp.inspection.implied_ranges import Implied, implied_by
from pymc_dp.inspection.interpreted import kept_while_shared
from pymc_dp.inspection.likelihoods import (
    COUNTED,
    check_row_counts,
    counts_rows,
    freeze_dims,
    likelihood_alone,
    observe,
    stand_ins_of,
    static_lengths,
)
from pymc_dp.inspection.made_by_pymc import without_arrays
from pymc_dp.inspection.masked import check_masked
from pymc_dp.inspection.owners import OF_PERSONS, OF_ROWS, check_levels_of_persons, check_owner, refuse_persons
from pymc_dp.inspection.row_density import density, kept_apart, per_row, unchecked, unclamped
from pymc_dp.inspection.row_level import check_bases, row_level_arrays
from pymc_dp.inspection.rows import Column, rebuild, unwrap
from pymc_dp.inspection.schema import (
    check_dimensions,
    check_likelihood,
    check_names,
    check_priors,
    check_reserved_names,
    count_rows,
    data_leaf,
    find_row_dims,
    names_of_columns,
)
from pymc_dp.inspection.taint import label, way_out
from pymc_dp.inspection.weights import check_weighed, check_weights, find_weight, refuse_weights, weight_columns

SEPARATE = (
    "Keep rows apart: combine row-level arrays elementwise, by X @ b, by sums along other axes, or as an index into a "
    "parameter."
)


def follow_rows(
    findings: Findings, frozen: Mapping[Variable, Variable]
) -> tuple[tuple[Variable, ...], list[RowTerm], list[Column]]:
    """Follow every density; return what stands for the free variables, the terms, and the columns of the table.

    Private data must reach nothing but the likelihoods, as for sums; unlike there, columns may be continuous, of
    several dimensions and without bounds. Public columns are read, for the range of their values.
    """
    stand_ins = stand_ins_of(findings, frozen)
    leaves: dict[Variable, list[Implied]] = {}
    followed = [_term(findings, rv, frozen, stand_ins, leaves) for rv in findings.model.observed_RVs]
    terms = [term for term in followed if term is not None]
    flows = [term.flow for term in terms]
    columns = [row_column(findings, leaf, place, flows, found) for place, (leaf, found) in enumerate(leaves.items())]
    return stand_ins, terms, columns


def _term(
    findings: Findings,
    rv: Variable,
    frozen: Mapping[Variable, Variable],
    stand_ins: Sequence[Variable],
    leaves: dict[Variable, list[Implied]],
) -> RowTerm | None:
    findings.private[rv.name] = None
    if findings.data_of[rv] is None:
        return None
    lengths = static_lengths(findings.model, frozen)
    values, value = findings.model.rvs_to_values, findings.model.rvs_to_values[rv]
    others = {other: values[other] for other in findings.data_of if other is not rv}
    free = dict(zip(findings.model.free_RVs, stand_ins, strict=True))
    axis, hidden = findings.axis, findings.domain.neighbours == "add_remove"
    try:
        (plain,), _ = rebuild(list(without_arrays([rv], [*others, *free])), {**lengths, **others, **free})
        whole = density(plain, value)
        checked = per_row(whole, axis)
        logp = unchecked(checked)
        counted = counts_rows(findings, rv, {**others, **free}, lambda rv: [density(rv, value)], every=hidden)
    except NotImplementedError:
        findings.problem(rv.name, "PyMC has no log-density for it", "Use a distribution with one, or pm.CustomDist.")
        return None
    except (ValueError, TypeError, IndexError, AttributeError):  # of PyTensor and PyMC, about lengths and constants
        findings.problem(
            rv.name,
            "its density cannot be written for one row: lengths do not fit, or a value that is repeated for every row "
            "is joined with a column",
            "Leave shape= out, and add what all rows have in common as a term of its own: intercept + X @ b.",
        )
        return None
    except MissingInputError:
        what = "its density depends on something that is not a variable of the model"
        findings.problem(rv.name, what, "Register it with a name.")
        return None
    if counted:
        findings.problem(rv.name, *COUNTED)
    check_likelihood(findings, rv.name, "density holds", [checked], stand_ins)
    levels = {**dict.fromkeys(stand_ins), **row_level_arrays(findings, rv, [checked], stand_ins, axis, wide=True)}
    flow, problems = kept_apart([logp], [whole], levels, axis)
    for use in flow.index_uses:
        if unwrap(use.index) in levels or use.length is None:
            continue
        length = shown_length(findings, use, ())
        check_levels_of_persons(findings, rv.name, [length])
        if length is None:
            what = f"{label(use.index)} indexes an axis whose length is {UNDECLARED}"
            findings.problem(rv.name, what, "Give the axis dims with coords.")
    stands = dict(zip(stand_ins, findings.model.free_RVs, strict=True))
    if refuse_latents(findings, rv, [logp], levels, stands, problems):
        return None
    for text in problems:
        findings.problem(rv.name, text, way_out(text, SEPARATE))
    if not flow.problems and logp.type.ndim == 0:
        findings.problem(rv.name, "it is one term for all rows together, so it does not factorise over rows", SEPARATE)
    elif not flow.problems and flow.axes[logp] not in (None, 0):
        findings.problem(rv.name, "its terms vary over rows along an axis other than the first", "Let rows be axis 0.")
    for leaf in (leaf for leaf, axis in levels.items() if axis is not None):
        implied = implied_by(unclamped(plain), findings.domain.bounds) if leaf is findings.data_of[rv] else []
        leaves.setdefault(leaf, []).extend(implied)
    return RowTerm(name=rv.name, logp=logp, checked=checked, flow=flow)


Named = tuple[tuple[str, ...], bool]
"""Names of a column, and whether it is public."""


def check_known(findings: Findings, *, per_unit: bool, per_person: bool, weighted: bool) -> None:
    """Refuse a metric, persons and weights, unless the caller accounts for them: nobody may take their ε for rows'."""
    if findings.domain.metric is not None and not per_unit:
        findings.problem("Domain(metric=...)", UNKNOWN, REMEDY)
    if findings.domain.unit is not None and not per_person:
        findings.problem("Domain(unit=...)", OF_ROWS, OF_PERSONS)
    check_weighed(findings, weighted)


def refuse_metric(domain: Domain) -> None:
    """Raise for a domain with a metric or persons: whoever accounts ε per row would say something else than it means.

    Raises
    ------
    UnsupportedModelError
    """
    if domain.metric is not None:
        raise UnsupportedModelError([Problem(where="Domain(metric=...)", what=UNKNOWN, remedy=REMEDY)])
    refuse_persons(domain)
    refuse_weights(domain)


def check_metric(findings: Findings, columns: Iterable[Named]) -> None:
    """Refuse a metric that leaves out a private column, or names a public one."""
    metric = findings.domain.metric
    if metric is None or not metric.columns:
        return
    meant = set(metric.columns)
    for names, public in columns:
        shown, found = names[0], meant & set(names)
        if public and found:
            findings.problem(shown, "it is public, and in the metric too", "Leave it out of one of them.")
        elif not public and not found:
            findings.problem(
                shown,
                f"it is private, and the metric ({metric}) says nothing about it: rows that differ in it would be at "
                "distance 0",
                f"Add it: metric=... + dp.metrics.Hamming({shown!r}), or name it in Domain(public=...) if anyone may "
                "know it.",
            )
        elif len(found) > 1:
            findings.problem(shown, f"the metric names it twice, as {sorted(found)}", "Name it once.")


UNKNOWN = "this method accounts ε per row, not per unit of a metric"
REMEDY = (
    "Use dp.sample without a step, where sums of single columns are released. For rows of at most three private "
    "columns of numbers under dp.metrics.L1, use dp.OPS() or dp.find_map. Or leave the metric out: ε is then for whole "
    "rows."
)


@kept_while_shared
def inspect(
    model: Model,
    domain: Domain | None = None,
    *,
    per_unit: bool = False,
    per_person: bool = False,
    weighted: bool = False,
) -> Inspected:
    """Read a model and its domain once; never raises for what it finds in them, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.
    per_unit : bool
        Whether the caller accounts ε per unit of ``domain.metric``. If not, a metric is a problem.
    per_person, weighted : bool
        The same of ``domain.unit``, and of ``domain.weights``, where rows are weighed.

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
    findings = Findings(model, (domain or Domain()).of_columns(names_of_columns(model)))
    check_known(findings, per_unit=per_unit, per_person=per_person, weighted=weighted)
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
        found_of = [observe(findings, rv, self.frozen) for rv in findings.model.observed_RVs]
        observed = [found for found in found_of if found is not None]
        scaled = [column.leaf for found in observed for column in found.beside if column.norm]
        why = "no likelihood is released by the norms of its rows"
        way_out = "Leave it out, or use a sampler that sees rows one by one."
        _check_norms(findings, scaled, why, way_out)
        check_metric(findings, _named(findings, observed))
        weights = weight_columns(findings)
        return Inspection(**self._concluded(findings, observed), weights=weights)

    @cached_property
    def rows(self) -> RowInspection:
        """What samplers need that see rows one by one: a term of the log-likelihood per row."""
        findings = self.table.again()
        stand_ins, terms, columns = follow_rows(findings, self.frozen)
        weights = weight_columns(findings)
        weight, why = find_weight(findings, weights, columns), "it is no column that a likelihood reads"
        _check_norms(findings, [column.leaf for column in columns], why, "Leave it out.")
        check_metric(findings, [((column.name, *column.aliases), column.public) for column in columns])
        named = {term.name for term in terms}
        observed = [likelihood_alone(findings, rv) for rv in findings.model.observed_RVs if rv.name in named]
        known = self._concluded(findings, observed)
        known |= {
            "weights": weights,
            "terms": tuple(terms),
            "columns": tuple(columns),
            "stand_ins": stand_ins,
            "weight": weight,
        }
        return RowInspection(**known)

    def _concluded(self, findings: Findings, observed: Sequence[Observed]) -> dict[str, Any]:
        """Check everything beside the likelihoods, once these were followed; return the fields of an `Inspection`."""
        model = findings.model
        alone = [likelihood_alone(findings, rv) for rv in model.observed_RVs if findings.data_of[rv] is not None]
        listed = list(({item.name: item for item in alone} | {item.name: item for item in observed}).values())
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
            "n_rows": findings.n_rows,
            "axis": findings.axis,
            "row_dims": findings.row_dims,
            "private": tuple(findings.private),
            "public": tuple(findings.public),
            "dropped": dropped,
            "kept_data": kept,
            "assumptions": tuple(list_assumptions(findings, listed, kept)),
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
        number = isinstance(domain, Real) and not isinstance(domain, bool)
        meant = f" Did you mean epsilon={domain}?" if number and len(f"{domain}") < 20 else ""
        raise ArgumentError(
            f"domain must be a dp.Domain, got {_validate.shown(domain)}.{meant} Write dp.Domain(bounds=...)."
        )


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
    check_series(findings)
    findings.n_rows = count_rows(findings)
    findings.row_dims = find_row_dims(findings)
    check_owner(findings)
    check_weights(findings)
    check_bases(findings)


__all__ = ["REMEDY", "UNKNOWN", "Named", "check_known", "check_metric", "follow_rows", "refuse_metric"]
