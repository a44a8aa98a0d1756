"""A Gibbs scan beside the bare beta draws, and steps of SGLD beside a NumPy loop."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from bench_gibbs import N_GROUPS, held

import pymc_dp as dp

N_ROWS, N_COLUMNS, BATCH, STEPS = 10_000, 20, 256, 100


@pytest.mark.benchmark(group="a Gibbs scan, five shares")
def test_tempered_gibbs_scan(benchmark):
    benchmark(held(10_000))


@pytest.mark.benchmark(group="a Gibbs scan, five shares")
def test_reference_beta_draws(benchmark):
    rng, ones = np.random.default_rng(1), np.arange(1, N_GROUPS + 1) * 300.0
    assert benchmark(rng.beta, ones, 1800 - ones).shape == (N_GROUPS,)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(N_ROWS, N_COLUMNS)) / np.sqrt(N_COLUMNS)
    return x, rng.integers(2, size=N_ROWS)


@pytest.mark.benchmark(group="100 steps of SGLD, batches of 256 rows")
def test_langevin_steps(benchmark, table):
    x, y = table
    with pm.Model():
        b = pm.Normal("b", 0, 1, shape=N_COLUMNS)
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y)
        settings = {"batch_size": BATCH, "clip_norm": 1.0, "step_size": 1e-6, "steps_per_draw": STEPS}
        step = dp.SGLD(**settings, epsilon=1000.0, delta=1e-5, domain=dp.Domain())
    step.setup_chain(np.random.default_rng(0), 0, 2000)
    point = {"b": np.zeros(N_COLUMNS)}
    benchmark.pedantic(lambda: step.step(point), rounds=50, warmup_rounds=2)
    assert np.isfinite(step.step(point)[0]["b"]).all()


@pytest.mark.benchmark(group="100 steps of SGLD, batches of 256 rows")
def test_reference_numpy_loop(benchmark, table):
    x, y = table
    rng = np.random.default_rng(3)

    def steps() -> np.ndarray:
        b = np.zeros(N_COLUMNS)
        for _ in range(STEPS):
            places = rng.choice(N_ROWS, BATCH, replace=False)
            rows = x[places]
            residual = y[places] - 1 / (1 + np.exp(-rows @ b))
            short = np.minimum(1, 1 / (np.abs(residual) * np.linalg.norm(rows, axis=1)))
            gradient = (residual * short) @ rows * N_ROWS / BATCH - b
            b = b + 1e-6 * gradient + np.sqrt(2e-6) * rng.normal(size=N_COLUMNS)
        return b

    assert np.isfinite(benchmark.pedantic(steps, rounds=50, warmup_rounds=2)).all()
