"""Which sums a regression on continuous columns needs, and how far one row moves them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import MOST_PREDICTORS, GramSums
from pymc_dp.rows.gram_sums import gram_sums
from pymc_dp.transforms.privatize import plan_for


def released(bounds: tuple[float, float], intercept: bool) -> tuple[GramSums, float]:
    """Sums of a regression on rows of norm 1 at most, and their squared L2 sensitivity in pure numbers."""
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=MOST_PREDICTORS)
        a = pm.Normal("a", 0, 1) if intercept else 0.0
        x = pm.Data("x", np.zeros((10, MOST_PREDICTORS)))
        pm.Normal("y", a + x @ w, 1, observed=np.zeros(10))
    domain = dp.Domain(norms={"x": 1.0}, bounds={"y": bounds})
    _, plan = plan_for(model, epsilon=1.0, delta=1e-5, domain=domain, statistics=dp.Statistics(noise="gaussian"))
    (table,) = plan.tables
    assert isinstance(table.statistic, GramSums)
    return table.statistic, plan.event.to_dict()["events"][0]["l2_squared"] * table.statistic.step**2


@pytest.mark.parametrize(
    ("bounds", "intercept", "constant"),
    [((-2.0, 2.0), False, False), ((-2.0, 2.0), True, True), ((-1.0, 2.0), False, True)],
    ids=["centred", "intercept", "not centred"],
)
def test_centred_columns_without_an_intercept_need_products_alone(
    bounds: tuple[float, float], intercept: bool, constant: bool
) -> None:
    statistic, moved = released(bounds, intercept)
    assert statistic.constant == constant
    # Rows with u = 1 and u = -1, whose t are unit vectors with inner product τ: t tᵀ moves by 2 - 2τ², t u by 2 + 2τ,
    # the largest sum being that of τ = 1/2; with a constant t moves by 2 - 2τ, u by 4, and τ = 0.
    assert moved == pytest.approx(10.0 if constant else 4.5, rel=1e-6)


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
    low, high = (gram_sums(table.statistic, [rows], np.array([end, 0.0, 0.0, 0.0, 0.0])) for end in (-1.0, 1.0))
    moved = np.abs(high - low).tolist()
    assert 0.99 * block.sensitivity.l1 <= sum(moved) <= block.sensitivity.l1
    assert sum(item**2 for item in moved) <= block.sensitivity.l2_squared
