"""Draws of every conditional against its density, computed from the rows themselves."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.step_methods.gibbs.conjugate_draws import (
    BetaChance,
    DirichletShares,
    GammaPower,
    NormalMean,
)
from pymc_dp.step_methods.gibbs.grid import Free, Grid
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.gibbs.conftest import bound, normal, scans

DRAWS = 1000
BETA = 0.6
BINARY = [0, 1, 1, 0, 1, 1, 1]


def update(step, name):
    return next(item for item in step.scan.updates if item.name == name)


def draw(step, name, values, rng, beta=BETA, count=DRAWS):
    held = {key: np.asarray(value, dtype=float) for key, value in values.items()}
    return np.array([update(step, name).draw(rng, held, step.sums, beta) for _ in range(count)])


def follows(sample, log_density, low, high):
    """Kolmogorov-Smirnov against an unnormalised log-density on an interval."""
    grid = np.linspace(low, high, 20001)
    height = log_density(grid)
    mass = np.cumsum(np.exp(height - height.max()))
    return stats.kstest(sample, lambda x: np.interp(x, grid, mass / mass[-1])).pvalue > 0.001


















def test_elements_in_groups_are_drawn_from_their_own_rows(rng):
    group = np.array([0, 1, 1, 2, 2, 2, 0])
    with pm.Model(coords={"g": range(3)}) as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.9, dims="g")
        pm.Bernoulli("y", p[::-1][pm.Data("group", group)], observed=np.array(BINARY))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), BetaChance)
    sample = draw(step, "p", {"p": np.full(3, 0.5)}, rng)
    for place in range(3):
        rows = np.array(BINARY)[group == 2 - place]
        ones, zeros = rows.sum(), (1 - rows).sum()
        assert follows(sample[:, place], lambda p: BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)  # noqa: B023




def test_coupled_elements_are_drawn_one_by_one(rng):
    """Two coefficients of one logit: each given the other, each a mechanism of its own."""
    x = np.array([0, 1, 2, 1, 0, 2, 2])
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=2)
        pm.Bernoulli("y", logit_p=b[0] + b[1] * pm.Data("x", x), observed=np.array(BINARY))
    step, _ = bound(model, Domain(bounds={"x": (0, 2)}), grid=256)
    found = update(step, "b")
    assert isinstance(found, Grid) and not found.together and len(found.ranges) == 2

    def log_density(b0, b1):
        eta = b0 + b1 * x[:, None]
        return BETA * (np.array(BINARY)[:, None] * eta - np.logaddexp(0, eta)).sum(axis=0)

    start = np.array([0.0, 0.5])
    sample = draw(step, "b", {"b": start}, rng, count=300)
    assert follows(sample[:, 0], lambda b: log_density(b, 0.5), -1, 1)


def test_discrete_latents_are_enumerated(rng):
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3)
        pm.Bernoulli("y", pm.math.switch(z, 0.2, 0.6), observed=np.array(BINARY))
    step, _ = bound(model)
    sample = draw(step, "z", {"z": 0}, rng)
    ones, zeros = sum(BINARY), len(BINARY) - sum(BINARY)
    odds = math.log(0.3 / 0.7) + BETA * (ones * math.log(0.2 / 0.6) + zeros * math.log(0.8 / 0.4))
    assert stats.binomtest(int(sample.sum()), DRAWS, 1 / (1 + math.exp(-odds))).pvalue > 0.001










@pytest.mark.slow
def test_a_potential_takes_conjugacy_away(rng):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Potential("tilt", 3 * p)
        pm.Bernoulli("y", p, observed=np.array(BINARY))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), Grid)
    ones, zeros = sum(BINARY), len(BINARY) - sum(BINARY)
    sample = draw(step, "p", {"p": 0.5}, rng, count=1000)
    assert follows(sample, lambda p: 3 * p + BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)




def test_one_parameter_of_two_likelihoods_adds_their_rows(rng):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array(BINARY))
        pm.Bernoulli("z", p, observed=np.array([0] * len(BINARY)))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), BetaChance)
    assert update(step, "p").ranges[0] == pytest.approx(4 * math.log(9))
    ones, zeros = sum(BINARY), 2 * len(BINARY) - sum(BINARY)
    sample = draw(step, "p", {"p": 0.5}, rng)
    assert follows(sample, lambda p: BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)


