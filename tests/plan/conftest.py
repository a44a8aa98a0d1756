"""One plan for many tests: exact posteriors of a coin, at three budgets, noise-aware and plug-in."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

EPSILONS = [0.1, 0.5, 3.0]
REPEATS = 60


def coin(rows=100):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(rows, dtype=int))
    return model


def grouped(rows=200, groups=3):
    with pm.Model(coords={"g": range(groups)}) as model:
        p = pm.Beta("p", 1, 1, dims="g")
        pm.Deterministic("gap", p[1] - p[0])
        pm.Bernoulli("y", p[pm.Data("g_index", np.zeros(rows, dtype=int))], observed=np.zeros(rows, dtype=int))
    return model


def heavy_tailed(rows=3000):
    """A model without sums of its own, and its domain: its values are counted in bins."""
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 1), sigma=1.0, observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5)})


@pytest.fixture(scope="session")
def planned():
    statistics = {"aware": dp.Statistics(), "plug-in": dp.Statistics(noise_aware=False)}
    return dp.plan(
        coin(), EPSILONS, statistics=statistics, repeats=REPEATS, random_seed=1, progressbar=False, width=0.25
    )
