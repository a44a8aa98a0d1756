"""Releases that are drawn from a private model have the density of the release."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

import pymc_dp as dp
from tests.networks import PAIR, network_model

DRAWS = 80
PLAIN = Mode(linker="py", optimizer=None)
RNG = np.random.default_rng(11)
X, GROUP = RNG.uniform(-1, 1, (150, 2)), RNG.integers(0, 2, 150)
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def regression(observe, apart=False, public=False, **given):
    """A regression of 150 rows on two columns, or one of each of two groups."""
    with pm.Model() as model:
        x, group = pm.Data("x", X), pm.Data("g", GROUP)
        a, b = pm.Normal("a", 0, 1, shape=2 if apart else ()), pm.Normal("b", 0, 1, shape=2)
        observe(a[group] + b[group] * x[:, 0] if apart else a + x @ b)
    return model, dp.Domain(bounds={"x": (-1, 1), **given.pop("bounds", {})}, public=["x"] if public else [], **given)


def normal(eta):
    pm.Normal("y", eta, 1.2, observed=X[:, 0] + RNG.normal(size=150))


def binary(eta):
    pm.Bernoulli("y", 0.05 + 0.9 * pm.math.invlogit(eta), observed=GROUP)


def counts(eta):
    pm.Poisson("y", pt.softplus(1 + eta), observed=GROUP)


def cells(observe, **given):
    with pm.Model() as model:
        a, group = pm.Normal("a", 0, 1, shape=2), pm.Data("g", GROUP)
        observe(a[group])
    return model, dp.Domain(**given)


def exposed(eta):
    rate = pm.math.exp(eta) * pm.Data("exposure", np.linspace(0.5, 2, 150))
    pm.Poisson("y", rate, observed=GROUP)


WIDE, FEW = {"bounds": {"y": (-6, 6)}}, {"bounds": {"y": (0, 6)}}
GAUSSIAN = {"statistics": dp.Statistics(noise="gaussian"), "delta": 1e-5}
RELEASED = {
    "normal": (lambda: regression(normal, **WIDE), {}),
    "normal, Gaussian noise": (lambda: regression(normal, **WIDE), GAUSSIAN),
    "normal, public columns": (lambda: regression(normal, public=True, **WIDE), GAUSSIAN),
    "binary, another link": (lambda: regression(binary), {}),
    "binary, groups apart": (lambda: regression(binary, apart=True), {}),
    "counts, another link": (lambda: regression(counts, **FEW), {}),
    "numbers in cells": (lambda: cells(normal, **WIDE), {}),
    "counts of exposures": (lambda: cells(exposed, bounds={"y": (0, 6), "exposure": (0.5, 2)}), {}),
    "a network": (
        lambda: (network_model(PAIR, 150), None),
        {"statistics": dp.Statistics(mechanism=dp.networks.FourierUpdates())},
    ),
}


def privately(name, epsilon=5.0):
    make, given = RELEASED[name]
    model, domain = make()
    with dp.testing.insecure_randomness(1):
        return dp.privatize(model, epsilon=epsilon, domain=domain, ledger=dp.Ledger(9.0, 1e-3), **given)


def values_at(private, rng):
    """A draw of all free variables."""
    return dict(zip(private.free_RVs, pm.draw(private.free_RVs, random_seed=rng, mode=PLAIN), strict=True))


@pytest.mark.parametrize("name", RELEASED)
def test_ratios_of_densities_have_the_mean_one_over_draws(name, rng):
    """E[p(z | θ') / p(z | θ)] = 1 over releases z drawn given θ."""
    private = privately(name)
    (table, *_) = private.observed_RVs
    free = private.free_RVs
    value = table.type("value")
    density = pytensor.function([*free, value], pm.logp(table, value).sum(), mode=PLAIN, on_unused_input="ignore")
    here = values_at(private, rng)
    other = values_at(private, rng)
    drawn = pm.draw(table, DRAWS, random_seed=rng, mode=PLAIN, givens=here)
    before = np.array([float(density(*here.values(), one)) for one in drawn])
    for part in (0.01, 0.001):
        there = [np.asarray(x + part * (other[rv] - x)) for rv, x in here.items()]
        logs = np.array([float(density(*there, one)) for one in drawn]) - before
        if logs.std() < 1:
            break
    ratios = np.exp(logs)
    assert 0.01 < logs.std() < 1
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(DRAWS)
