"""How far one row can move a likelihood, and a posterior draw, beside the fit without privacy."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from _logistic import Table, minimum, simulated

import pymc_dp as dp

N_ROWS, N_COLUMNS = 2000, 3


@pytest.fixture(scope="module")
def table() -> Table:
    return simulated(N_ROWS, N_COLUMNS, 1)[0]


def logistic(table: Table) -> pm.Model:
    with pm.Model() as model:
        w = pm.Normal("w", 0, 2, shape=N_COLUMNS)
        pm.Bernoulli("y", logit_p=pm.Data("x", table.x) @ w, observed=table.y)
    return dp.truncate(model, norms={"w": 6.0})


@pytest.mark.benchmark(group="logistic regression, 2000 rows")
def test_sensitivity(benchmark, table):
    model, domain = logistic(table), dp.Domain(norms={"x": 1.0})
    found = benchmark.pedantic(dp.sensitivity, args=(model, domain), rounds=3, warmup_rounds=1)
    assert np.isfinite(found.range.value)


@pytest.mark.benchmark(group="logistic regression, 2000 rows")
def test_one_posterior_sample(benchmark, table):
    with logistic(table) as model:
        domain = dp.Domain(norms={"x": 1.0})
        step = dp.OPS(assume_converged=True, epsilon=1.0, delta=1e-5, domain=domain, chains=10)
    start = model.initial_point()

    def draw() -> np.ndarray:
        step.setup_chain(np.random.default_rng(), 0, 1)
        (state,) = step.step(dict(start))[0].values()
        return state

    assert np.isfinite(benchmark.pedantic(draw, rounds=5, warmup_rounds=1)).all()


@pytest.mark.benchmark(group="logistic regression, 2000 rows")
def test_reference_minimum(benchmark, table):
    assert np.isfinite(benchmark(minimum, table, 0.25)).all()
