"""Networks simulated from the prior, released for real and fitted by NUTS: ranks are uniform, intervals cover.

The posterior given released coefficients rests on a normal approximation of counts (`transforms.network`); that given
released tables does not.
"""

from __future__ import annotations

import zlib

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.plan.posteriors import DRAWS_OF_CHAIN, Chain
from pymc_dp.simulation.networks import draw_levels
from pymc_dp.transforms.privatize import plan_for
from tests.networks import COLLIDER, network_model, network_of, set_rows
from tests.paid import draw_release
from tests.transforms.zoo import privatize

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")]
N_SIMULATIONS = 60
CASES = {
    "coefficients, noise less than sampling": (1000, 3.0, "laplace", dp.networks.FourierUpdates()),
    "coefficients, noise more than sampling": (1000, 0.3, "laplace", dp.networks.FourierUpdates()),
    "coefficients, few rows": (100, 1.0, "laplace", dp.networks.FourierUpdates()),
    "coefficients, Gaussian noise": (1000, 0.5, "gaussian", dp.networks.FourierUpdates()),
    "tables": (1000, 0.3, "laplace", dp.networks.LaplaceUpdates(papers=True)),
}


def ranks(name: str) -> np.ndarray:
    """Share of posterior draws below every true probability: (n_simulations, 8) array."""
    n, epsilon, noise, mechanism = CASES[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    model, network = network_model(COLLIDER, n), network_of(COLLIDER)
    settings = {"delta": 1e-6 if noise == "gaussian" else 0.0, "statistics": dp.Statistics(noise, mechanism=mechanism)}
    plan = plan_for(model, epsilon=epsilon, domain=None, **settings)[1]
    private = privatize(model, epsilon=epsilon, **settings)
    chain = chain_of(private)
    found = []
    for seed in range(N_SIMULATIONS):
        truth = {node: rng.random(2 ** len(parents)) for node, parents in COLLIDER.items()}
        shares = np.concatenate([np.stack([1 - truth[node], truth[node]], axis=1).ravel() for node in network.names])
        set_rows(model, draw_levels(rng, network, shares, n))
        if name == "tables":  # densities of counts of private size are tabulated for one release
            chain = chain_of(privatize(model, epsilon=epsilon, **settings))
        else:
            for table, released in draw_release(plan).values.items():
                private.rvs_to_values[private[table]].set_value(released)
        logits = chain.draws(seed)[:, :8]  # of the probabilities, in the order of the model
        found.append((1 / (1 + np.exp(-logits)) < np.concatenate(list(truth.values()))).mean(axis=0))
    return np.array(found)


def chain_of(private: pm.Model) -> Chain:
    """NUTS on a private model, whose observed values are swapped later."""
    start = private.initial_point()
    parts = [np.asarray(start[value.name]) for value in private.value_vars]
    return Chain(private, np.concatenate([part.ravel() for part in parts]), [part.shape for part in parts])


@pytest.mark.parametrize("name", CASES)
def test_posteriors_of_networks_are_calibrated(name: str) -> None:
    seed = zlib.crc32(name.encode())
    with dp.testing.insecure_randomness(seed % 2**31):
        found = ranks(name)
    covered = np.sum((found > 0.05) & (found < 0.95), axis=0)
    spread = np.random.default_rng(seed).uniform(size=found.shape) / DRAWS_OF_CHAIN
    counts = [
        np.bincount(np.minimum((10 * (below + more)).astype(int), 9), minlength=10)
        for below, more in zip(found.T, spread.T, strict=True)
    ]
    print(f"{name}: coverage {covered / N_SIMULATIONS}, {covered.sum() / found.size:.3f}; {np.sum(counts, axis=0)}")
    for one, several in zip(counts, covered, strict=True):
        assert stats.chisquare(one).pvalue > 1e-4, one
        assert stats.binomtest(int(several), N_SIMULATIONS, 0.9).pvalue > 1e-4, several
