"""The report of a trace: what is guaranteed, for what price, on which assumptions; for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, override

from pymc_dp import _validate
from pymc_dp._display import Listing, Page, Part, Shown, Table, shorten
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.weights import PSEUDO_POSTERIOR
from pymc_dp.release.record import ALL_OF_IT, STATED, rows_counted
from pymc_dp.release.several import MAY_SHARE, SEVERAL, data_sets
from pymc_dp.release.verdict import Verdict
from pymc_dp.trace.operations import COLUMNS as OPERATIONS
from pymc_dp.trace.operations import operations
from pymc_dp.trace.statement import ENDINGS, Statement
from pymc_dp.unit import Unit

MEANING = {
    "exact": "the release itself is the mechanism; no convergence is needed",
    "stepwise": "every step of the chain is paid for; no convergence is needed",
    "asymptotic": "holds only if the chain has converged, which nothing can prove",
    "none": "NONE: privacy noise was seeded or left out by pymc_dp.testing",
    STATED: "by those who made the tables; nothing here proves it",
}
ARITHMETIC = {
    "hardened": "exact integer sums and exact discrete noise",
    "float64": "idealised real numbers; floating-point attacks are not covered",
    STATED: "that of those who made the tables",
}
NEIGHBOURS = {
    "replace": "data sets differ in the private values of one row; the number of rows is public",
    "add_remove": "one row more or fewer; the number of rows is private",
    STATED: "those of the stated guarantee",
    SEVERAL: "those of each release",
}
OF_ROWS = "One row is protected. A person with m rows is protected with m times the ε."
OF_PERSONS = (
    "A person is protected, with all rows of that person, as far as {column} tells who that is. Someone with two "
    "values of it is protected as two people.",
    "Rows of one person count as independent given the parameters, as the model says: where they are not, intervals "
    "are too narrow. That is a limit of the posterior, not of the privacy.",
)
LIMITS = (
    "What is listed as assumed public was taken as known beforehand; computing any of it from the rows would break "
    "the guarantee.",
    "Running times, memory and the process that held the rows are not covered.",
    "Every other release from the same rows adds its ε to this one; a dp.Ledger keeps the sum.",
)
OF_SEVERAL = (
    "ε and δ are of a row in one data set. Whoever has rows in several loses the sum; which rows these are, nothing "
    "here can tell."
)
OF_ANY = "No ledger is known of release {labels}. It may be of any of the data sets, so its loss is added to each."
OF_OTHERS = "Nothing was charged for tables that others made. What they state was taken from them as it is."
SOURCE_COLUMNS = ("release", "tables", "ε, δ", "guarantee", "noise")
PER_UNIT = (
    "ε is per unit of ρ: a row is hard to tell from one nearby, and easier to tell from one far away. Twice the "
    "distance is twice the ε."
)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What a trace guarantees; prints as text, and as HTML in a notebook.

    Attributes
    ----------
    record : dict
        The record of the release, as written in the trace.
    additions : tuple of str
        Everything in the trace that was not paid for; empty for a trace that may be published.
    changed : tuple of str
        Those of them that are not new, but differ from what was paid for.
    rows, by_row : tuple of str
        Names of groups that were added and hold private rows, or predictive draws for rows.
    made_with : mapping of str to str
        Versions of the packages that made the trace; empty where an earlier version of pymc_dp did.
    released : mapping of str to array
        Released tables by their names; none of a trace with additions, where they may not be what was released.
    draws : int or None
        Number of draws of all chains together.

    Examples
    --------
    >>> import pymc_dp as dp
    >>> counts, by = {"count": [12, -3, 45]}, {"made_by": "a statistics office", "guarantee": "1-zCDP of a person"}
    >>> release = dp.Release.of_counts(counts, 4.0, noise="discrete gaussian", dims="area", **by)
    >>> print(Report(record=release.record.to_dict(), additions=()).headline)
    Verdict on intervals: ok. Computed from tables that a statistics office published. Nothing here is from rows, and
    the guarantee is theirs.
    """

    record: dict[str, Any]
    additions: tuple[str, ...]
    made_with: Mapping[str, str] = field(default_factory=dict)
    released: Mapping[str, Array] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    by_row: tuple[str, ...] = ()
    draws: int | None = None

    @cached_property
    def verdict(self) -> Verdict:
        """Whether intervals can be relied on."""
        return Verdict.of(self.record, self.draws)

    @property
    def publishable(self) -> bool:
        """Whether everything in the trace is covered."""
        return not self.additions and self.record["guarantee"] != "none"

    def save(self, path: str | Path, *, dataset: str | None = None) -> Path:
        """Write the report as a document that stands alone, for an ethics board or beside a publication.

        Parameters
        ----------
        path : str or Path
            Ends in ``.md`` (Markdown), ``.html`` (one page that loads nothing), ``.tex`` (an article) or ``.json``.
        dataset : str, optional
            Name of the data set, public; by default that of the ledger that paid, where it is stored.

        Returns
        -------
        Path

        Raises
        ------
        ArgumentError
            For another ending, a folder that does not exist, or an empty name. Nothing is written then.

        Notes
        -----
        **Guarantee.** That of the trace: what is written is computed from what the trace holds and no rows. A trace
        that must not be published gets a document that says so in its first line.

        The document has the data set, the date, the versions of the packages that made the trace, the number of rows
        (the public one, or the one that was released with noise), whom ε protects, ε, δ, the mechanism, all that was
        assumed public, what this means in plain words, and the fields of the Deployments Registry as far as the trace
        knows them. In ``.json`` it has the keys ``schema`` and ``version``; of one version, keys are only added.

        References
        ----------
        The plain words: Kairouz, Oh, Viswanath (2017), "The composition theorem for differential privacy", doi
        10.1109/TIT.2017.2685505.
        Registry: Dwork, Kohli, Mulligan (2019), "Differential privacy in practice: expose your epsilons!", doi
        10.29012/jpc.689; https://registry.opendp.org.
        """
        target = _validate.path("path", path, ENDINGS)
        name = None if dataset is None else _validate.text("dataset", dataset)
        _validate.folder("path", target)
        Statement.of(self, name).write(target)
        return target

    @property
    @override
    def _page(self) -> Page:
        return Page(title="Privacy report", headline=self.headline, good=self.publishable, parts=self.parts)

    @property
    def parts(self) -> list[Part]:
        """Tables and lists of the report."""
        record = self.record
        parts: list[Part] = [Table(title="", rows=self._facts())]
        if self.verdict.reasons:
            parts.append(Listing(title="Verdict on intervals", lines=self.verdict.labelled))
        if record["tables"]:
            events = [_event_row(table) for table in record["tables"]]
            columns = (*EVENT_COLUMNS[:-1], "ε of a whole row") if record.get("metric") else EVENT_COLUMNS
            parts.append(Table(title="Released", columns=columns, rows=events))
        if made := operations(record):
            parts.append(Table(title="Operations", columns=OPERATIONS, rows=made))
        if sources := record.get("sources"):
            parts.append(Table(title="Releases", columns=SOURCE_COLUMNS, rows=list(map(_source_row, sources))))
            rows = [
                (name, ", ".join(labels), _loss(epsilon, delta)) for name, labels, epsilon, delta in data_sets(sources)
            ]
            parts.append(Table(title="Data sets", columns=("data set", "releases", "ε, δ of a row"), rows=rows))
        approximate = [text for table in record["tables"] for text in table.get("approximations", ())]
        if approximate:
            parts.append(Listing(title="Approximate (in the posterior, not in the privacy)", lines=approximate))
        if sampler := record.get("sampler"):
            parts.append(Table(title="Sampled", rows=_sampler_rows(sampler)))
        if added := [line for line in self.additions if line not in self.changed]:
            makes = "" if self.changed else " (dropping these makes the trace publishable)"
            parts.append(Listing(title=f"Not paid for{makes}", lines=added))
        if self.changed:
            title = "Changed since it was paid for (publish the trace as dp.sample returned it)"
            parts.append(Listing(title=title, lines=self.changed))
        parts.append(Listing(title="Assumed public", lines=record["assumptions"]))
        if record["left_out"]:
            parts.append(
                Listing(title="Left out: an entry per row, or computed from what is private", lines=record["left_out"])
            )
        parts.append(Listing(title="Limits", lines=self.limits))
        return parts

    @property
    def limits(self) -> list[str]:
        """What the guarantee does not cover."""
        return list(_limits(self.record))

    @property
    def neighbours(self) -> str:
        """Which data sets are hard to tell apart, in words."""
        return _neighbours(self.record)

    @property
    def headline(self) -> str:
        """The verdict, and what everything in the trace is covered by; first of all why it may not be published."""
        verdict = f"Verdict on intervals: {self.verdict.word}."
        return f"{verdict} {self.covered}" if self.publishable else f"{self.covered} {verdict}"

    @property
    def covered(self) -> str:
        """One sentence: what everything in the trace is covered by, or why it may not be published."""
        delta = f", δ = {self.record['delta']:g}" if self.record["delta"] else ""
        metric = self.record.get("metric")
        loss = f"ε = {self.record['epsilon']:g}{delta}"
        if metric:
            loss = f"ε = {metric['epsilon_per_unit']:g} per unit of ρ ({metric['metric']})"
        if self.record["guarantee"] == "none":
            return "Not private: the noise was seeded or left out. Never publish this trace."
        maker = self.record.get("maker")
        altered = len(self.changed) == len(self.additions)
        if self.additions and maker:
            what = "was changed since it was" if altered else "holds more than was"
            return f"This trace {what} computed from published tables. Do not publish it as it is."
        if self.additions:
            more = "holds the private rows" if self.rows else "holds more than was paid for"
            what = "was changed since" if altered else more
            return f"The release cost {loss}, but this trace {what}. Do not publish it as it is."
        if maker:
            return (
                f"Computed from tables that {maker['made_by']} published. Nothing here is from rows, and the guarantee "
                "is theirs."
            )
        if math.isinf(self.record["epsilon"]) and self.record.get("sources"):
            return "Everything in this trace is covered by what each release guarantees, or states; not all state ε."
        return f"Everything in this trace is covered by {loss}{self._whose}."

    @property
    def _whose(self) -> str:
        """What ε is of, for the headline."""
        if self.record.get("metric"):
            return ""
        if not self.record.get("sources"):
            return f" for {'one row of the table' if (unit := _unit(self.record)) is None else unit}"
        stated = ", as far as others state it" if self.record["guarantee"] == STATED else ""
        return f" for a row in one data set{stated}"

    def _facts(self) -> list[tuple[str, str]]:
        record = self.record
        metric = record.get("metric")
        losses = [("ε, δ", _loss(record["epsilon"], record["delta"]))] if not metric else _losses(record, metric)
        posterior = "; ".join(_posteriors(record)) if record["tables"] else SAMPLED
        if weights := (record.get("domain") or {}).get("weights"):
            said = ", ".join(f"{response} by {column}" for response, column in weights.items())
            posterior = f"{PSEUDO_POSTERIOR}, of weighted rows ({said}); {posterior}"
        return [
            *losses,
            *_budget(record),
            *(_made(record["maker"]) if record.get("maker") else ()),
            ("guarantee", f"{record['guarantee']}: {MEANING[record['guarantee']]}"),
            ("arithmetic", f"{record['arithmetic']}: {ARITHMETIC[record['arithmetic']]}"),
            ("neighbours", f"{record['neighbours']}: {self.neighbours}"),
            ("noise", record["noise"]),
            *([("released", record["chosen"])] if record.get("chosen") else []),
            *([("label", record["label"])] if record.get("label") else []),
            *([("ledger", _ledger(record["ledger"]))] if record.get("ledger") else []),
            ("posterior", f"{posterior}; verdict: {self.verdict.word}"),
        ]


