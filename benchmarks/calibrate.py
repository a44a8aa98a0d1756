"""``make calibrate``: coverage and width of the intervals of ``dp.Gradients`` in every cell, into `calibration.json`.

Resumable: a cell that has its tables, of this version of the walk, is left out. ``python benchmarks/calibrate.py 50``
takes 50 tables a cell; ``python benchmarks/calibrate.py 50 poisson`` only cells whose names begin so.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from _gradient_cells import CELLS, LEVEL, Cell, fit, planned, seed
from _group_cells import GROUPS, Groups, fit_groups, planned_groups

from pymc_dp.gradients import limits, schedule, walk
from pymc_dp.testing import insecure_randomness

STORED = Path(__file__).resolve().parent / "calibration.json"
TABLES = 400


def version() -> dict[str, Any]:
    """Return the constants that numbers depend on: others need other numbers."""
    return {
        "stages": [list(stage) for stage in schedule.STAGES],
        "end": schedule.END,
        "clip": [limits.CLIP_NORM, limits.CLIP_CURVATURE],
        "path": [walk.CARRIED, walk.FORGETTING, walk.APPROACH],
    }


def measured(cell: Cell, tables: int) -> dict[str, Any]:
    """Fit a cell's tables, the same ones at every call, and count."""
    with insecure_randomness(seed(cell, -1)):
        rngs = (np.random.default_rng(seed(cell, place)) for place in range(tables))
        if isinstance(cell, Groups):
            return _by_part(cell, tables, [fit_groups(cell, rng) for rng in rngs])
        found = [fit(cell, rng) for rng in rngs]
    inside = np.abs([one.z for one in found]) < LEVEL
    return {
        **asdict(cell),
        "tables": tables,
        "coverage": round(float(inside.mean()), 4),
        "error": round(float(inside.mean(axis=1).std() / np.sqrt(tables)), 4),
        "least": round(float(inside.mean(axis=0).min()), 3),
        "over the limit": round(float(np.median([one.limit for one in found])), 3),
        "over not private": round(float(np.median([one.plain for one in found])), 3),
        "chi squared": round(float(np.median([one.chi_squared for one in found])), 3),
    }


def _by_part(cell: Groups, tables: int, found: list[Any]) -> dict[str, Any]:
    """Count what is inside for each kind of parameter: coverage and its error, by tables."""
    inside = np.abs([one.z for one in found]) < LEVEL
    parts = {name: inside[:, part].mean(axis=1) for name, part in cell.parts.items()}
    return {
        **asdict(cell),
        "tables": tables,
        "coverage": {name: round(float(one.mean()), 3) for name, one in parts.items()},
        "error": {name: round(float(one.std() / np.sqrt(tables)), 3) for name, one in parts.items()},
        **{
            label: {
                name: round(float(np.median([getattr(one, key)[part] for one in found])), 3)
                for name, part in cell.parts.items()
            }
            for label, key in (("over the limit", "limit"), ("over not private", "plain"))
        },
        "chi squared": round(float(np.median([one.chi_squared for one in found])), 3),
        "CPU seconds": round(float(np.median([one.seconds for one in found])), 1),
    }


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
    for cell in (*GROUPS, *CELLS):
        if not cell.name.startswith(begins) or held["cells"].get(cell.name, {}).get("tables", 0) >= tables:
            continue
        found = held["cells"][cell.name] = measured(cell, tables)
        STORED.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
        print(cell.name, *(f"{key} {found[key]}" for key in ("coverage", "error", "over not private")), flush=True)
        planned.cache_clear()
        planned_groups.cache_clear()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TABLES, sys.argv[2] if len(sys.argv) > 2 else "")
