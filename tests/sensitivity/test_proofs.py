"""Bounds of one row's log-likelihood: never below what points attain, and the known values to 0.1%."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

ROWS = 3


def bernoulli(low: float, high: float) -> pm.Model:
    with pm.Model() as model:
        p = pm.Uniform("p", low, high)
        pm.Bernoulli("y", p, observed=np.zeros(ROWS, dtype=int))
    return model


def normal() -> pm.Model:
    with pm.Model() as model:
        mu, sd = pm.Uniform("mu", -1, 1), pm.Uniform("sd", 0.5, 2)
        pm.Normal("y", mu, sd, observed=np.zeros(ROWS))
    return model


def normal_mean() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Uniform("mu", -1, 1)
        pm.Normal("y", mu, 1, observed=np.zeros(ROWS))
    return model


def exponential() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Uniform("rate", 0.1, 2)
        pm.Exponential("y", rate, observed=np.zeros(ROWS))
    return model


def poisson() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Uniform("rate", 0.5, 5)
        pm.Poisson("y", rate, observed=np.zeros(ROWS, dtype=int))
    return model


# Model, bounds, quantity, value [theory.md 1].
KNOWN = {
    "bernoulli .05": (bernoulli(0.05, 0.95), None, "log_likelihood", 2.944439),
    "bernoulli .2": (bernoulli(0.2, 0.8), None, "log_likelihood", 1.386294),
    "bernoulli .3 to .6, sensitivity": (bernoulli(0.3, 0.6), None, "log_likelihood", 0.847298),
    "bernoulli .3 to .6, range": (bernoulli(0.3, 0.6), None, "range", 1.252763),
    "normal, mean and sd": (normal(), (-3, 3), "log_likelihood", 32.0),
    "normal mean, sensitivity": (normal_mean(), (-3, 3), "log_likelihood", 8.0),
    "normal mean, range": (normal_mean(), (-3, 3), "range", 12.0),
    "exponential, sensitivity": (exponential(), (0, 5), "log_likelihood", 10.0),
    "exponential, range": (exponential(), (0, 5), "range", 9.5),
    "poisson, sensitivity": (poisson(), (0, 20), "log_likelihood", 56.19856),
    "poisson, range": (poisson(), (0, 20), "range", 46.0517),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_values_are_met_to_a_thousandth_from_above(name):
    model, bounds, quantity, value = KNOWN[name]
    found = getattr(dp.sensitivity(model, dp.Domain(bounds={"y": bounds} if bounds else None)), quantity)
    assert value * (1 - 5e-4) <= found.value <= value * 1.001
    assert found.attained >= value * (1 - 1e-3)
