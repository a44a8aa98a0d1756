"""The privacy statement of a trace: for those who were not there, what was released, how, and what protects whom."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp._display import Page, Part, Prose, Table
from pymc_dp._documents import FORMATS
from pymc_dp._versions import version_of
from pymc_dp.accounting import event_from_dict, total_epsilon
from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.inspection.assumptions import public_number_of_rows
from pymc_dp.release.record import STATED, rows_counted
from pymc_dp.release.several import data_sets
from pymc_dp.trace import registry

if TYPE_CHECKING:
    from pymc_dp.inspection.rows import Array
    from pymc_dp.trace.report import Report

SCHEMA = "pymc_dp privacy statement"
VERSION = 1
"""Of the keys of a statement in JSON: higher where one is gone or means something else."""
ENDINGS = (*FORMATS, ".json")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a report says, as one document with the date and the data set.

    Attributes
    ----------
    report : Report
    dataset : str
        Name of the data set, "" where nobody said.
    date : str
        ISO 8601.
    """

    report: Report
    dataset: str
    date: str

    @classmethod
    def of(cls, report: Report, dataset: str | None) -> Statement:
        """State a report today; without a name the ledger names the data set."""
        named = [head["dataset"] for one in _parts(report.record) if (head := one.get("ledger"))]
        known = ", ".join(dict.fromkeys(named))
        return cls(report=report, dataset=known if dataset is None else dataset, date=f"{datetime.now(UTC):%Y-%m-%d}")

    def write(self, path: Path) -> None:
        """Write it in the format of the ending of a path."""
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        else:
            text = FORMATS[path.suffix](self.page)
        path.write_text(text, encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON types; what is infinite, or not known, is None."""
        record = self.report.record
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "date": self.date,
            "dataset": self.dataset or None,
            "publishable": self.report.publishable,
            "headline": self.report.headline,
            "verdict": {"word": self.report.verdict.word, "reasons": self.report.verdict.to_list()},
            "plain": list(self.plain),
            "made_with": dict(self.report.made_with),
            "written_with": {"pymc_dp": version_of("pymc-dp")},
            "rows": self.rows,
            "unit": self.unit,
            "neighbours": record["neighbours"],
            "epsilon": _finite(record["epsilon"]),
            "delta": record["delta"],
            "metric": record.get("metric"),
            "mechanism": self.mechanism,
            "released": list(map(_table, record["tables"])),
            "sampler": record.get("sampler"),
            "sources": [{"label": one["label"], **_source(one["record"])} for one in record.get("sources", ())],
            "guarantee": record["guarantee"],
            "arithmetic": record["arithmetic"],
            "events": record["event"] or None,
            "accountant": self.accountant or None,
            "ledger": record.get("ledger"),
            "assumptions": list(record["assumptions"]),
            "limits": list(self.report.limits),
            "left_out": list(record["left_out"]),
            "not_paid_for": list(self.report.additions),
            "registry": registry.fields(self),
        }

    @property
    def page(self) -> Page:
        """What is shown: facts, plain words, the report, and the fields of the registry."""
        name = f" of {self.dataset}" if self.dataset else ""
        guarantee, *others = self.report.parts
        parts: list[Part] = [
            Table(title="", rows=self._facts()),
            Prose(title="In plain words", lines=self.plain),
            replace(guarantee, title="Guarantee"),
            *others,
            Prose(title=registry.TITLE, lines=[registry.ABOUT]),
            Table(title="", rows=list(registry.rows(self))),
        ]
        return Page(
            title=f"Privacy statement{name}", headline=self.report.headline, good=self.report.publishable, parts=parts
        )

    def _facts(self) -> list[tuple[str, str]]:
        made = ", ".join(f"{name} {number}".strip() for name, number in self.report.made_with.items())
        return [
            ("data set", self.dataset or "not named"),
            ("date", self.date),
            ("made with", made or "not recorded: an earlier version of pymc_dp made the trace"),
            ("rows", self.rows["text"]),
            ("protected", self.unit["text"]),
            ("mechanism", self.mechanism),
        ]

    @cached_property
    def rows(self) -> dict[str, Any]:
        """How many rows there were: a public number, a released one, or a bound."""
        record = self.report.record
        found: dict[str, Any] = {"public": public_number_of_rows(record["assumptions"])}
        bound = (record.get("domain") or {}).get("n_max")
        found |= {"released": None, "standard_deviation": None, "at_most": bound}
        if sources := record.get("sources"):
            return {**found, "text": "; ".join(f"{one['label']}: {_in_words(one['record'])}" for one in sources)}
        if found["public"] is not None:
            return {**found, "text": _in_words(record)}
        if (counted := _counted(record, self.report.released)) is not None:
            number, deviation = counted
            found |= {"released": number, "standard_deviation": deviation}
            kept = f", at most {self.unit['max_rows']} of a person counted" if self.unit["column"] else ""
            text = f"about {number:.6g}, as released: the noise has a standard deviation of {deviation:.3g}{kept}"
            return {**found, "text": text}
        return {**found, "text": _in_words(record)}

    @cached_property
    def unit(self) -> dict[str, Any]:
        """Whom ε protects."""
        record = self.report.record
        found = (record.get("domain") or {}).get("unit")
        if record["neighbours"] not in ("replace", "add_remove"):
            return {"protects": None, "column": None, "max_rows": None, "text": self.report.neighbours}
        if found is None:
            of = "one row of one data set" if record.get("sources") else "one row of the table"
            return {"protects": "row", "column": None, "max_rows": None, "text": of}
        text = f"one person: all rows with the same {found['column']}{rows_counted(record)}"
        return {"protects": "person", "column": found["column"], "max_rows": found["max_rows"], "text": text}

    @cached_property
    def mechanism(self) -> str:
        """What was random, in a line."""
        record = self.report.record
        if sampler := record.get("sampler"):
            return f"{sampler['name']}, a sampler that is random by design: {record['noise']}"
        scales = sorted({scale for table in record["tables"] for scale in table["scales"]})
        ends = f"{scales[0]:.4g}" + (f" to {scales[-1]:.4g}" if len(scales) > 1 else "") if scales else ""
        return f"{record['noise']} noise" + (f" of scale {ends}" if ends else "")

    @cached_property
    def accountant(self) -> str:
        """Which accountant proves ε; "" where there is no event."""
        record = self.report.record
        return total_epsilon(event_from_dict(record["event"]), record["delta"]).accountant if record["event"] else ""

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """What the guarantee means, for an ethics board."""
        return tuple(_plain(self))


def _plain(statement: Statement) -> Iterator[str]:
    report, record = statement.report, statement.report.record
    if record["guarantee"] == "none":
        yield (
            "This trace is not private. The noise that protects people was switched off or can be repeated, as in "
            "tests of software. It must not be published, and nobody who may not see the data may see it."
        )
        return
    if report.additions:
        what = "was changed since it was paid for" if report.changed else "holds more than was paid for"
        what = f"{what} ({len(report.additions)} such places are listed below), which may show the data themselves"
        if report.rows:
            what = "holds the confidential data themselves, in what is listed below as not paid for"
        yield f"This trace {what}. It must not be published as it is. What follows is said of all the rest."
    of = f"the data set {statement.dataset}" if statement.dataset else "a confidential data set"
    if maker := record.get("maker"):
        yield (
            f"No confidential row was read here. The results were computed from tables that {maker['made_by']} "
            f"published. What protects the people in them is stated by those who made the tables: {maker['guarantee']}."
        )
        return
    if record.get("sampler"):
        how = (
            "The parameters of a statistical model were drawn by a procedure that is random by design, and only these "
            "draws are published."
        )
    else:
        how = (
            "Random noise was added to what was computed from the rows, before anybody saw it; a statistical model was "
            "then fitted to the noised numbers alone."
        )
    sources = record.get("sources") or ()
    several, many = len(list(data_sets(sources))) if sources else 0, ""
    if several > 1:
        many = f"{several} data sets, and what is said here is of one of them. "
    elif several:
        many = f"{len(sources)} releases, which may all be of one data set. "
    yield f"These results come from {many or f'{of}. '}{how} No row is published."
    yield _bound(statement)
    yield (
        "This holds whatever else is known, now or later, and whatever is computed from the published results. It does "
        "not hide what is true of people in general: such conclusions may apply to somebody whether or not their row "
        "was used. Every other release from the same rows weakens the protection, and the losses add up."
    )
    conditions = [f"that what is listed as assumed public was not computed from the rows ({_many(record)} below)"]
    if record["guarantee"] == "asymptotic":
        conditions.insert(0, "that the chain of the sampler has converged, which nothing can prove")
    if record["arithmetic"] == "float64":
        conditions.append("that numbers on a computer behave as real numbers do")
    yield f"It rests on these conditions: {'; '.join(conditions)}."


def _many(record: Mapping[str, Any]) -> str:
    count = len(record["assumptions"])
    return f"{count} item{'s' * (count != 1)}"


def _bound(statement: Statement) -> str:
    """Say what ε and δ allow: how often the better of two guesses is right."""
    record, unit = statement.report.record, statement.unit
    metric, delta = record.get("metric"), record["delta"]
    epsilon = metric["epsilon_per_unit"] if metric else record["epsilon"]
    if not math.isfinite(epsilon):
        return "How much the results may tell about one row is not stated as a number by all who released something."
    percent = right_at_most(epsilon, delta)
    loss = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    stated = "As far as others state it, the" if record["guarantee"] == STATED else "The"
    values = "the private values of one row, and holds two possible ones"
    if metric:
        known = f"{values}, one unit of distance apart ({metric['metric']}),"
    elif unit["protects"] is None:  # ε of another relation would be too small for two values of a row
        known = f"which of two data sets it is, that are neighbours ({statement.report.neighbours}), and holds both"
    elif unit["protects"] == "person" or record["neighbours"] == "add_remove":
        known = f"whether one {unit['protects']} is in them, and holds both"
    else:
        known = values
    return (
        f"{stated} privacy loss is {loss}. Suppose that somebody knows everything about the data except {known} for "
        "equally likely. Without the results, a guess is right in 50% of cases. With the results, no guess is right "
        f"in more than {percent:g}% of cases."
    )


def right_at_most(epsilon: float, delta: float) -> float:
    """Return the largest percentage of right guesses between two neighbours that are equally likely, rounded up.

    For the rejection region S of a test of P against Q, P(S) >= e^-ε (Q(S) - δ), and the same of its complement with P
    and Q exchanged (Kairouz, Oh, Viswanath 2017). Adding the two: both errors of a test are at least
    2 (1 - δ) / (1 + e^ε) together, and a guess is right with a probability of at most (e^ε + δ) / (1 + e^ε).

    Examples
    --------
    >>> right_at_most(1.0, 0.0), right_at_most(1.0, 0.01), right_at_most(1000.0, 0.0)
    (73.2, 73.4, 100.0)
    """
    most = (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    return min(math.ceil(1000 * most) / 10, 100.0)


def _counted(record: Mapping[str, Any], released: Mapping[str, Array]) -> tuple[float, float] | None:
    """Return a released number of rows and the standard deviation of its noise: the one with the least noise."""
    found = []
    for table in record["tables"]:
        plan, values = table["plan"], released.get(table["name"])
        if values is None or "blocks" not in plan or plan["noise"] not in NOISE_KINDS:
            continue
        counts = plan["statistic"].get("kind") == "counts"
        places = [place for place, label in enumerate(table["columns"]) if counts or label == "rows"]
        if not places or plan["sizes"] is not None:
            continue
        noise, each = NOISE_KINDS[plan["noise"]], plan["statistic"].get("trials") or 1
        variance = len(values) * sum(noise.deviation(table["scales"][place]) ** 2 for place in places)
        found.append((float(np.sum(values[:, places])) / each, math.sqrt(variance) / each))
    return min(found, key=lambda pair: pair[1]) if found else None


def _in_words(record: Mapping[str, Any]) -> str:
    """Say what is public of the number of rows."""
    domain = record.get("domain") or {}
    if (number := public_number_of_rows(record["assumptions"])) is not None:
        return f"{number}, which is public"
    of = "rows" if domain.get("unit") is None else "persons"
    return f"private; the number of {of} is at most {domain['n_max']}" if domain.get("n_max") else "not known here"


def _parts(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the records of several releases, or that of the one."""
    return [source["record"] for source in record.get("sources", ())] or [record]


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: table[name] for name in ("likelihood", "scales", "sensitivities")}
    sizes = {"cells": len(table["cells"]), "statistics": list(table["columns"])}
    return {"variable": table["name"], **said, **sizes, "epsilon": _finite(table["epsilon"])}


def _source(record: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: record.get(name) for name in ("delta", "guarantee", "neighbours", "noise", "ledger", "maker")}
    return {"epsilon": _finite(record["epsilon"]), **said}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


__all__ = ["ENDINGS", "SCHEMA", "VERSION", "Statement"]
