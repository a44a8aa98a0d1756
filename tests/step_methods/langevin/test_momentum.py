"""Samplers with momentum through the step: what is priced, what is remembered, what is said."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier
from pymc_dp.step_methods.langevin import SGHMC, SGLD, SGNHT, AlphaPhase, PolynomialDecay, base
from pymc_dp.step_methods.langevin.batches import algorithm_two

from .conftest import BATCH, BUDGET, CLIP, N_ROWS, flat, funded, start












@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n", "batch", "steps", "epsilon", "sampling", "ratio"),
    [
        (32561, 180, 32561, 1.0, "poisson", 25.0),
        (32561, 180, 32561, 1.0, "without_replacement", 11.6),
        (32561, 180, 32561, 5.0, "poisson", 21.0),
        (32561, 180, 32561, 5.0, "without_replacement", 9.2),
    ],
)
def test_noise_is_below_that_of_algorithm_two(n, batch, steps, epsilon, sampling, ratio):
    drawn = {"sample_rate": batch / n} if sampling == "poisson" else {"population": n, "batch_size": batch}
    needed = noise_multiplier(epsilon, 1e-5, steps, sampling=sampling, neighbours="replace", **drawn)
    found = algorithm_two(1.0, steps, epsilon, 1e-5) * batch / n / needed
    assert found == pytest.approx(ratio, rel=0.03)






# Long runs.


def skewed():
    y = np.array([0.2, 0.9, 1.7, 0.4, 2.3, 0.1])
    with pm.Model() as model:
        pm.Exponential("y", pm.Gamma("rate", 2.0, 1.0), observed=y)
    return model, stats.gamma(2 + y.size, scale=1 / (1 + y.sum()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [(SGHMC, {}), (SGNHT, {}), (SGLD, {"precondition": "rmsprop", "tune": 500}), (SGLD, {"dtype": "float32"})],
)
def test_a_skewed_posterior_is_met(method, options):
    model, truth = skewed()
    settings = {"batch_size": 6, "clip_norm": 60.0, "step_size": 0.002, "steps_per_draw": 50, **options}
    step = funded(model, method=method, steps=30_000, epsilon=1e10, **settings)
    point, draws = start(step), []
    for _ in range(30_000):
        point, _ = step.step(point)
        draws.append(point["rate_log__"])
    rate = np.exp(draws[1000:])
    assert rate.mean() == pytest.approx(truth.mean(), rel=0.02)
    assert rate.std() == pytest.approx(truth.std(), rel=0.04)
    assert stats.skew(rate) == pytest.approx(truth.stats("s"), rel=0.2)
    assert stats.kstest(rate[::40], truth.cdf).pvalue > 0.001




