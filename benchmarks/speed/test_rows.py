"""One pass over rows: clamped, rounded and summed as integers, beside a plain sum of floats."""

from __future__ import annotations

import numpy as np
import pytest

from pymc_dp.families.statistic import GRID, BoundedMoments
from pymc_dp.rows.sums import make_cells, sum_rows

N_ROWS, LOW, HIGH = 1_000_000, -3.0, 3.0


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(1).normal(size=N_ROWS)


@pytest.mark.benchmark(group="a pass over 1e6 rows")
def test_privatize_pass(benchmark, values):
    half = (HIGH - LOW) / 2
    statistic = BoundedMoments(low=LOW, high=HIGH, centre=0.0, unit=half / GRID, half_width=half, powers=(1,))
    found = benchmark(sum_rows, make_cells([], N_ROWS, None), statistic, values, with_sizes=False)
    assert found.shape == (1, 1)


@pytest.mark.benchmark(group="a pass over 1e6 rows")
def test_reference_sum_of_floats(benchmark, values):
    assert np.isfinite(benchmark(values.sum))
