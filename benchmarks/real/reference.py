"""Posteriors of the tables without privacy, kept in `reference.json`: of the same clamped rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.real.posterior import Posterior, by_mode, by_nuts
from benchmarks.real.tables import TABLES

STORED = Path(__file__).with_name("reference.json")
MOST_SAMPLED = 6000
"""Rows up to which draws of NUTS say what a posterior is; of more, its mode and its curvature do."""


def load() -> dict[str, dict[str, object]]:
    """Return what is stored, by table."""
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


def reference(name: str) -> Posterior:
    """Return the stored posterior of a table without privacy."""
    held = load()[name]
    return Posterior(held["names"], np.array(held["mean"]), np.array(held["covariance"]))


def add_missing(names: Iterable[str], workers: int) -> Iterator[str]:
    """Compute and store what is not stored yet, and yield the names of tables as they are done."""
    missing = [name for name in names if name not in load()]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        work = {pool.submit(compute, name): name for name in missing}
        for one in as_completed(work):
            everything = load() | {work[one]: one.result()}
            lines = [f"{json.dumps(name)}: {json.dumps(everything[name])}" for name in sorted(everything)]
            STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            yield work[one]


def compute(name: str) -> dict[str, object]:
    """Return a posterior as it is stored."""
    table = TABLES[name]
    rows = table.rows()
    model, n_rows = table.model(rows), len(rows[table.response.name])
    method = "nuts" if n_rows <= MOST_SAMPLED else "mode"
    found = by_nuts(model) if method == "nuts" else by_mode(model)
    return {
        "rows": n_rows,
        "method": method,
        "names": found.names,
        "mean": [_rounded(one) for one in found.mean],
        "covariance": [[_rounded(one) for one in row] for row in found.covariance],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.7g}")
