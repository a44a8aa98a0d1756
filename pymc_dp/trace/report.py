"""The report of a trace: what is guaranteed, for what price, on which assumptions; for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 100
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
    "What is listed as assumed public was taken as known beforehand; computing any of it from the rows would break the guarantee.",
    "Running times, memory and the process that held the rows are not covered.",
    "Every other release from the same rows adds its ε to this one; a dp.Ledger keeps the sum.",
)


@dataclass(frozen=True)
class Report:
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

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=WIDTH, record=True, file=_Nowhere(), force_terminal=False, legacy_windows=False)
        console.print(self._rich())
        return console.export_text(clear=False).rstrip()

    __repr__ = __str__

    def __rich__(self) -> Any:
        return self._rich()

    def _rich(self) -> Any:
        from rich.console import Group
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        head = Text(self._headline())
        facts = Table.grid(padding=(0, 2))
        for name, value in self._facts():
            facts.add_row(Text(name, style="bold"), Text(value))
        events = Table(*EVENT_COLUMNS, box=None, header_style="bold", pad_edge=False)
        for row in self._events():
            events.add_row(*map(Text, row))
        parts: list[Any] = [head, Text(), facts, Text(), Text("Released", style="bold"), events]
        for title, lines in self._lists():
            parts += [Text(), Text(title, style="bold"), *[Text(f"  · {line}") for line in lines]]
        return Panel(Group(*parts), title="Privacy report", width=WIDTH)

    def _repr_html_(self) -> str:
        def cell(text: str, tag: str = "td") -> str:
            return f"<{tag} style='text-align:left;vertical-align:top;padding:2px 10px 2px 0'>{html.escape(text)}</{tag}>"

        colour = "#1a7f37" if self.publishable else "#b3261e"
        facts = "".join(f"<tr>{cell(name, 'th')}{cell(value)}</tr>" for name, value in self._facts())
        header = "".join(cell(name, "th") for name in EVENT_COLUMNS)
        events = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in self._events())
        lists = "".join(
            f"<p style='margin:8px 0 2px'><b>{html.escape(title)}</b></p><ul style='margin:0'>"
            + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"
            for title, lines in self._lists()
        )  # fmt: skip
        return (
            f"<div style='border-left:4px solid {colour};padding:4px 12px;max-width:900px;line-height:1.4'>"
            f"<p style='font-size:115%;margin:2px 0'><b>Privacy report.</b> {html.escape(self._headline())}</p>"
            f"<table style='border-collapse:collapse'>{facts}</table>"
            f"<p style='margin:8px 0 2px'><b>Released</b></p><table style='border-collapse:collapse'><tr>{header}</tr>{events}</table>"
            f"{lists}</div>"
        )

    # --- content ------------------------------------------------------------------------------------------------------

    def _headline(self) -> str:
        loss = f"ε = {self.record['epsilon']:g}" + (f", δ = {self.record['delta']:g}" if self.record["delta"] else "")
        if self.record["guarantee"] == "none":
            return "Not private: the noise was seeded or left out. Never publish this trace."
        if self.additions:
            return f"The release cost {loss}, but this trace holds more than was paid for. Do not publish it as it is."
        return f"Everything in this trace is covered by {loss} for one row of the table."

    def _facts(self) -> list[tuple[str, str]]:
        record = self.record
        posterior = "accounts for the noise" if record["noise_aware"] else "plug-in: takes the noised statistics for exact, and is overconfident"
        return [
            ("ε, δ", f"{record['epsilon']:g}, {record['delta']:g}"),
            ("guarantee", f"{record['guarantee']}: {MEANING[record['guarantee']]}"),
            ("arithmetic", f"{record['arithmetic']}: {ARITHMETIC[record['arithmetic']]}"),
            ("neighbours", f"{record['neighbours']}: {NEIGHBOURS[record['neighbours']]}"),
            ("noise", record["noise"]),
            ("posterior", posterior),
        ]

    def _events(self) -> list[tuple[str, ...]]:
        return [
            (table["name"], table["likelihood"], f"{len(table['cells'])} x {', '.join(_short(table['columns']))}",
             ", ".join(_short([f"{scale:.4g}" for scale in dict.fromkeys(table["scales"])])), "; ".join(table["sensitivities"]), f"{table['epsilon']:.6g}")
            for table in self.record["tables"]
        ]  # fmt: skip

    def _lists(self) -> list[tuple[str, Sequence[str]]]:
        lists: list[tuple[str, Sequence[str]]] = []
        if self.additions:
            lists.append(("Not paid for (dp.scrub, or dropping these, makes the trace publishable)", self.additions))
        lists.append(("Assumed public", self.record["assumptions"]))
        if self.record["left_out"]:
            lists.append(("Left out, because computed from rows", self.record["left_out"]))
        lists.append(("Limits", LIMITS))
        return lists


EVENT_COLUMNS = ("variable", "likelihood", "cells x statistics", "noise scale", "sensitivity", "ε")


def _short(items: Sequence[str], most: int = 4) -> list[str]:
    return list(items) if len(items) <= most else [*items[: most - 1], f"... {len(items) - most + 1} more"]


class _Nowhere:
    """A text sink for rich: the report is returned, not printed."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return None
