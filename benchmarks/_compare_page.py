"""What `compare.py` found, as tables in Markdown: accuracy, intervals, promises, persons, time."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from _compare_lines import BEGINNINGS, LINES, REFERENCE, Line
from _compare_stored import Everything, Score, Time
from _compare_tables import DELTA, MOST, N_AUDIT, N_PERSONS

ACCURACY = {
    "Adult: accuracy": 3, "Adult: log loss": 3, "Abalone: accuracy": 3, "Abalone: log loss": 3,
    "naive Bayes: accuracy": 3, "naive Bayes: log loss": 3, "Tax units: R²": 3,
}  # fmt: skip
SIMULATED = {"Logistic: error": 2, "Logistic: coverage": 2, "Linear: error": 3, "Linear: coverage": 2}
TIMED = ("adult", "abalone", "tax")
GROUPS = ("persons", "each row", "one row")
"""Questions about persons with several rows: by ε for a person, then, at the price of that, by ε for a row."""
WIDTH, BEGIN, END = 140, "\nMeasured ", "\n## How to read it\n"
NOTHING = "—"
Row = list[str]


def page(found: Everything, missing: Sequence[str], *, epsilon: float) -> str:
    """All tables, what is to be known of them, and what is missing."""
    parts = {
        "Accuracy": _scored(found, ACCURACY),
        "Intervals": _scored(found, SIMULATED),
        "What is promised": _promised(found, epsilon),
        "Several rows a person": _persons(found),
        "Time": _times(found),
    }
    versions = [one.versions for one in found.values() if one.versions]
    versions = [one for place, one in enumerate(versions) if not any(one in other for other in versions[:place])]
    absent = [f"- {name}, {what}: {why}" for name, one in found.items() for what, why in one.why.items()]
    absent += [f"- no copy of {path} in the folder that PYMC_DP_DATA names" for path in missing]
    tables = [f"## {title}\n\n{_table(rows)}" for title, rows in parts.items()]
    end = [_wrapped(f"Versions: {'; '.join(versions)}."), *(["Not there:\n\n" + "\n".join(absent)] if absent else [])]
    return "\n\n".join([*map(_wrapped, _about(found)), *tables, *end])


def replaced(whole: str, tables: str) -> str:
    """Return a page of the documentation with these tables in the place of those that it has."""
    before, rest = whole.split(BEGIN, 1)
    return f"{before}\n{tables}\n{END}{rest.split(END, 1)[1]}"


def _about(found: Everything) -> Iterator[str]:
    scores = {(line.name, name): one for line in LINES for name, one in found[line.name].scores.items()}
    real = [one.fits for (_, name), one in scores.items() if name in ACCURACY]
    simulated = {
        begin: _from_to([one.fits for (_, name), one in scores.items() if name.startswith(f"{begin}:")])
        for begin in ("Logistic", "Linear", "Persons")
    }
    days = Counter(one.day for one in scores.values())
    main = max(days, key=lambda day: (days[day], day), default="never")
    except_for = ", but for what is named below" if len(days) > 1 else ""
    yield (
        f"Measured {main}{except_for}: {_from_to(real)} fits behind each number of a real table, else "
        f"one of each of {simulated['Logistic']} simulated tables ({simulated['Linear']} of linear regressions, "
        f"{simulated['Persons']} of persons); means ± standard errors. "
        "ε audited is a lower bound at 95% confidence, in brackets the runs on each of two "
        f"neighbouring tables of {N_AUDIT} rows. Several rows a person: {N_PERSONS:,} persons with one to {MOST} rows. "
        f"Times are CPU seconds over those that '{REFERENCE}' takes for its second fit: first, from the start of a "
        "process until its first fit, with nothing compiled before; again, for a later fit of that process."
    )
    for day in sorted(set(days) - {main}):
        named = [f"{line.name} ({', '.join(_of_day(found[line.name].scores, day))})" for line in LINES]
        again = "; ".join(one for one in named if not one.endswith("()"))
        yield f"Measured {day}: {again}. No other number was measured again."


def _of_day(scores: dict[str, Score], day: str) -> list[str]:
    return list(dict.fromkeys(name.split(":")[0] for name, one in scores.items() if one.day == day))


def _from_to(numbers: Collection[int]) -> str:
    ends = dict.fromkeys((min(numbers, default=0), max(numbers, default=0)))
    return " to ".join(map(str, ends))


def _scored(found: Everything, measures: dict[str, int]) -> Iterator[Row]:
    yield ["method", "one row is", *measures]
    for line in LINES:
        cells = [_shown(found[line.name].scores.get(name), digits) for name, digits in measures.items()]
        if set(cells) != {NOTHING}:
            yield [line.method, _changed(line.neighbours), *cells]


def _promised(found: Everything, epsilon: float) -> Iterator[Row]:
    yield ["method", "one row is", "ε, δ claimed", "ε audited, at least"]
    for line in LINES:
        if line.audited:
            claim = f"{epsilon:g}, {0 if line.pure else f'{DELTA:g}'}"
            yield [line.method, _changed(line.neighbours), claim, found[line.name].audited or NOTHING]


def _persons(found: Everything) -> Iterator[Row]:
    yield ["method", "ε is for", "how", "error", "coverage"]
    for asked, line in itertools.product(GROUPS, LINES):
        scores, begin = found[line.name].scores, BEGINNINGS[asked]
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
    yield ["method", *(f"{BEGINNINGS[asked]}, {when}" for asked in TIMED for when in ("first", "again"))]
    for line in LINES:
        times = [found[line.name].times.get(asked) for asked in TIMED]
        if any(times):
            yield [line.name, *itertools.chain.from_iterable(map(_both, times))]


def _both(time: Time | None) -> Row:
    return [NOTHING, NOTHING] if time is None else [f"{time.first:.2g}", f"{time.again:.2g}"]


def _changed(neighbours: str) -> str:
    return {"replace": "replaced", "add or remove": "added or removed"}.get(neighbours, NOTHING)


def _shown(score: Score | None, digits: int) -> str:
    """Mean and standard error over fits."""
    if score is None:
        return NOTHING
    return f"{score.mean:.{digits}f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{score.error:.{digits}f}"


def _table(rows: Iterator[Row]) -> str:
    """Its head first."""
    head, *others = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *others])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
