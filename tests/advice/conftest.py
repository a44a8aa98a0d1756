"""Small models, one of each class that ``explain`` tells apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

N_ROWS = 2000
Case = tuple[pm.Model, dp.Domain]


def counts(low: float, high: float) -> Case:
    """A truncated share: sums of rows."""
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1, 1), low, high)
        pm.Bernoulli("y", p, observed=np.zeros(N_ROWS, dtype=int))
    return model, dp.Domain()


def logistic(sd: float = 1.0, fill: float = 0.1, neighbours: str = "replace") -> Case:
    """Without bounds, so that no range is proved: rows held one by one."""
    with pm.Model() as model:
        x = pm.Data("X", np.full((N_ROWS, 2), fill))
        b = pm.Normal("b", 0.0, sd, shape=2)
        pm.Bernoulli("y", logit_p=x @ b, observed=np.full(N_ROWS, int(fill > 0)))
    n_max = {"n_max": 5000} if neighbours == "add_remove" else {}
    return model, dp.Domain(norms={"X": 1.0}, neighbours=neighbours, **n_max)


def slope(fill: float = 1.0) -> Case:
    """A slope within bounds: a row moves it less if its covariate is public."""
    with pm.Model() as model:
        x = pm.Data("X", np.full(N_ROWS, fill))
        pm.StudentT("y", nu=4.0, mu=x * pm.Uniform("b", -1, 1), sigma=1.0, observed=np.zeros(N_ROWS))
    return model, dp.Domain(bounds={"X": (-1.0, 1.0), "y": (0.0, 1.0)})


def location(nu: float = 4.0, bounds: tuple[float, float] | None = None) -> Case:
    """A range that is proved, and draws from a grid, where there are bounds."""
    with pm.Model() as model:
        mu = (
            pm.Normal("mu", 0.0, 10.0)
            if bounds is None
            else pm.TruncatedNormal("mu", 0.0, 10.0, lower=bounds[0], upper=bounds[1])
        )
        pm.StudentT("y", nu=nu, mu=mu, sigma=1.0, observed=np.zeros(N_ROWS))
    return model, dp.Domain(bounds={"y": (-5.0, 5.0)})


def clamped_location() -> Case:
    """A range that is proved, and no exact draws: the parameter has no bounds."""
    model, domain = location()
    return dp.clamp(model, -6, 0), domain


@pytest.fixture(scope="session")
def explained() -> Callable[..., Any]:
    """``dp.explain``, once for each case and budget."""
    kept: dict[tuple[str, float, float], Any] = {}
    cases: dict[str, Callable[[], Case]] = {
        "counts": lambda: counts(0.05, 0.95),
        "logistic": logistic,
        "slope": slope,
        "location": lambda: location(bounds=(-5.0, 5.0)),
        "clamped": clamped_location,
    }

    def explain(case: str, epsilon: float = 1.0, delta: float = 1e-6) -> Any:
        key = case, epsilon, delta
        if key not in kept:
            model, domain = cases[case]()
            kept[key] = dp.explain(model, domain, epsilon=epsilon, delta=delta)
        return kept[key]

    return explain
