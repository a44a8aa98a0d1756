"""Which sums a regression on continuous columns needs, and how far one row moves them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import GramSums
from pymc_dp.rows.sums import sum_products
from pymc_dp.transforms.privatize import plan_for


@pytest.mark.parametrize("far", [1e160, np.inf])
def test_public_rows_whose_squares_overflow_are_as_long_as_they_count(far: float) -> None:
    """A row of infinite length counted as one of length 0: its response moved sums by 50 times what was claimed."""
    rows = np.full((5, 2), 0.01)
    rows[0] = far, 0.0
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Normal("y", pm.Data("x", rows) @ b, 1, observed=np.zeros(5))
    domain = dp.Domain(norms={"x": 1.0}, bounds={"y": (-1, 1)}, public=["x"])
    with np.errstate(over="ignore"):
        _, plan = plan_for(model, epsilon=1.0, delta=1e-5, domain=domain, statistics=dp.Statistics(noise="gaussian"))
    (table,) = plan.tables
    assert isinstance(table.statistic, GramSums) and table.statistic.known
    (block,) = table.blocks
    low, high = (sum_products(table.statistic, [rows], np.array([end, 0.0, 0.0, 0.0, 0.0])) for end in (-1.0, 1.0))
    moved = np.abs(high - low).tolist()
    assert 0.99 * block.sensitivity.l1 <= sum(moved) <= block.sensitivity.l1
    assert sum(item**2 for item in moved) <= block.sensitivity.l2_squared
