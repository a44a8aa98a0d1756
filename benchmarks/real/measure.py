"""Releases of the tables, kept in `results.jsonl` as they are made, beside the posteriors without privacy."""

from __future__ import annotations

import fcntl
import json
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

import pymc_dp as dp
from benchmarks.real.posterior import Posterior, of_private
from benchmarks.real.reference import load as load_references
from benchmarks.real.reference import reference
from benchmarks.real.tables import TABLES, Table

STORED = Path(__file__).with_name("results.jsonl")
EPSILONS = (0.3, 1.0, 3.0)
RELEASES = 5
DELTA = 1e-6
LEAST_NOISE = 0.22
"""Of a private standard deviation: what the noise of a release is taken for at least."""
LEAST_VARIANCE = 0.95
"""Of the variance without privacy: a private variance below it is a failure."""
LEVEL = 1.6448536269514722
"""Standard deviations to each side of a normal's middle that hold 90% of it."""


@dataclass(frozen=True)
class Task:
    """Releases of one table that are still to be made."""

    table: str
    wanted: tuple[tuple[float, int], ...]
    label: str


def load() -> list[dict[str, Any]]:
    """Return all stored releases."""
    if not STORED.exists():
        return []
    return [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]


def tasks(names: Iterable[str], epsilons: Iterable[float], releases: int, label: str) -> list[Task]:
    """Return what is not stored yet, by table; those of few rows first."""
    held = {(one["table"], one["epsilon"], one["release"]) for one in load() if one["label"] == label}
    found = []
    for name in names:
        wanted = [(epsilon, place) for epsilon in epsilons for place in range(releases)]
        missing = tuple(one for one in wanted if (name, *one) not in held)
        if missing:
            found.append(Task(name, missing, label))
    plain = load_references()
    return sorted(found, key=lambda task: plain[task.table]["rows"])


def run(work: list[Task], workers: int) -> Iterator[str]:
    """Make releases, and yield the names of tables as they are done."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for one in as_completed([pool.submit(measure, task) for task in work]):
            yield one.result()


def measure(task: Task) -> str:
    """Make and store the releases of a table."""
    table = TABLES[task.table]
    model = table.model()
    for place, (epsilon, release) in enumerate(task.wanted):
        found = released(table, model, epsilon)
        key = {"table": task.table, "epsilon": epsilon, "release": release, "label": task.label}
        # The first of a process compiles.
        _append(key | found | {"warm": place > 0})
    return task.table


def released(table: Table, model: pm.Model, epsilon: float) -> dict[str, Any]:
    """Release a table once, and return the private posterior, what was warned of, and CPU seconds."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        began = time.process_time()
        private = dp.privatize(
            model,
            epsilon=epsilon,
            delta=DELTA,
            domain=table.domain,
            statistics=dp.Gradients(),
            ledger=dp.Ledger(epsilon, DELTA, unit=table.persons.column if table.persons else None),
            progressbar=False,
        )
        seconds = time.process_time() - began
        try:
            found = of_private(private, model)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}
    own = [f"{one.category.__name__}: {one.message}"[:300] for one in shown if "pymc_dp" in one.category.__module__]
    return {
        "mean": [float(f"{one:.6g}") for one in found.mean],
        "sd": [float(f"{one:.6g}") for one in found.sd],
        "warnings": own,
        "verdict": verdict(private),
        "seconds": round(seconds, 2),
    }


def verdict(private: pm.Model) -> str | None:
    """Return what a release says of itself, where it does."""
    release = dp.Release.of(private)
    found = getattr(release, "verdict", getattr(release.record, "verdict", None))
    return None if found is None else str(found)


