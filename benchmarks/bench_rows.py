"""One pass over 1e7 rows: against loops written by hand for the purpose, DuckDB and Polars."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from unittest import mock

import duckdb
import numba
import numpy as np
import polars as pl
import pytensor
from _measure import Report, Times, in_turn, peak_bytes

from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Column
from pymc_dp.rows import sums as row_sums
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.sums import make_cells, sum_rows

N_ROWS = 10_000_000
N_COLUMNS = 8
LOW, HIGH = -3.0, 3.0
LEVELS = 5


@numba.njit(nogil=True)
def fused_sums(table, low, high, centre, per_unit):
    """Clamp, round, sum: what one would write for this table alone, on one thread."""
    n_rows, n_columns = table.shape
    sums = np.zeros(n_columns, dtype=np.int64)
    for j in range(n_columns):
        total = 0
        for i in range(n_rows):
            value = min(max(table[i, j], low), high)
            total += np.int64(np.rint((value - centre) * per_unit))
        sums[j] = total
    return sums


@numba.njit(nogil=True, parallel=True)
def fused_sums_parallel(table, low, high, centre, per_unit):
    n_rows, n_columns = table.shape
    sums = np.zeros(n_columns, dtype=np.int64)
    for j in numba.prange(n_columns):
        total = 0
        for i in range(n_rows):
            value = min(max(table[i, j], low), high)
            total += np.int64(np.rint((value - centre) * per_unit))
        sums[j] = total
    return sums


@numba.njit(nogil=True)
def fused_counts(codes, n_levels):
    counts = np.zeros(n_levels, dtype=np.int64)
    for i in range(codes.size):
        counts[codes[i]] += 1
    return counts


@numba.njit(nogil=True)
def fused_counts_striped(codes, n_levels):
    """The same without waiting for the last addition to the same count."""
    counts = np.zeros((4, n_levels), dtype=np.int64)
    for i in range(codes.size):
        counts[i & 3, codes[i]] += 1
    return counts.sum(axis=0)


@numba.njit(nogil=True)
def fused_table(groups, values, n_groups):
    counts = np.zeros((n_groups, 2), dtype=np.int64)
    for i in range(groups.size):
        counts[groups[i], values[i]] += 1
    return counts


@contextmanager
def one_thread():
    with mock.patch.object(row_sums, "ROWS_PER_SPAN", 2**62):
        yield


def on_one_thread(call):
    def inner():
        with one_thread():
            return call()

    return inner


def column_of(name: str, values: np.ndarray, n_levels: int) -> Column:
    leaf = pytensor.shared(values, name=name, borrow=True)
    return Column(
        name=name, leaf=leaf, stand_ins=(leaf,), levels=np.arange(n_levels), outside="first", public=False, dim=None
    )


def report_ratio(report: Report, times: Times, what: str, name: str, reference: str, limit: float | None) -> None:
    median, least = times.ratio(name, reference)
    text = f"{what}: {1e3 * times.median(name):.0f} / {1e3 * times.median(reference):.0f} ms"
    if limit is None:
        report.add(text, f"{median:.2f} (least {least:.2f})")
    else:
        report.add(text, f"{median:.2f} (least {least:.2f})", f"<= {limit:g}", met=median <= limit)


def bench_sums(rng: np.random.Generator) -> bool:
    table = np.asfortranarray(rng.normal(size=(N_COLUMNS, N_ROWS)).T)
    half_width = (HIGH - LOW) / 2
    statistic = BoundedMoments(
        low=LOW, high=HIGH, centre=0.0, unit=half_width / GRID, half_width=half_width, powers=(1,)
    )
    cells = make_cells([], N_ROWS, None)

    def library() -> np.ndarray:
        return np.array([sum_rows(cells, statistic, table[:, j], with_sizes=False)[0, 0] for j in range(N_COLUMNS)])

    arguments = (table, LOW, HIGH, 0.0, 1 / statistic.unit)
    assert np.array_equal(library(), fused_sums(*arguments))
    times = in_turn(
        {
            "library": library,
            "library, one thread": on_one_thread(library),
            "fused": lambda: fused_sums(*arguments),
            "fused, parallel": lambda: fused_sums_parallel(*arguments),
            "numpy": lambda: table.sum(axis=0),
        }
    )
    report = Report(f"Clamp, round and sum a {N_ROWS:.0e} x {N_COLUMNS} table of float64 ({os.cpu_count()} cores)")
    report_ratio(report, times, "library over fused loop, both on one thread", "library, one thread", "fused", 1.5)
    report_ratio(report, times, "library over fused loop, both parallel", "library", "fused, parallel", None)
    report_ratio(report, times, "library (threads) over fused loop on one thread", "library", "fused", 1.5)
    report_ratio(report, times, "library (threads) over plain float sum by NumPy", "library", "numpy", None)
    small = peak_bytes(lambda: sum_rows(cells, statistic, table[:100_000, 0], with_sizes=False))
    large = peak_bytes(lambda: sum_rows(cells, statistic, table[:, 0], with_sizes=False))
    report.add(
        "peak extra memory at 1e5 and 1e7 rows",
        f"{small / 2**20:.1f}, {large / 2**20:.1f} MiB",
        "< 8",
        met=large < 2**23,
    )
    return report.finish()


def bench_counts(rng: np.random.Generator) -> bool:
    rating = rng.choice(LEVELS, size=N_ROWS, p=[0.02, 0.05, 0.16, 0.35, 0.42]).astype(np.int32)
    affair = (rng.random(N_ROWS) < 0.3).astype(np.int32)
    categorical = LevelCounts(labels=tuple(map(str, range(LEVELS))))
    bernoulli = LevelCounts(labels=("0", "1"))
    no_columns = make_cells([], N_ROWS, None)
    grouped = make_cells([column_of("rating", rating, LEVELS)], N_ROWS, None)

    frame = pl.DataFrame({"rating": rating, "affair": affair})
    base = duckdb.connect()
    base.execute("create table people as select * from frame")

    def duck(columns: str) -> dict[tuple[int, ...], int]:
        rows = base.execute(f"select {columns}, count(*) from people group by {columns}").fetchall()
        return {row[:-1]: row[-1] for row in rows}

    def polars(*columns: str) -> dict[tuple[int, ...], int]:
        return {row[:-1]: row[-1] for row in frame.lazy().group_by(*columns).len().collect().rows()}

    def one_way() -> np.ndarray:
        return sum_rows(no_columns, categorical, rating, with_sizes=False)

    def two_way() -> np.ndarray:
        return sum_rows(grouped, bernoulli, affair, with_sizes=True)

    assert {(k,): count for k, count in enumerate(one_way()[0])} == duck("rating") == polars("rating")
    assert duck("rating, affair") == polars("rating", "affair")
    assert {(k, x): two_way()[k, x] for k in range(LEVELS) for x in range(2)} == duck("rating, affair")

    cases = {
        "5 counts": (
            one_way,
            {
                "fused": lambda: fused_counts(rating, LEVELS),
                "fused, 4 stripes": lambda: fused_counts_striped(rating, LEVELS),
                "DuckDB": lambda: duck("rating"),
                "Polars": lambda: polars("rating"),
            },
        ),
        "5 groups x 2 counts": (
            two_way,
            {
                "fused": lambda: fused_table(rating, affair, LEVELS),
                "DuckDB": lambda: duck("rating, affair"),
                "Polars": lambda: polars("rating", "affair"),
            },
        ),
    }
    met = True
    for name, (library, others) in cases.items():
        times = in_turn({"library": library, "library, one thread": on_one_thread(library), **others})
        report = Report(f"{name} of {N_ROWS:.0e} rows ({os.cpu_count()} cores)")
        report_ratio(report, times, "library over fused loop, both on one thread", "library, one thread", "fused", 1.5)
        if "fused, 4 stripes" in others:
            report_ratio(report, times, "... over a loop of 4 stripes", "library, one thread", "fused, 4 stripes", None)
        report_ratio(report, times, "library (threads) over fused loop on one thread", "library", "fused", 1.5)
        report_ratio(report, times, "library over DuckDB", "library", "DuckDB", 1.0)
        report_ratio(report, times, "library over Polars", "library", "Polars", 1.0)
        peak = peak_bytes(library)
        report.add("peak extra memory", f"{peak / 2**20:.1f} MiB", "< 8", met=peak < 2**23)
        met = report.finish() and met
    return met


if __name__ == "__main__":
    generator = np.random.default_rng(20240101)
    with opened_gate():  # the rows are made up
        results = [bench_sums(generator), bench_counts(generator)]
    sys.exit(not all(results))
