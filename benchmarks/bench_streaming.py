"""Parquet files streamed into the kernels: against reading plus the same kernels in memory; memory to 1e8 rows.

Run by itself it writes its files into a temporary folder: 0.6 GB. 1e8 rows are ten names of one file of 1e7.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pymc as pm

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel.tallies import added_up
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.rows.gate import opened_gate, values_of
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.source import StoredSource

N_ROWS, N_COLUMNS, N_GROUPS = 10_000_000, 8, 100
SIZES = (1_000_000, 10_000_000, 100_000_000)
ROW_GROUP = 250_000


def write(path: Path, n_rows: int) -> None:
    """Write simulated rows, a row group at a time."""
    rng = np.random.default_rng(0)
    names = ["group", *(f"c{k}" for k in range(N_COLUMNS))]
    schema = pa.schema([("group", pa.int32()), *((name, pa.float64()) for name in names[1:])])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, ROW_GROUP):
            size = min(ROW_GROUP, n_rows - start)
            columns = [rng.integers(0, N_GROUPS, size).astype(np.int32), *rng.normal(size=(N_COLUMNS, size))]
            writer.write_table(pa.table(dict(zip(names, columns, strict=True)), schema=schema))


def model_of(group: np.ndarray, columns: list[np.ndarray], regression: bool) -> pm.Model:
    """Eight means by group, or one regression."""
    with pm.Model() as model:
        index = pm.Data("group", group)
        if regression:
            eta = sum(pm.Data(f"c{k}", column) * pm.Normal(f"b{k}") for k, column in enumerate(columns[:-1]))
            pm.Normal("last", eta, 1, observed=columns[-1])
            return model
        for k, column in enumerate(columns):
            pm.Normal(f"c{k}", pm.Normal(f"m{k}", shape=N_GROUPS)[index], 1, observed=column)
    return model


def planned(group: np.ndarray, columns: list[np.ndarray], regression: bool, rows: dp.Parquet | None):
    names = [f"c{k}" for k in range(N_COLUMNS - regression)] + ["last"] * regression
    domain = dp.Domain(bounds=dict.fromkeys(names, (-5.0, 5.0)))
    found = inspect(model_of(group, columns, regression), domain).sums
    if rows is None:
        return plan_release(found, Statistics(), 1.0), None
    found = with_stored(found, rows)
    found.require()
    return plan_release(found, Statistics(), 1.0), Passes.of(found, rows)


def beside(files: list[str], regression: bool) -> tuple[ReleasePlan, Passes]:
    held = {f"c{k}": f"c{k}" for k in range(N_COLUMNS - regression)}
    held |= {"last": f"c{N_COLUMNS - 1}"} if regression else {"group": "group"}
    dummies = np.zeros(3, dtype=np.int32), [np.zeros(3)] * N_COLUMNS
    return planned(*dummies, regression, dp.Parquet(files, held))


def read(file: str) -> tuple[np.ndarray, list[np.ndarray]]:
    table = pq.read_table(file, use_threads=False)
    arrays = [table[name].to_numpy() for name in table.column_names]
    return arrays[0], arrays[1:]


def timed(work: Callable[[], object]) -> tuple[float, float, object]:
    start, cores = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - start, time.process_time() - cores, found


def streamed_sums(plan, passes):
    """Add up stored rows block by block."""
    return added_up([one.tally for one in plan.asked], StoredSource(plan.asked, passes))


def compare(file: str, regression: bool) -> None:
    """Print the ratio of streaming to reading plus the same sums in memory, turn by turn."""
    plan, passes = beside([file], regression)
    ratios = []
    with opened_gate():
        for turn in range(4):
            wall, cores, streamed = timed(lambda: streamed_sums(plan, passes))
            read_wall, read_cores, (group, columns) = timed(lambda: read(file))
            inside, _ = planned(group, columns, regression, None)
            kernel_wall, kernel_cores, whole = timed(lambda inside=inside: [one.of(values_of) for one in inside.asked])
            assert all(np.array_equal(one, other) for one, other in zip(streamed, whole, strict=True))
            if turn:  # the first compiles
                ratios.append((wall / (read_wall + kernel_wall), cores / (read_cores + kernel_cores)))
            print(
                f"  {wall:.2f} s streamed ({cores:.2f} of cores); reading {read_wall:.2f} ({read_cores:.2f}), "
                f"kernels in memory {kernel_wall:.2f} ({kernel_cores:.2f})"
            )
    wall, cores = np.median(ratios, axis=0)
    what = "regression on 7 columns" if regression else "8 means by 100 groups"
    print(f"{what}: streaming / (reading + kernels) = {wall:.2f} (clock), {cores:.2f} (all cores); integers equal")


def peak(files: list[str]) -> None:
    plan, passes = beside(files, False)
    with opened_gate():
        streamed_sums(plan, passes)
    lines = Path("/proc/self/status").read_text().splitlines()  # of this process alone, not of what started it
    print(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 2**20)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.parquet"), Path(folder, "large.parquet")
        write(small, SIZES[0])
        write(large, N_ROWS)
        for regression in (False, True):
            compare(str(large), regression)
        names = [str(Path(folder, f"{k}.parquet")) for k in range(10)]
        for name in names:
            os.link(large, name)
        found = []
        for size, files in zip(SIZES, ([str(small)], [str(large)], names), strict=True):
            done = subprocess.run(
                [sys.executable, __file__, "peak", *files], capture_output=True, text=True, check=True
            )
            found.append(float(done.stdout.splitlines()[-1]))
            print(f"peak memory of the process at {size:.0e} rows: {found[-1]:.3f} GiB")
        print(f"largest over smallest: {max(found) / min(found):.2f}")


if __name__ == "__main__":
    peak(sys.argv[2:]) if sys.argv[1:2] == ["peak"] else main()
