"""``make calibrate``: coverage and width of the intervals of ``dp.Gradients`` in every cell, into `calibration.json`.

Resumable: a cell that has its tables, of this version of the walk, is left out. ``python benchmarks/calibrate.py 50``
takes 50 tables a cell; ``python benchmarks/calibrate.py 50 poisson`` only cells whose names begin so; ``page`` prints
the table of docs/calibration.md.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _gradient_cells import CELLS, LEVEL, Cell, Fit, fit, planned, seed
from _group_cells import GROUPS, Groups, fit_groups, planned_groups
from _slope_cells import SLOPES, Slopes, fit_slopes, planned_slopes
from _weight_cells import WEIGHTS, Weights, fit_weights, planned_weights

from pymc_dp.gradients import bent, clipping, legs, schedule, tails, walk
from pymc_dp.gradients import schedule as limits
from pymc_dp.testing import insecure_randomness

STORED = Path(__file__).resolve().parent / "calibration.json"
TABLES = 400


def version() -> dict[str, Any]:
    """Return the constants that numbers depend on: others need other numbers."""
    return {
        "stages": [list(stage) for stage in schedule.STAGES],
        "end": schedule.END,
        "clip": [limits.CLIP_NORM, limits.CLIP_CURVATURE, clipping.MOST_KEPT],
        "path": [legs.CARRIED, legs.FORGETTING, legs.STRAIGHT, legs.BENDING, legs.CHANGED, legs.APPROACH, walk.LATEST],
        "followed": bent.FOLLOWED,
        "tails": [tails.FEW, tails.MANY, tails.RESOLVED, tails.ALONE, tails.LEAST_FALL, tails.MOST_FALL],
        "last stage": [walk.LAST_CARRIED, walk.FADED, walk.EDGE, schedule.NORMS, schedule.COLUMNS, schedule.FIT],
    }


def fits(cell: Cell, tables: int) -> list[Fit]:
    """Fit a cell's tables, the same ones at every call."""
    others = ((Groups, fit_groups), (Slopes, fit_slopes), (Weights, fit_weights))
    one = next((own for kind, own in others if isinstance(cell, kind)), fit)
    with insecure_randomness(seed(cell, -1)):
        return [one(cell, np.random.default_rng(seed(cell, place))) for place in range(tables)]


def measured(cell: Cell, tables: int) -> dict[str, Any]:
    """Return what a cell's fits say of each kind of parameters: coverage, its error by tables, median widths."""
    found = fits(cell, tables)
    inside = np.abs([one.z for one in found]) < LEVEL
    parts = {name: inside[:, part] for name, part in cell.parts.items()}
    return {
        **asdict(cell),
        "tables": tables,
        "coverage": {name: round(float(one.mean()), 4) for name, one in parts.items()},
        "error": {name: round(float(one.mean(axis=1).std() / np.sqrt(tables)), 4) for name, one in parts.items()},
        "least": {name: round(float(one.mean(axis=0).min()), 3) for name, one in parts.items()},
        "over the limit": {name: _median(one.limit[part] for one in found) for name, part in cell.parts.items()},
        "over not private": {name: _median(one.plain[part] for one in found) for name, part in cell.parts.items()},
        "chi squared": _median(one.chi_squared for one in found),
        "CPU seconds": _median(one.seconds for one in found),
    }


def _median(values: Iterable[Any]) -> float:
    return round(float(np.median(list(values))), 3)


def load() -> dict[str, Any]:
    """Return what is stored."""
    if not STORED.exists():
        return {"version": version(), "cells": {}}
    return dict(json.loads(STORED.read_text(encoding="utf-8")))


def main(tables: int, begins: str) -> None:
    """Measure what is missing."""
    held = load()
    if held["version"] != json.loads(json.dumps(version())):
        held = {"version": version(), "cells": {}}
    for cell in (*GROUPS, *SLOPES, *WEIGHTS, *CELLS):
        if not cell.name.startswith(begins) or held["cells"].get(cell.name, {}).get("tables", 0) >= tables:
            continue
        found = held["cells"][cell.name] = measured(cell, tables)
        STORED.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
        print(cell.name, *(f"{key} {found[key]}" for key in ("coverage", "error", "over not private")), flush=True)
        planned.cache_clear()
        planned_groups.cache_clear()
        planned_slopes.cache_clear()
        planned_weights.cache_clear()


def page() -> Iterable[str]:
    """Yield the lines of the docs' table."""
    yield "| cell | tables | coverage of 90% | width over not private |"
    yield "|---|---|---|---|"
    for name, cell in load()["cells"].items():
        covered = [
            f"{'' if part == 'all' else part + ' '}{share:.3f} ± {cell['error'][part]:.3f}"
            for part, share in cell["coverage"].items()
        ]
        widths = ", ".join(f"{ratio:.2f}" for ratio in cell["over not private"].values())
        title = name.replace(", 60 steps", "").replace("eps", "ε =")
        yield f"| {title} | {cell['tables']} | {', '.join(covered)} | {widths} |"


if __name__ == "__main__" and sys.argv[1:] == ["page"]:
    print("\n".join(page()))
elif __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TABLES, sys.argv[2] if len(sys.argv) > 2 else "")
