from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.families.gram import MOST_EXACT, GramSums
from pymc_dp.transforms.privatize import plan_for

LINKS: dict[str, Callable[[Any], Any]] = {
    "logit": pt.sigmoid,
    "probit": lambda eta: 0.5 * pt.erfc(-eta / np.sqrt(2)),
    "complementary log-log": lambda eta: -pt.expm1(-pt.exp(eta)),
}


def released(width: int, link: str, intercept: bool = False) -> tuple[GramSums, float]:
    """Sums of a Bernoulli regression on rows of norm 1 at most, and their squared L2 movement in pure numbers."""
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=width)
        a = pm.Normal("a", 0, 1) if intercept else 0.0
        x = pm.Data("x", np.zeros((10, width)))
        pm.Bernoulli("y", LINKS[link](a + x @ w), observed=np.zeros(10, dtype=int))
    gaussian = dp.Statistics(noise="gaussian")
    _, plan = plan_for(model, epsilon=1.0, delta=1e-5, domain=dp.Domain(norms={"x": 1.0}), statistics=gaussian)
    (table,) = plan.tables
    assert isinstance(table.statistic, GramSums)
    return table.statistic, plan.event.to_dict()["events"][0]["l2_squared"] * table.statistic.step**2


@pytest.mark.parametrize(
    ("width", "link", "intercept", "constant"),
    [
        (MOST_EXACT + 1, "logit", False, False),
        (MOST_EXACT + 1, "probit", False, False),
        (MOST_EXACT + 1, "logit", True, True),
        # log p and log (1 - p) are no mirror images: sums of predictors alone tell of the coefficients.
        (MOST_EXACT + 1, "complementary log-log", False, True),
        # The exact form takes means of predictors from their sums.
        (MOST_EXACT, "logit", False, True),
    ],
)
def test_many_centred_predictors_without_intercept_and_a_symmetric_link_need_products_alone(
    width: int, link: str, intercept: bool, constant: bool
) -> None:
    statistic, moved = released(width, link, intercept)
    assert statistic.constant == constant
    # Rows with u = 1 and u = -1, whose t are unit vectors with inner product τ: t tᵀ moves by 2 - 2τ², t u by 2 + 2τ,
    # the largest sum being that of τ = 1/2; with a constant t moves by 2 - 2τ, u by 4, and τ = 0.
    assert moved == pytest.approx(10.0 if constant else 4.5, rel=1e-6)