def _append(found: dict[str, Any]) -> None:
    with STORED.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(found, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class Score:
    """One release beside the posterior without privacy: by parameter, z and ratios of widths, and who is inside."""

    z: np.ndarray
    width: np.ndarray
    inside: np.ndarray
    narrow: np.ndarray
    warned: bool
    failed: bool
    verdict: str | None
    seconds: float | None


def score(found: dict[str, Any], plain: Posterior) -> Score:
    """Compare a stored release with the posterior without privacy."""
    if "error" in found:
        nothing = np.zeros(0)
        return Score(nothing, nothing, nothing, nothing, True, True, None, None)
    mean, variance = np.array(found["mean"]), np.array(found["sd"]) ** 2
    own = plain.sd**2
    noise = np.sqrt(np.maximum(variance - own, LEAST_NOISE**2 * variance))
    return Score(
        z=(mean - plain.mean) / noise,
        width=np.sqrt(variance / own),
        inside=np.abs(mean - plain.mean) <= LEVEL * np.sqrt(variance),
        narrow=variance < LEAST_VARIANCE * own,
        warned=bool(found["warnings"]),
        failed=False,
        verdict=found["verdict"],
        seconds=found["seconds"] if found["warm"] else None,
    )


HEAD = (
    f"{'table':24}{'ε':>4}{'releases':>9}{'rms z':>8}{'worst':>9} {'of':18}{'width':>7}{'cover':>7}{'>3':>6}{'>4.5':>6}"
    f"{'narrow':>7}{'failed':>7}{'warned':>7}{'silent':>7}{'CPU s':>7}"
)


def summary(label: str) -> Iterator[str]:
    """Yield the lines of a table of all stored releases of a version."""
    held = [one for one in load() if one["label"] == label]
    if not held:
        yield f"No release is stored under {label}."
        return
    yield HEAD
    everything: dict[float, list[Score]] = {}
    widths: dict[float, list[float]] = {}
    for name in [one for one in TABLES if any(found["table"] == one for found in held)]:
        plain = reference(name)
        for epsilon in sorted({found["epsilon"] for found in held if found["table"] == name}):
            here = [score(one, plain) for one in held if (one["table"], one["epsilon"]) == (name, epsilon)]
            yield line(name, f"{epsilon:g}", here, plain.names)
            everything.setdefault(epsilon, []).extend(here)
            made = [one.width for one in here if not one.failed]
            if made:
                widths.setdefault(epsilon, []).append(_geometric(np.concatenate(made)))
    for epsilon, scores in sorted(everything.items()):
        yield line("all", f"{epsilon:g}", scores, None) + f"   median width {np.median(widths[epsilon]):.2f}"
    yield line("all", "all", [one for scores in everything.values() for one in scores], None)


def line(name: str, epsilon: str, scores: list[Score], names: list[str] | None) -> str:
    """Return one line of the summary."""
    made = [one for one in scores if not one.failed]
    failed = len(scores) - len(made)
    if not made:
        return f"{name:24}{epsilon:>4}{len(scores):9d}{'':66}{failed:7d}"
    z = np.concatenate([one.z for one in made])
    worst = int(np.argmax(np.abs(z)))
    of = names[worst % len(names)] if names else ""
    width, inside, narrow = (
        np.concatenate([getattr(one, key) for one in made]) for key in ("width", "inside", "narrow")
    )
    silent = sum(bool((np.abs(one.z) > 3).any()) and not said(one) for one in made)
    seconds = [one.seconds for one in made if one.seconds is not None]
    return (
        f"{name:24}{epsilon:>4}{len(scores):9d}{np.sqrt(np.mean(z**2)):8.2f}{z[worst]:+9.1f} {of[:17]:18}"
        f"{_geometric(width):7.2f}{inside.mean():7.2f}{(np.abs(z) > 3).mean():6.2f}{(np.abs(z) > 4.5).mean():6.2f}"
        f"{int(narrow.sum()):7d}{failed:7d}{sum(one.warned for one in made):7d}{silent:7d}"
        f"{np.median(seconds) if seconds else np.nan:7.1f}"
    )


def page(before: str, after: str) -> Iterator[str]:
    """Yield the lines of the docs' table: an earlier version at ε = 1, and this one at every ε."""
    columns = [("earlier, ε = 1", before, 1.0), *((f"ε = {epsilon:g}", after, epsilon) for epsilon in EPSILONS)]
    yield f"| table | what is hard | {' | '.join(name for name, *_ in columns)} |"
    yield "|---" * (2 + len(columns)) + "|"
    held = load()
    everything: list[list[Score]] = [[] for _ in columns]
    for name, table in TABLES.items():
        scores = [
            [
                score(one, reference(name))
                for one in held
                if (one["table"], one["label"], one["epsilon"]) == (name, label, epsilon)
            ]
            for _, label, epsilon in columns
        ]
        if any(scores[1:]):
            cells = [_cell([one for one in own if not one.failed]) for own in scores]
            yield f"| {name.replace('_', ' ')} | {table.difficulty} | {' | '.join(cells)} |"
            for own, found in zip(everything, scores, strict=True):
                own.extend(one for one in found if not one.failed)
    cells = [_cell(own) + (f"; {_far(own):.1%} above 3" if own else "") for own in everything]
    yield f"| **all** | | {' | '.join(cells)} |"


def _far(scores: list[Score]) -> float:
    return float((np.abs(np.concatenate([one.z for one in scores])) > 3).mean())


def _cell(scores: list[Score]) -> str:
    if not scores:
        return "not run"
    z, width = (np.concatenate([getattr(one, key) for one in scores]) for key in ("z", "width"))
    return f"{np.sqrt(np.mean(z**2)):.2f}, {z[int(np.argmax(np.abs(z)))]:+.1f}, {_geometric(width):.2f}"


def said(one: Score) -> bool:
    """Whether a release says that it is not to be relied on."""
    return one.warned if one.verdict is None else not one.verdict.startswith(("ok", "wide but ok"))


def _geometric(widths: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(widths))))
