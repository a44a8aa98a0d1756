"""Samplers by exact sums: what is planned covers what the kernel charges, and draws are of the posterior."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.step_methods.metropolis.penalty import MOST_NOISE
from pymc_dp.step_methods.ops.from_sums import SummedGrid

QUIET = {"progressbar": False, "compute_convergence_checks": False}


def far_mean():
    """A mean so far from the rows that floats of its log-likelihood have few digits left for one of them."""
    with pm.Model() as model:
        a = pm.Uniform("a", 1e7, 1e7 + 1000)
        pm.Normal("y", a + 0 * a**2, 1.0, observed=np.linspace(0, 1000, 100))
    return model, dp.Domain(bounds={"y": (0, 1000)})


@pytest.mark.parametrize("epsilon", [0.1, 100.0, 1e5])
def test_the_planned_event_of_a_grid_covers_what_is_charged_however_far_off_floats_are(epsilon):
    model, domain = far_mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ε is large
        trace = dp.sample(3, model=model, domain=domain, step=dp.OPS(grid=64), epsilon=epsilon, **QUIET)
    assert trace.posterior["a"].size == 3


def two_scalars(y):
    with pm.Model() as model:
        mu, sd = pm.Uniform("mu", -2, 2), pm.Uniform("sd", 0.5, 3)
        pm.Normal("y", mu, sd, observed=y)
    return model


def test_draws_from_a_grid_are_of_the_tempered_posterior():
    y = np.random.default_rng(0).normal(0.5, 1.2, 300).clip(-3, 3)
    model, domain = two_scalars(y), dp.Domain(bounds={"y": (-3, 3)})
    step = dp.OPS(grid=48).preview(model, domain, Budget(4000.0 / 300, 0.0)).bound
    assert isinstance(step.posterior, SummedGrid)
    with dp.testing.insecure_randomness(4), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ε is large
        trace = dp.sample(
            300, model=model, domain=domain, step=dp.OPS(grid=48), epsilon=4000.0, chains=1, tune=0, **QUIET
        )
    mu, sd = np.meshgrid(np.linspace(-2, 2, 400), np.linspace(0.5, 3, 400), indexing="ij")
    log = step.temperature.inverse * (-0.5 * ((y[:, None, None] - mu) / sd) ** 2 - np.log(sd)).sum(axis=0)
    weight = np.exp(log - log.max())
    for name, at in (("mu", mu), ("sd", sd)):
        mean = (weight * at).sum() / weight.sum()
        wide = ((weight * (at - mean) ** 2).sum() / weight.sum()) ** 0.5
        found = trace.posterior[name].to_numpy().ravel()
        assert abs(found.mean() - mean) < 4 * wide / 300**0.5
        assert 0.85 < found.std() / wide < 1.15


def test_no_proposal_that_a_penalty_is_planned_for_is_refused_by_the_kernel():
    model, domain = two_scalars(np.linspace(-2, 2, 50)), dp.Domain(bounds={"y": (-3, 3)})
    with model:
        step = dp.PenaltyMetropolis(epsilon=1.0, delta=1e-6, domain=domain)
    step.setup_chain(np.random.default_rng(0), 0, 10)
    here, ratio, rng = step.coefficients.start, step.spending.ratio, np.random.default_rng(1)
    tried = 0
    for _ in range(20):
        way = rng.normal(size=2)
        low, high = 0.0, 4.0
        for _ in range(60):  # to the last float that the plan allows
            middle = (low + high) / 2
            there = step.coefficients.at(here.values + middle * way)
            fits = step.ratio.reach(here, there) / ratio <= MOST_NOISE
            low, high = (middle, high) if fits else (low, middle)
        there = step.coefficients.at(here.values + low * way)
        if step.ratio.reach(here, there) / ratio > 0.999 * MOST_NOISE and tried < 9:
            step.ratio.draw("penalty", here, there, 1.0, noise=(1 + 1e-15) / ratio, most_noise=MOST_NOISE)
            tried += 1
    assert tried > 5
