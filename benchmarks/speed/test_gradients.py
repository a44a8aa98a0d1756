"""One noised gradient over 1e6 rows of a logistic regression, and its rows read from files, beside matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.release import NoisedSums
from pymc_dp.gradients.row_parts import RowParts, block_size
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits, Schedule, Units, stages_of
from pymc_dp.gradients.walk_rows import WalkRows
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.walks import Walk
from pymc_dp.rows.stored import Arrays, Passes, with_stored

N_ROWS, SIZE = 1_000_000, 10
AT = np.linspace(-0.5, 0.5, SIZE)
GROUP = "a gradient over 1e6 rows, 10 coefficients"

LIMITS = Limits(scale=np.full(SIZE, 0.02), basis=np.eye(SIZE) + 0.1, clip_norm=0.05, clip_curvature=0.001)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    design = rng.normal(size=(N_ROWS, SIZE)).clip(-3, 3)
    return design, (rng.random(N_ROWS) < 1 / (1 + np.exp(-design @ AT))).astype(np.int8)


@pytest.fixture(scope="module")
def stored(table, tmp_path_factory) -> tuple[Passes, pm.Model]:
    folder: Path = tmp_path_factory.mktemp("rows")
    for name, column in zip("xy", table, strict=True):
        np.save(folder / f"{name}.npy", column)
    with pm.Model() as model:
        slopes = pm.Normal("slopes", shape=SIZE)
        pm.Bernoulli("y", logit_p=pm.Data("x", table[0][:3]) @ slopes, observed=table[1][:3])
    rows = Arrays({name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in "xy"})
    return Passes.of(with_stored(interface_of(model, dp.Domain(bounds={"x": (-3, 3)})).inspection, rows), rows), model


@pytest.fixture(scope="module")
def sums(stored) -> dict[str, Callable[[], NoisedSums]]:
    """Sums over rows in memory, on one thread and on all, and over rows of memory-mapped files."""
    passes, model = stored
    interface = interface_of(model, dp.Domain(bounds={"x": (-3, 3)}))
    rows = RowScores.of(interface)
    size = block_size(rows)
    (held,) = [chunk() for chunk in passes.chunks(N_ROWS)]
    schedule = Schedule(
        stages=stages_of(60), units=Units(dimension=SIZE, neighbours="replace", vectors=rows.count), multiplier=1.0
    )

    @contextmanager
    def opened(threads: int = cpu_count() or 1, **given: Any) -> Iterator[NoisedSums]:
        source = WalkRows(inspection=interface.inspection, size=size, **given)
        walk = Walk(source, Rehearsal("replace"), list(schedule.sums.values()), threads=threads)
        with walk.opened():
            yield NoisedSums(parts=RowParts(rows=rows), walk=walk, schedule=schedule)

    return {
        "in memory, one thread": partial(opened, 1, held=held),
        "in memory": partial(opened, held=held),
        "from files": partial(opened, stored=passes),
    }


@pytest.mark.benchmark(group=GROUP)
@pytest.mark.parametrize("where", ["in memory, one thread", "in memory", "from files"])
def test_gradient(benchmark, sums, where):
    def made() -> np.ndarray:
        with sums[where]() as releases:
            return releases.gradient(0, 0, AT, LIMITS)

    assert np.isfinite(benchmark(made)).all()


@pytest.mark.benchmark(group=GROUP)
def test_curvature(benchmark, sums):
    def made() -> np.ndarray:
        with sums["in memory"]() as releases:
            return releases.curvature(0, AT, LIMITS)[0]

    assert np.isfinite(benchmark(made)).all()


@pytest.mark.benchmark(group=GROUP)
def test_reference_matrix_products(benchmark, table):
    design, answers = table
    found = benchmark(lambda: design.T @ (answers - design @ AT))
    assert found.shape == (SIZE,)
