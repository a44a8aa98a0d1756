"""A regression whose graphs are made once for all tests of Fisher scoring, and none of whose loops is compiled."""

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.langevin import SGFS

from .conftest import BATCH, BUDGET, N_ROWS, relation

WIDTH, CLIP = 3, 4.0


def rows(n_rows=N_ROWS, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, WIDTH)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.5]])
    return x, x @ [1.0, -0.5, 0.2] + rng.normal(size=n_rows)


def regression(x, y):
    with pm.Model() as model:
        coefficients = pm.Normal("coefficients", 0, 0.5, shape=WIDTH)
        pm.Normal("y", pm.Data("x", x) @ coefficients, 1.0, observed=y)
    return model


def funded(model, neighbours="replace", steps=50, **settings):
    """A funded step whose chain has begun."""
    settings = {"batch_size": BATCH, "clip_norm": CLIP, **BUDGET, **settings}
    forget_releases()
    with model:
        step = SGFS(domain=relation(neighbours), **settings)
    with dp.testing.insecure_randomness(1):
        step.setup_chain(None, 0, steps)
    return step
