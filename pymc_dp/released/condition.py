"""A model fitted to what was released of rows that it never sees: by one release, or by several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pymc import Model

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.of_context import context_model
from pymc_dp.release.published_rows import counts_rows, of_rows
from pymc_dp.release.record import TableRecord, described_domain, read_domain
from pymc_dp.release.several import Labelled, renamed, together, warn_of_shared_rows
from pymc_dp.release.tables import TablePlan
from pymc_dp.release.written import read, read_network
from pymc_dp.released.parts import GradientsPart, Part, PublishedPart, SumsPart, joined
from pymc_dp.released.release import Release
from pymc_dp.transforms.prior_model import with_likelihoods
from pymc_dp.transforms.privatize import record_of
from pymc_dp.transforms.published_model import PublishedModel


def condition(
    model: Model | None,
    release: Release | Sequence[Release] | Mapping[str, Release],
    *,
    noise_aware: bool = True,
) -> Model:
    """Fit a model to what was released: its rows are replaced by it, and never read.

    Parameters
    ----------
    model : pymc.Model or None
        Any priors, and likelihoods with the statistics that were released, under the same names and indexed by columns
        of the same names. Its rows are dummies: only their dtypes and the lengths of dims count, and the labels of dims
        that columns index, which must be those of the release. For tables of others the likelihood has the cells as its
        dims. None: the model of the context.
    release : Release, list of Release, or mapping of str to Release
        Released statistics, noised gradients, or tables of others (`Release.of_counts`). Several, of hospitals or years
        that share no rows and have a ledger each, enter one posterior: a likelihood stands for all releases that have
        its name; with labels, ``{"2025": one, "2026": other}``, one called ``y_2025`` stands for the table ``y`` of
        that release alone.
    noise_aware : bool
        As in `Statistics`.

    Returns
    -------
    pymc.Model
        As `privatize` returns it.

    Raises
    ------
    UnsupportedModelError
        Where the model cannot be fitted to these tables, with every problem.
    ArgumentError
        For arguments of another kind, and for a release that is given twice.

    Warns
    -----
    RepeatedReleaseWarning
        Where one ledger paid for several releases, or where no ledger is known of one of several: rows that are in both
        count twice.

    Notes
    -----
    **Guarantee.** That of the release: the model is computed from it alone, so that nothing more is spent. Of several,
    ε and δ are of a row in one data set; the record lists the releases by data set. Releases that one ledger paid for
    are of one data set, and add up; a random identity of the ledger is in their records, so that files keep it. Two
    ledgers are of two data sets. A release of which no ledger is known adds to each: it had none, was made by others,
    or was saved by a version that did not write which one.

    **Several releases.** Given the parameters their rows are independent, so that the densities of what was released
    multiply; this is exact, whatever each of them is. Their tables are called ``y_1``, ``y_2`` and so on, or by their
    labels. Two releases of the *same* rows would count these twice: release once what both models need.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> def build(prior, rows):
    ...     with pm.Model() as model:
    ...         pm.Bernoulli("y", prior("p"), observed=rows)
    ...     return model
    >>> owner = build(lambda name: pm.Beta(name, 1, 1), np.array([0, 1, 1, 0, 1]))
    >>> release = Release.of(dp.privatize(owner, epsilon=1.0, ledger=dp.Ledger(1.0)))
    >>> other = build(lambda name: pm.Uniform(name, 0.2, 0.8), np.zeros(2, dtype=int))
    >>> [var.name for var in condition(other, release).free_RVs]
    ['p']

    Another hospital, the same parameter:

    >>> elsewhere = build(lambda name: pm.Beta(name, 1, 1), np.array([1, 1, 0]))
    >>> second = Release.of(dp.privatize(elsewhere, epsilon=0.5, ledger=dp.Ledger(1.0)))
    >>> [var.name for var in condition(other, [release, second]).observed_RVs]
    ['y_1', 'y_2']
    """
    _validate.flag("noise_aware", noise_aware)
    pairs = _labelled(release)
    source = context_model(model)
    if record_of(source) is not None:
        raise ArgumentError("The model is private already. Give the model with (dummy) rows.")
    matched = [_matched(source, label, one, [two for _, two in pairs]) for label, one in pairs]
    if len(pairs) > 1 or pairs[0][1].of_published:
        _require_all(source, matched)
    parts = [_part(source, one, noise_aware=noise_aware) for one in matched]
    if len(parts) == 1:
        return joined(source, parts, parts[0].record)
    several = [
        Labelled(
            label=one.label,
            record=part.record,
            names={table.name: one.names[table.name] for table in part.record.tables},
        )
        for one, part in zip(matched, parts, strict=True)
    ]
    warn_of_shared_rows(several)
    return joined(source, parts, together(several))


@dataclass(frozen=True, kw_only=True, eq=False)
class Matched:
    """One of the releases that were given, and the likelihoods that it is about.

    Attributes
    ----------
    label : str
        Empty where there is one release alone.
    release : Release
        Its tables have the names that they get in the new model.
    names : mapping of str to str
        From these names to those that the release had.
    likelihoods : mapping of str to str
        From names in the release to those in the model.
    """

    label: str
    release: Release
    names: Mapping[str, str]
    likelihoods: Mapping[str, str]

    @property
    def tables(self) -> dict[str, str]:
        """From the names of likelihoods, or of what has none of its own, to those of tables in the new model."""
        return {self.likelihoods.get(own, own): name for name, own in self.names.items()}

    @property
    def domain(self) -> Domain:
        """What was public about a row, by the names in the model."""
        found = self.release.domain
        return replace(
            found,
            bounds={self.likelihoods.get(name, name): ends for name, ends in found.bounds.items()},
            norms={self.likelihoods.get(name, name): norm for name, norm in found.norms.items()},
        )


def _labelled(given: object) -> list[tuple[str, Release]]:
    """Return each release with its label; what was made of several is taken apart."""
    if isinstance(given, Release):
        return given.apart or [("", given)]
    pairs: list[tuple[str, object]]
    if isinstance(given, Mapping):
        pairs = [(_validate.text("each label of release", label), one) for label, one in given.items()]
    elif isinstance(given, list | tuple):
        pairs = [(str(place), one) for place, one in enumerate(given, start=1)]
    else:
        raise ArgumentError(
            f"release must be a dp.Release or a list of several, got {_validate.shown(given)}. Write "
            "dp.Release.load(path), or dp.Release.of(idata)."
        )
    found: list[tuple[str, Release]] = []
    for label, one in pairs:
        if not isinstance(one, Release):
            raise ArgumentError(
                f"release must hold dp.Release alone, and {label!r} is {_validate.shown(one)}. Write "
                "[dp.Release.load(path), ...]."
            )
        inner = one.apart
        found += [(f"{label}_{name}", part) for name, part in inner] if inner else [(label, one)]
    if not found:
        raise ArgumentError("release must hold at least one dp.Release, and is empty.")
    for place, (label, one) in enumerate(found):
        for other_label, other in found[:place]:
            if one.same_as(other):
                raise ArgumentError(
                    f"release holds the same release twice, as {other_label!r} and {label!r}: its rows would count "
                    "twice. Give each once."
                )
    return [("", found[0][1])] if len(found) == 1 and not isinstance(given, Mapping) else found


def _matched(model: Model, label: str, release: Release, all_of_them: Sequence[Release]) -> Matched:
    """Find the likelihoods that a release is about, and names for its tables."""
    observed = [str(rv.name) for rv in model.observed_RVs]
    about = release.about or tuple(observed)
    likelihoods = {}
    for own in about:
        special = f"{own}_{label}"
        if label and special in observed:
            likelihoods[own] = special
        elif own in observed:
            likelihoods[own] = own
    names = {}
    for table in release.record.tables:
        often = sum(table.name in other.tables for other in all_of_them) > 1
        apart = likelihoods.get(table.name, table.name) != table.name
        names[f"{table.name}_{label}" if often or apart else table.name] = table.name
    tables = tuple(renamed(table, name) for table, name in zip(release.record.tables, names, strict=True))
    used = {*model.named_vars, *model.dim_lengths} - set(observed)
    added = [name for table in tables for name in (table.name, table.cell_dim, table.column_dim)]
    free = {rv.name for rv in model.free_RVs if release.of_published and rv.name == release.about[0]}
    if (label or release.of_published) and (taken := [name for name in added if name in used - free]):
        raise ArgumentError(
            f"release {label or 'given'!r} adds a variable or dim called {taken[0]!r}, which the model uses for "
            "something else. Call that otherwise, or give labels, as in {'2025': one, '2026': other}."
        )
    called = Release(
        record=replace(release.record, tables=tables),
        tables={name: release.tables[own] for name, own in names.items()},
    )
    return Matched(label=label, release=called, names=names, likelihoods=likelihoods)


def _require_all(model: Model, matched: Sequence[Matched]) -> None:
    """Raise unless each likelihood is about a release, and each release about a likelihood."""
    observed = [str(rv.name) for rv in model.observed_RVs]
    about = {name for one in matched for name in one.likelihoods.values()}
    sums = {own for one in matched if one.release.of_published for own in list(one.names.values())[1:]}
    found = [_summed(name) if name in sums else _unreleased(name) for name in observed if name not in about]
    found += [
        Problem(
            where=f"release {one.label}",
            what=f"the model has no likelihood that it is about ({', '.join(one.names.values())})",
            remedy="Name likelihoods as in the releases; one name stands for all releases that have it.",
        )
        for one in matched
        if not one.likelihoods and one.label
    ]
    if found:
        raise UnsupportedModelError(found)


def _summed(name: str) -> Problem:
    return Problem(
        where=name,
        what="it is a likelihood of the model, but was published as sums of cells",
        remedy="If it counts something else, make it a release of its own, by dp.Release.of_counts.",
    )


def _part(model: Model, one: Matched, *, noise_aware: bool) -> Part:
    """Match a release with its likelihoods."""
    release, record = one.release, one.release.record
    view = model if not one.label else with_likelihoods(model, one.likelihoods.values())
    domain = _known(one.domain, view)
    if release.of_published:
        name, table = next(iter(one.tables.items()))
        if not counts_rows(record, name, one.names[table]):
            cells = PublishedModel.of(model, name, record, release.tables, noise_aware=noise_aware)
            return PublishedPart.of(cells)
        release = _by_levels(view, domain, release, name)
    if release.of_gradients:
        from pymc_dp.gradients.refit import refit  # Numba, which most users of releases never need

        (held,) = release.tables.values()
        return GradientsPart.of(refit(view, domain, record, held))
    inspection, tables = _planned(view, domain, release, one.tables)
    return SumsPart.of(inspection, tables, release, one.tables, noise_aware=noise_aware)


def _by_levels(model: Model, domain: Domain, release: Release, name: str) -> Release:
    """Return counts of others by levels as a release of rows, for a likelihood of rows."""
    found = [observed for observed in inspect(model, domain, per_person=True).sums.observed if observed.name == name]
    made = of_rows(release.record, release.tables[release.record.tables[0].name], found[0]) if found else None
    if made is None or isinstance(made, Problem):
        raise UnsupportedModelError([_unreleased(name) if made is None else made])
    record, values = made
    return Release(record=record, tables={record.tables[0].name: values})


def planned(model: Model, release: Release) -> tuple[Inspection, tuple[TablePlan, ...]]:
    """Inspect a model and match its likelihoods with released tables.

    Raises
    ------
    UnsupportedModelError
        Where they do not fit, with every problem.
    """
    names = {table.name: table.name for table in release.record.tables}
    return _planned(model, _known(release.domain, model), release, names)


def _known(domain: Domain, model: Model) -> Domain:
    """Return what a domain says about the variables of a model."""
    return read_domain(described_domain(domain), set(model.named_vars))


def _planned(
    model: Model, domain: Domain, release: Release, names: Mapping[str, str]
) -> tuple[Inspection, tuple[TablePlan, ...]]:
    inspection = inspect(model, domain, per_person=True).sums
    if release.of_network:
        inspection.require()
        network = read_network(release.record.tables[0].plan, inspection)
        if isinstance(network, tuple):
            raise UnsupportedModelError(network)
        return inspection, (network,)
    problems, tables = list(inspection.problems), []
    records = {table.name: table for table in release.record.tables}
    for observed in inspection.observed:
        found = _table(records.get(names.get(observed.name, "")), observed)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            tables.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    return inspection, tuple(tables)


def _table(record: TableRecord | None, observed: Observed) -> TablePlan | Problem:
    if record is None:
        return _unreleased(observed.name)
    return read(record.plan, record.columns, observed)


def _unreleased(name: str) -> Problem:
    return Problem(
        where=name,
        what="no table of this name was released",
        remedy="Name the likelihood as in the release, or leave it out.",
    )


__all__ = ["condition", "planned"]
