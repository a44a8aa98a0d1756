"""The report of a trace: what is guaranteed, for what price, on which assumptions; for terminals and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, override

from pymc_dp._display import Listing, Page, Shown, Table, shorten
from pymc_dp.release.record import ALL_OF_IT

MEANING = {
    "exact": "the release itself is the mechanism; no convergence is needed",
    "stepwise": "every step of the chain is paid for; no convergence is needed",
    "asymptotic": "holds only if the chain has converged, which nothing can prove",
    "none": "NONE: privacy noise was seeded or left out by pymc_dp.testing",
}
ARITHMETIC = {
    "hardened": "exact integer sums and exact discrete noise",
    "float64": "idealised real numbers; floating-point attacks are not covered",
}
NEIGHBOURS = {
    "replace": "data sets differ in the private values of one row; the number of rows is public",
    "add_remove": "one row more or fewer; the number of rows is private",
}
LIMITS = (
    "One row is protected. A person with m rows is protected with m times the ε.",
    "What is listed as assumed public was taken as known beforehand; computing any of it from the rows would break "
    "the guarantee.",
    "Running times, memory and the process that held the rows are not covered.",
    "Every other release from the same rows adds its ε to this one; a dp.Ledger keeps the sum.",
)
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
    """

    record: dict[str, Any]
    additions: tuple[str, ...]

    @property
    def publishable(self) -> bool:
        """Whether everything in the trace is covered."""
        return not self.additions and self.record["guarantee"] != "none"

    @property
    @override
    def _page(self) -> Page:
        record = self.record
        parts: list[Table | Listing] = [Table(title="", rows=self._facts())]
        if record["tables"]:
            events = [_event_row(table) for table in record["tables"]]
            columns = (*EVENT_COLUMNS[:-1], "ε of a whole row") if record.get("metric") else EVENT_COLUMNS
            parts.append(Table(title="Released", columns=columns, rows=events))
        approximate = [text for table in record["tables"] for text in table.get("approximations", ())]
        if approximate:
            parts.append(Listing(title="Approximate (in the posterior, not in the privacy)", lines=approximate))
        if sampler := record.get("sampler"):
            parts.append(Table(title="Sampled", rows=_sampler_rows(sampler)))
        if self.additions:
            title = "Not paid for (dropping these makes the trace publishable)"
            parts.append(Listing(title=title, lines=self.additions))
        parts.append(Listing(title="Assumed public", lines=record["assumptions"]))
        if record["left_out"]:
            parts.append(Listing(title="Left out, because computed from rows", lines=record["left_out"]))
        parts.append(Listing(title="Limits", lines=[*([PER_UNIT] * bool(record.get("metric"))), *LIMITS]))
        return Page(title="Privacy report", headline=self._headline(), good=self.publishable, parts=parts)

    def _headline(self) -> str:
        delta = f", δ = {self.record['delta']:g}" if self.record["delta"] else ""
        metric = self.record.get("metric")
        loss = f"ε = {self.record['epsilon']:g}{delta}"
        if metric:
            loss = f"ε = {metric['epsilon_per_unit']:g} per unit of ρ ({metric['metric']})"
        if self.record["guarantee"] == "none":
            return "Not private: the noise was seeded or left out. Never publish this trace."
        if self.additions:
            return f"The release cost {loss}, but this trace holds more than was paid for. Do not publish it as it is."
        return f"Everything in this trace is covered by {loss}{'' if metric else ' for one row of the table'}."

    def _facts(self) -> list[tuple[str, str]]:
        record = self.record
        metric = record.get("metric")
        losses = [("ε, δ", f"{record['epsilon']:g}, {record['delta']:g}")] if not metric else _losses(record, metric)
        posterior = POSTERIOR[bool(record["noise_aware"])] if record["tables"] else SAMPLED
        return [
            *losses,
            *_budget(record),
            ("guarantee", f"{record['guarantee']}: {MEANING[record['guarantee']]}"),
            ("arithmetic", f"{record['arithmetic']}: {ARITHMETIC[record['arithmetic']]}"),
            ("neighbours", f"{record['neighbours']}: {NEIGHBOURS[record['neighbours']]}"),
            ("noise", record["noise"]),
            *([("released", record["chosen"])] if record.get("chosen") else []),
            *([("ledger", _ledger(record["ledger"]))] if record.get("ledger") else []),
            ("posterior", posterior),
        ]


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
    costs = "that" if f"{cost:g}" == f"{asked:g}" else f"{cost:g}"
    left = f", {asked - cost:.3g} is left" if cost < ALL_OF_IT * asked else ""
    rest = f": {record['rest']}" if record.get("rest") else ""
    return [("budget", f"ε = {asked:g}{unit} was asked for, the run costs {costs}{left}{rest}")]


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
POSTERIOR = {
    True: "accounts for the noise",
    False: "plug-in: treats the noised statistics as exact, and is overconfident",
}
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
        f"{table['epsilon']:.6g}",
    )