def _posteriors(record: dict[str, Any]) -> list[str]:
    """Say what the posterior accounts for: once for each kind of release."""
    aware = {name: source["record"]["noise_aware"] for source in record.get("sources", ()) for name in source["names"]}
    found = [
        _accounts(table["plan"]) if aware.get(table["name"], record["noise_aware"]) else PLUG_IN
        for table in record["tables"]
    ]
    return list(dict.fromkeys(found))


def _accounts(plan: dict[str, Any]) -> str:
    if plan.get("momentum_steps"):
        return LOCAL
    if plan.get("trust_model") is None:  # sums, and gradients of an earlier version
        return ACCOUNTS
    return TRUSTED if plan["trust_model"] else CLIPPED


def _loss(epsilon: float, delta: float) -> str:
    return f"{epsilon:g}, {delta:g}" if math.isfinite(epsilon) else "not stated"


def _limits(record: dict[str, Any]) -> Iterator[str]:
    if record.get("metric"):
        yield PER_UNIT
    if record.get("sources"):
        yield OF_SEVERAL
        if labels := [source["label"] for source in record["sources"] if source.get(MAY_SHARE)]:
            yield OF_ANY.format(labels=", ".join(labels))
    if record["guarantee"] == STATED:
        yield OF_OTHERS
    if not record.get("maker"):
        if (unit := _unit(record)) is None:
            yield OF_ROWS
        else:
            yield from (line.format(column=unit.column) for line in OF_PERSONS)
        yield from LIMITS


