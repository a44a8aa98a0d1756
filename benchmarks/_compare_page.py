"""What `compare.py` found, as a page in Markdown: accuracy, intervals, promises, persons, time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from _compare_lines import LINES, REFERENCE, Found, Line
from _compare_tables import DELTA, MOST, N_AUDIT, N_PERSONS

ACCURACY = {
    "Adult: accuracy": 3, "Adult: log loss": 3, "Abalone: accuracy": 3, "Abalone: log loss": 3,
    "naive Bayes: accuracy": 3, "naive Bayes: log loss": 3, "Tax units: R²": 3,
}  # fmt: skip
SIMULATED = {"Logistic: error": 2, "Logistic: coverage": 2, "Linear: error": 3, "Linear: coverage": 2}
TIMED = {"adult": "Adult", "abalone": "Abalone", "tax": "Tax units"}
GROUPS = {"one row": "One row", "each row": "Each row", "persons": "Persons"}
"""Questions about persons with several rows, and what their measures begin with."""
NOTHING = "—"
Row = list[str]
Everything = dict[str, Found]


def page(found: Everything, missing: Sequence[str], *, epsilon: float, repeats: int, tables: int) -> str:
    """The whole page, but for its title."""
    days = sorted({day for one in found.values() for day in one.days})
    about = (
        f"Measured {' to '.join(dict.fromkeys([days[0], days[-1]])) if days else 'never'}: {repeats} fits behind each "
        f"number, or one of each of {tables} simulated tables ({tables // 3} of linear regressions and of persons); "
        "means ± standard errors. ε audited is a lower bound at 95% confidence, in brackets the runs on each of two "
        f"neighbouring tables of {N_AUDIT} rows. Several rows a person: {N_PERSONS:,} persons with one to {MOST} rows. "
        f"Times are CPU seconds over those that '{REFERENCE}' takes for its second fit: first, from the start of a "
        "process until its first fit, with nothing compiled before; again, for a later fit of that process."
    )
    parts = {
        "Accuracy": _measured(found, ACCURACY),
        "Intervals": _measured(found, SIMULATED),
        "What is promised": _promised(found, epsilon),
        "Several rows a person": _persons(found),
        "Time": _times(found),
    }
    versions = [one.versions for one in found.values() if one.versions]
    versions = [one for place, one in enumerate(versions) if not any(one in other for other in versions[:place])]
    absent = [f"- {name}, {what}: {why}" for name, one in found.items() for what, why in one.why.items()]
    absent += [f"- no copy of {path} in the folder that PYMC_DP_DATA names" for path in missing]
    end = [f"Versions: {'; '.join(versions)}.", *(["Not there:\n\n" + "\n".join(absent)] if absent else [])]
    return "\n\n".join([about, *(f"## {title}\n\n{_table(rows)}" for title, rows in parts.items()), *end])


def _measured(found: Everything, measures: dict[str, int]) -> Iterator[Row]:
    yield ["method", *measures]
    for line in LINES:
        scores = found[line.name].scores
        yield [line.name, *(_shown(scores.get(name), digits) for name, digits in measures.items())]


def _promised(found: Everything, epsilon: float) -> Iterator[Row]:
    yield ["method", "one row is", "ε, δ claimed", "ε audited, at least"]
    for line in LINES:
        if line.audited:
            claim = f"{epsilon:g}, {0 if line.pure else f'{DELTA:g}'}"
            yield [line.name, _changed(line.neighbours), claim, found[line.name].audited or NOTHING]


def _persons(found: Everything) -> Iterator[Row]:
    """All that protect a person with ε, then, for the price of that, what ε for a row would give."""
    yield ["method", "ε is for", "how", "error", "coverage"]
    for asked, begin in reversed(GROUPS.items()):
        for line in LINES:
            scores = found[line.name].scores
            if f"{begin}: error" in scores:
                name = line.name.removesuffix(f", {line.persons.rpartition('`, `')[2].rstrip('`')}")
                cells = [_shown(scores.get(f"{begin}: {what}"), 2) for what in ("error", "coverage")]
                yield [name, *_protected(line, asked), *cells]


def _protected(line: Line, asked: str) -> tuple[str, str]:
    """Who is protected, and how."""
    if line.neighbours == "none":
        return "nobody", NOTHING
    if asked == "one row":
        return f"a row {_changed(line.neighbours)}", NOTHING
    if asked == "each row":
        return f"a person's rows {_changed(line.neighbours)}", f"ε/{MOST} for each row"
    return f"a person {_changed(line.of_persons)}", line.persons


def _times(found: Everything) -> Iterator[Row]:
    yield ["method", *(f"{name}, {when}" for name in TIMED.values() for when in ("first", "again"))]
    for line in LINES:
        one = found[line.name]
        yield [line.name, *(_ratio(of, found, question) for question in TIMED for of in (one.first, one.again))]


def _ratio(seconds: dict[str, float], found: Everything, question: str) -> str:
    mine, theirs = seconds.get(question), found[REFERENCE].again.get(question)
    return f"{mine / theirs:.2g}" if mine and theirs else NOTHING


def _changed(neighbours: str) -> str:
    return {"replace": "replaced", "add or remove": "added or removed"}[neighbours]


def _shown(values: list[float] | None, digits: int) -> str:
    """Mean and standard error over fits."""
    if not values:
        return NOTHING
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{error:.{digits}f}"


def _table(rows: Iterator[Row]) -> str:
    """Its head first; methods of which it would say nothing are left out."""
    head, *others = rows
    kept = [head, ["---"] * len(head), *(row for row in others if set(row[1:]) != {NOTHING})]
    return "\n".join("| " + " | ".join(row) + " |" for row in kept)
