"""Three tables of pymc_dp and others: accuracy; coverage, and ε claimed beside ε audited; time.

Every peer of `peers/` fits the same tables in an interpreter of its own, one after the other and on one thread. A peer
that cannot be imported is a line that says so. Answers are kept in `outputs/compare`, so that a run that was stopped
goes on where it was. `python benchmarks/compare.py again` forgets them; `only NAME` and `without NAME` ask some peers,
`kept` nobody.

``PYMC_DP_REPEATS`` is the number of fits behind every number (of tables, for coverage), ``PYMC_DP_AUDIT_RUNS`` that of
runs on each of two neighbouring tables (ten times as many where one is quick, a third for OPS), ``PYMC_DP_EPSILON``
the price.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
from _compare_tables import DELTA, N_AUDIT, Question, audited, neighbours, questions
from _peer import answer_of

import pymc_dp as dp

HERE = Path(__file__).resolve().parent
KEPT, TABLE = HERE.parent / "outputs" / "compare", HERE / "compare.md"
REPEATS = int(os.environ.get("PYMC_DP_REPEATS", "3"))
RUNS = int(os.environ.get("PYMC_DP_AUDIT_RUNS", "300"))
EPSILON = float(os.environ.get("PYMC_DP_EPSILON", "1.0"))
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Line:
    """A peer, and what is known of it without importing it; `Peer` in its module says the same to its interpreter."""

    name: str
    module: str
    kinds: tuple[str, ...]
    neighbours: str = "replace"
    pure: bool = False
    audited: bool = True
    interpreter: str = ""
    times: float = 1.0

    @property
    def runs(self) -> int:
        """Runs on each side of the audit: more where one takes milliseconds, fewer where it takes part of a second."""
        return max(100, round(RUNS * self.times))


ALL = ("adult", "synthetic", "bayes", "tax", "abalone")
LOGISTIC = ("adult", "abalone", "synthetic")
REGRESSIONS = (*LOGISTIC, "tax")
LINES = (
    Line("pymc_dp, noised gradients", "of_pymc_dp", REGRESSIONS),
    Line("pymc_dp, released statistics", "of_pymc_dp", ("bayes", "tax"), times=50),
    Line("pymc_dp, OPS, one draw", "of_pymc_dp", LOGISTIC, times=1 / 3),
    Line("pymc_dp, SGNHT from OPS", "of_pymc_dp", REGRESSIONS, times=10),
    Line("objective perturbation, Kifer et al.", "objective", LOGISTIC, times=10),
    Line("diffprivlib", "of_diffprivlib", ALL, pure=True, interpreter="diffprivlib", times=10),
    Line("DP-SGD, Opacus", "of_opacus", REGRESSIONS, neighbours="add or remove", interpreter="opacus"),
    Line("DP-SGD by hand, JAX", "by_hand_jax", REGRESSIONS, neighbours="add or remove", times=10),
    Line("control: a tenth of that noise", "by_hand_jax", (), neighbours="add or remove", times=10),
    Line("DP-SVI, d3p", "of_d3p", REGRESSIONS, interpreter="d3p"),
    Line("not private", "not_private", ALL, neighbours="none", audited=False),
)
REFERENCE = LINES[4].name
"""Times are over its: it needs one minimum of a smooth convex function."""
MEASURES = {
    "Adult: accuracy": 3, "Adult: log loss": 3, "Abalone: accuracy": 3, "Abalone: log loss": 3,
    "naive Bayes: accuracy": 3, "naive Bayes: log loss": 3, "Tax units: R²": 3,
    "Synthetic: error": 2, "Synthetic: coverage": 2,
}  # fmt: skip


@dataclass
class Found:
    """What was found of one peer."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    versions: str = ""
    audited: str = ""
    why: dict[str, str] = field(default_factory=dict)


def ask(line: Line, name: str, question: Question, runs: int) -> dict[str, np.ndarray] | str:
    """The answer of a peer, or the last line of what it says is wrong."""
    KEPT.mkdir(parents=True, exist_ok=True)
    stem = f"{line.name}-{name}-{EPSILON:g}-{runs}".replace(" ", "_").replace(",", "")
    answer = KEPT / f"{stem}.npz"
    if not answer.exists() and sys.argv[1:] == ["kept"]:
        return "not run"
    if not answer.exists():
        wrong = answer_of(line.interpreter, line.module, line.name, question.job(EPSILON, runs), answer)
        if wrong:
            return wrong
    with np.load(answer) as held:
        return dict(held)