def _made(maker: dict[str, Any]) -> list[tuple[str, str]]:
    """Quote what those who made the tables state."""
    changed = "changed after the noise was added" if maker["postprocessed"] else "as they were noised"
    return [("made by", maker["made_by"]), ("stated guarantee", maker["guarantee"]), ("values", changed)]


def _source_row(source: dict[str, Any]) -> tuple[str, ...]:
    record = source["record"]
    maker, says = record.get("maker"), record["guarantee"]
    if maker:
        says = f"stated by {maker['made_by']}: {maker['guarantee']}"
    elif record.get("ledger"):
        says = f"{says}; {_ledger(record['ledger'])}"
    loss = _loss(record["epsilon"], record["delta"])
    return source["label"], ", ".join(source["names"]), loss, says, record["noise"]


def _unit(record: dict[str, Any]) -> Unit | None:
    """Return whom ε protects; None where that is a row."""
    found = (record.get("domain") or {}).get("unit")
    return None if found is None else Unit(**found)


def _neighbours(record: dict[str, Any]) -> str:
    if (unit := _unit(record)) is None:
        return NEIGHBOURS[record["neighbours"]]
    return (
        f"one person ({unit.column}) more or fewer, with any number of rows{rows_counted(record)}; the numbers of "
        "persons and of rows are private"
    )


