"""pymc_dp and others, by one command: accuracy; coverage, and ε claimed beside ε audited; persons; time.

Every peer of `peers/` fits the same tables in an interpreter of its own, one after the other and on one thread. A peer
that cannot be imported is a line that says so. Answers are kept in `outputs/compare`, so that a run that was stopped
goes on where it was. What they are worth is kept in `compare.json`, with its day: a peer that is not asked, or that
cannot be, keeps its numbers. Every run writes the tables into `docs/compared.md`.

- ``python benchmarks/compare.py``: ask what was not answered yet;
- ``again`` forgets all answers first, ``again NAME ...`` those of some peers;
- ``only NAME ...`` and ``without NAME ...`` ask some peers; ``kept`` asks nobody.

``PYMC_DP_REPEATS`` is the number of fits behind every number, ``PYMC_DP_TABLES`` that of simulated tables (a third of
it for linear regressions and persons), ``PYMC_DP_AUDIT_RUNS`` that of runs on each of two neighbouring tables (ten
times as many where one is quick, a third for OPS), ``PYMC_DP_EPSILON`` the price: tables of another than 1 are printed,
and not kept.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from datetime import date
from pathlib import Path

import numpy as np
from _compare_lines import LINES, Line
from _compare_page import page, replaced
from _compare_stored import Found, Score, Time, load, renewed, store
from _compare_tables import DELTA, Question, audited, neighbours, questions
from _peer import answer_of

import pymc_dp as dp

HERE = Path(__file__).resolve().parent
KEPT, PAGE = HERE.parent / "outputs" / "compare", HERE.parent / "docs" / "compared.md"
REPEATS = int(os.environ.get("PYMC_DP_REPEATS", "3"))
TABLES = int(os.environ.get("PYMC_DP_TABLES", "18"))
RUNS = int(os.environ.get("PYMC_DP_AUDIT_RUNS", "300"))
PUBLISHED = 1.0
EPSILON = float(os.environ.get("PYMC_DP_EPSILON", str(PUBLISHED)))
CONFIDENCE = 0.95


def stem(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def ask(line: Line, name: str, question: Question, repeats: int) -> dict[str, np.ndarray] | str:
    """The answer of a peer, or the last line of what it says is wrong."""
    KEPT.mkdir(parents=True, exist_ok=True)
    answer = KEPT / f"{stem(f'{line.name}-{name}-{EPSILON:g}-{question.fits(repeats)}')}.npz"
    if not answer.exists() and sys.argv[1:] == ["kept"]:
        return "not run"
    if not answer.exists():
        job = question.job(EPSILON, repeats)
        wrong = answer_of(line.interpreter, line.module, line.name, job, answer, fresh=question.timed)
        if wrong:
            return wrong
    with np.load(answer) as held:
        return {**held, "day": np.array(date.fromtimestamp(answer.stat().st_mtime).isoformat())}


def audit(line: Line) -> str:
    """Lower bound of ε, at 95% confidence, from fresh runs on two neighbouring tables of a hundred rows; or nothing."""
    x, y, other_x, other_y = neighbours(line.neighbours)
    runs, sides = line.runs(RUNS), {}
    for side, table in (("a", (x, y)), ("b", (other_x, other_y))):
        found = ask(line, f"audit_{side}", audited(*table), runs)
        if isinstance(found, str):
            return ""
        sides[side] = list(found["draws"].reshape(runs, -1))

    def mechanism(side: str, n: int) -> np.ndarray:
        # The audit asks thrice for fresh runs: every one is handed out once.
        taken, sides[side] = sides[side][:n], sides[side][n:]
        assert len(taken) == n
        return np.array(taken)

    delta = 0.0 if line.pure else DELTA
    settings = {"runs": runs, "confidence": CONFIDENCE, "vectorised": True, "progressbar": False}
    result = dp.audit(mechanism, "a", "b", epsilon=EPSILON, delta=delta, **settings)
    return f"{max(result.epsilon_lower, 0):.2f} ({runs})" + ("" if result.passed else " **disproved**")


def investigate(line: Line, asked: dict[str, Question]) -> Found:
    found = Found()
    for name in line.kinds:
        if name not in asked:
            continue
        question = asked[name]
        answer = ask(line, name, question, REPEATS)
        if isinstance(answer, str):
            found.why[name] = answer
            continue
        day = str(answer["day"])
        found.scores.update({key: Score.of(one, day) for key, one in question.scores(answer["draws"]).items()})
        if question.timed:
            found.times[name] = Time(float(answer["first"]), float(np.median(answer["seconds"][1:])), day)
        found.versions = ", ".join(answer["versions"].tolist()) or found.versions
    if line.audited:
        found.audited = audit(line)
    return found


def forget(names: list[str]) -> None:
    """Remove kept answers: of some peers, or all."""
    for line in LINES:
        for answer in KEPT.glob(f"{stem(line.name)}-*.npz"):
            if line.name in names or not names:
                answer.unlink()


def main() -> None:
    how, *names = sys.argv[1:] or [""]
    if unknown := set(names) - {line.name for line in LINES}:
        sys.exit(f"No such peer: {sorted(unknown)}. There are {[line.name for line in LINES]}.")
    if how == "again":
        forget(names)
    asked, missing = questions(TABLES)
    found = {line.name: Found() for line in LINES}
    for line in LINES:
        if how in ("only", "without") and (line.name in names) != (how == "only"):
            continue
        found[line.name] = one = investigate(line, asked)
        print(f"{line.name}: audited {one.audited or '—'}, seconds {one.times}, missing {one.why}", flush=True)
    usual = EPSILON == PUBLISHED
    everything = renewed(load() if usual else {}, found)
    written = page(everything, missing, epsilon=EPSILON)
    if usual:
        store(everything)
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), written), encoding="utf-8")
    print(written)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    main()