def audit(line: Line) -> str:
    """Lower bound of ε, at 95% confidence, from fresh runs on two neighbouring tables of a hundred rows."""
    x, y, other_x, other_y = neighbours(line.neighbours)
    sides = {}
    for side, table in (("a", (x, y)), ("b", (other_x, other_y))):
        found = ask(line, f"audit_{side}", audited(*table), line.runs)
        if isinstance(found, str):
            return found
        sides[side] = list(found["draws"].reshape(line.runs, -1))

    def mechanism(side: str, n: int) -> np.ndarray:
        # The audit asks thrice for fresh runs: every one is handed out once.
        taken, sides[side] = sides[side][:n], sides[side][n:]
        assert len(taken) == n
        return np.array(taken)

    delta = 0.0 if line.pure else DELTA
    settings = {"runs": line.runs, "confidence": CONFIDENCE, "vectorised": True, "progressbar": False}
    result = dp.audit(mechanism, "a", "b", epsilon=EPSILON, delta=delta, **settings)
    return f"{max(result.epsilon_lower, 0):.2f} ({line.runs})" + ("" if result.passed else " **disproved**")


def investigate(line: Line, asked: dict[str, Question]) -> Found:
    found = Found()
    for name in line.kinds:
        if name not in asked:
            continue
        answer = ask(line, name, asked[name], REPEATS)
        if isinstance(answer, str):
            found.why[name] = answer
            continue
        found.scores.update(asked[name].scores(answer["draws"]))
        found.seconds[name] = float(np.median(answer["seconds"]))
        found.versions = ", ".join(answer["versions"].tolist()) or found.versions
    if line.audited:
        found.audited = audit(line)
    return found


def shown(values: list[float] | None, digits: int) -> str:
    """Mean and standard error over fits."""
    if not values:
        return "—"
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.{digits}f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{error:.{digits}f}"


def table(found: dict[str, Found], missing: list[str]) -> str:
    """The whole page, in Markdown."""
    measures = [name for name in MEASURES if any(name in one.scores for one in found.values())]
    head = ["method", "one row is", "ε, δ claimed", "ε audited, at least", *measures, "time, Adult", "time, Abalone"]
    rows = [head]
    for line in LINES:
        one = found[line.name]
        claim = "∞" if line.neighbours == "none" else f"{EPSILON:g}, {0 if line.pure else f'{DELTA:g}'}"
        cells = [line.name, f"{line.neighbours}d" if line.neighbours == "replace" else line.neighbours, claim]
        cells += [one.audited or "—", *(shown(one.scores.get(name), MEASURES[name]) for name in measures)]
        rows.append([*cells, *(_ratio(found, line.name, name) for name in ("adult", "abalone"))])
    about = (
        f"{date.today().isoformat()}: {REPEATS} fits (or tables) behind each number, means ± standard errors over "
        f"the noise. ε audited is a lower bound at {CONFIDENCE:.0%} confidence, in brackets the runs on each of two "
        f"neighbouring tables of {N_AUDIT} rows. Times are of the processor, medians, over those "
        f"of '{REFERENCE}' on the same machine."
    )
    versions = "; ".join(one.versions for one in found.values() if one.versions)
    absent = [f"- {name}, {what}: {why}" for name, one in found.items() for what, why in one.why.items()]
    absent += [f"- no copy of {path} in the folder that PYMC_DP_DATA names" for path in missing]
    return "\n\n".join(
        [about, *three_of(rows), f"Versions: {versions}.", *(["Not there:\n" + "\n".join(absent)] if absent else [])]
    )


TITLES = {
    "Accuracy": ("Adult", "Abalone", "naive Bayes", "Tax units", "Synthetic: error"),
    "Calibration, and what is promised": ("one row is", "ε", "Synthetic: coverage"),
    "Time": ("time",),
}
"""What columns of each table begin with, beside the method."""


def three_of(rows: list[list[str]]) -> Iterator[str]:
    """Part one wide table, its head first; methods of which a table would say nothing are left out of it."""
    for title, begin in TITLES.items():
        places = [place for place, name in enumerate(rows[0]) if name.startswith(begin)]
        kept = [[row[0], *(row[place] for place in places)] for row in rows]
        kept[1:] = [row for row in kept[1:] if set(row[1:]) != {"—"}]
        kept.insert(1, ["---"] * len(kept[0]))
        yield f"## {title}\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in kept)


def _ratio(found: dict[str, Found], name: str, question: str) -> str:
    mine, theirs = (found[one].seconds.get(question) for one in (name, REFERENCE))
    return f"{mine / theirs:.2g}" if mine and theirs else "—"


def main() -> None:
    how, *names = sys.argv[1:] or [""]
    if how == "again":
        shutil.rmtree(KEPT, ignore_errors=True)
    asked, missing = questions(REPEATS)
    found = {line.name: Found() for line in LINES}
    for line in LINES:
        # To spread the work over several processes: a last run without a word finds all answers kept.
        if how in ("only", "without") and (line.name in names) != (how == "only"):
            continue
        found[line.name] = investigate(line, asked)
        one = found[line.name]
        print(f"{line.name}: seconds {one.seconds}, audited {one.audited or '—'}, missing {one.why}", flush=True)
    page = table(found, missing)
    TABLE.write_text(f"# pymc_dp beside others\n\n{page}\n", encoding="utf-8")
    print(page)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    main()
