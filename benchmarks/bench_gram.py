"""One pass over 1e6 rows of a regression on 50 covariates: against the products of matrices by NumPy."""

from __future__ import annotations

import os
import sys

import numpy as np
from _measure import Report, in_turn, peak_bytes

from pymc_dp.families.gram import GramSums, Source, grid_bits
from pymc_dp.rows.sums import sum_products

N_ROWS, WIDTH = 1_000_000, 50
HALF = 3.0
RESPONSE = Source(name="y", centres=(0.0,), halves=(HALF,))


def statistic(*, ball: bool = False, alone: bool = False, n_cells: int = 1) -> GramSums:
    """Sums of WIDTH covariates: of one matrix, or `alone`, column by column."""
    width = 1 if alone else WIDTH
    sources = [
        Source(name=f"x{j}", centres=(0.0,) * width, halves=(HALF,) * width, ball=ball) for j in range(WIDTH // width)
    ]
    return GramSums(
        sources=tuple(sources),
        response=RESPONSE,
        cells=tuple(map(str, range(n_cells))),
        sizes_known=n_cells == 1,
        bits=grid_bits(N_ROWS),
    )


def bench_gram(rng: np.random.Generator) -> bool:
    table, response = rng.normal(size=(N_ROWS, WIDTH)), rng.normal(size=N_ROWS)
    by_columns = np.asfortranarray(table)
    code = rng.integers(0, 20, N_ROWS)
    boxes, grouped = statistic(), statistic(n_cells=20)
    ball, alone = statistic(ball=True), statistic(alone=True)

    def library() -> np.ndarray:
        return sum_products(boxes, [table], response)

    products = np.clip(table / HALF, -1, 1)
    first = library()[WIDTH + 1 : 2 * WIDTH + 1] * boxes.step
    assert np.allclose(first, products[:, 0] @ products, rtol=1e-4, atol=1.0)
    del products
    times = in_turn(
        {
            "library": library,
            "NumPy": lambda: table.T @ table,
            "library, by columns": lambda: sum_products(boxes, [by_columns], response),
            "NumPy, by columns": lambda: by_columns.T @ by_columns,
            "library, one by one": lambda: sum_products(alone, list(by_columns.T), response),
            "library, norms": lambda: sum_products(ball, [table], response),
            "library, 20 cells": lambda: sum_products(grouped, [table], response, code),
        }
    )
    report = Report(f"Clamp, round and multiply {N_ROWS:.0e} rows of {WIDTH} float64 ({os.cpu_count()} cores)")
    for name, reference, limit in (
        ("library", "NumPy", 1.5),
        ("library, by columns", "NumPy, by columns", None),
        ("library, one by one", "NumPy, by columns", None),
        ("library, norms", "NumPy", None),
        ("library, 20 cells", "NumPy", None),
    ):
        median, least = times.ratio(name, reference)
        text = f"{name} over {reference}: {1e3 * times.median(name):.0f} / {1e3 * times.median(reference):.0f} ms"
        target = {} if limit is None else {"target": f"<= {limit:g}", "met": median <= limit}
        report.add(text, f"{median:.2f} (least {least:.2f})", **target)
    peak = peak_bytes(library)
    report.add("peak extra memory", f"{peak / 2**20:.1f} MiB", "< 50", met=peak < 50 * 2**20)
    return report.finish()


if __name__ == "__main__":
    sys.exit(not bench_gram(np.random.default_rng(20240106)))
