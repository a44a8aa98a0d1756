"""Which sums a regression on continuous columns needs, and how far one row moves them."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import MOST_PREDICTORS, GramSums
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