def _ledger(head: dict[str, Any]) -> str:
    return f"{head['dataset']}, line {head['line']}, {head['hash'][:16]}… (ledger {head['ledger'][:8]})"


def _budget(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what was asked for, what the run costs, and what would use the rest."""
    metric, asked = record.get("metric"), record.get("asked")
    if asked is None:  # by an earlier version
        return []
    cost, unit = (metric["epsilon_per_unit"], " per unit of ρ") if metric else (record["epsilon"], "")
    if cost > asked:  # what was paid for before counts too
        return [("budget", f"ε = {asked:g} was asked for, beside what was paid for before")]
    left = f", {asked - cost:.3g} is left" if cost < ALL_OF_IT * asked else ""
    rest = f": {record['rest']}" if record.get("rest") else ""
    return [("budget", f"ε = {asked:g}{unit} was asked for, ε = {cost:g} was spent{left}{rest}")]


def _losses(record: dict[str, Any], metric: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what ε is per unit of a metric, and what that is for whole rows."""
    diameter = metric["diameter"]
    used = "clamped" + (f", and rounded ({', '.join(metric['grids'])})" if metric["grids"] else "")
    whole = (
        (f"{record['epsilon']:g}, because rows are at most {diameter:.6g} apart") if diameter is not None else UNBOUNDED
    )
    return [
        ("ε per unit of ρ", f"{metric['epsilon_per_unit']:g}, δ = 0"),
        ("ρ", f"{metric['metric']}, between rows as they are used: {used}; tables are Σ ρ(x_i, y_i) apart"),
        ("ε for a whole row", whole),
    ]


UNBOUNDED = "none: values have no bounds, so that rows may be at any distance"
ACCOUNTS = "accounts for the noise"
PLUG_IN = "plug-in: treats the noised statistics as exact, and is overconfident"
CLIPPED = f"{ACCOUNTS} and for what is clipped off"
TRUSTED = f"{ACCOUNTS}, if rows are of the model (not checked)"
LOCAL = f"{ACCOUNTS}, around one mode of several"
SAMPLED = "drawn by a private sampler that held the rows; every state of its chains was paid for"
EVENT_COLUMNS = ("variable", "likelihood", "cells x statistics", "noise scale", "sensitivity", "ε")


def _sampler_rows(sampler: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("sampler", sampler["name"]),
        ("variables", ", ".join(sampler["variables"])),
        ("chains x steps", f"{sampler['chains']} x {sampler['steps']}"),
        *[(str(name), str(text)) for name, text in sampler["facts"]],
    ]


def _event_row(table: dict[str, Any]) -> tuple[str, ...]:
    scales = shorten([f"{scale:.4g}" for scale in dict.fromkeys(table["scales"])])
    return (
        table["name"],
        table["likelihood"],
        f"{len(table['cells'])} x {', '.join(shorten(table['columns']))}",
        ", ".join(scales),
        "; ".join(table["sensitivities"]),
        f"{table['epsilon']:.6g}" if "places" not in table["plan"] or math.isfinite(table["epsilon"]) else "not stated",
    )


__all__ = ["Report"]
