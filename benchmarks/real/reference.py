"""Posteriors of the tables without privacy, kept in `reference.json`: of the same clamped rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.real.posterior import Posterior, by_mode, by_nuts
from benchmarks.real.tables import Table

STORED = Path(__file__).with_name("reference.json")
MOST_SAMPLED = 6000
"""Rows up to which draws of NUTS say what a posterior is; of more, its mode and its curvature do."""


def load() -> dict[str, dict[str, object]]:
    """Return what is stored, by table."""
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


def reference(table: Table) -> Posterior:
    """Return the posterior of a table without privacy; it is computed once."""
    held = load().get(table.name)
    if held is None:
        held = compute(table)
        everything = load() | {table.name: held}
        lines = [f"{json.dumps(name)}: {json.dumps(everything[name])}" for name in sorted(everything)]
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return Posterior(held["names"], np.array(held["mean"]), np.array(held["covariance"]))


def compute(table: Table) -> dict[str, object]:
    """Return a posterior as it is stored."""
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
