"""Noise-aware densities against augmented rows, whose posterior is exact, for every likelihood of one number a row."""

from __future__ import annotations

import zlib

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.calibration.posteriors import LIKELIHOODS, Array, Likelihood, Releaser
from tests.calibration.test_families import FAMILIES

N_ROWS, EPSILON = 200, 1.0
DRAWS, TUNE = 2500, 300
KNOWN = {**{name: LIKELIHOODS[name] for name in ("Bernoulli", "Poisson", "Normal")}, **FAMILIES}
WIDE = {"Gamma": 20.0, "InverseGamma": 20.0, "Beta": 5.0}
"""Privacy loss where two sums of wide range are released: at 1 their noise leaves little but the prior."""


def grid_moments(likelihood: Likelihood, releaser: Releaser, release: Array) -> tuple[Array, Array]:
    """Posterior means and standard deviations of the operation's parameters, over a grid of prior probabilities."""
    log_density = releaser.log_density()
    count, d = {1: 4000, 2: 160}[likelihood.n_parameters], likelihood.n_parameters
    low, high = np.zeros(d), np.ones(d)
    for _ in range(3):
        axes = [a + (b - a) * (np.arange(count) + 0.5) / count for a, b in zip(low, high, strict=True)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        logp = log_density(release, likelihood.quantiles(points))
        weights = np.exp(logp - logp.max())
        weights /= weights.sum()
        held = points[weights > 1e-9 * weights.max()]
        margin = (high - low) / count
        low, high = np.maximum(held.min(axis=0) - margin, 0), np.minimum(held.max(axis=0) + margin, 1)
    found = likelihood.quantiles(points)
    mean = weights @ found
    return mean, np.sqrt(weights @ (found - mean) ** 2)


def chain(private: pm.Model) -> Array:
    """Draws of the operation's parameters, one row per scan."""
    step = dp.DataAugmentation(model=private)
    step.setup_chain(np.random.default_rng(2), TUNE, DRAWS)
    point, found = private.initial_point(), []
    for _ in range(TUNE + DRAWS):
        point, _ = step.step(point)
        found.append([item[0] for item in step.parameters(point)["y"]])
    return np.array(found[TUNE:])


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_noise_aware_posteriors_are_those_of_augmented_rows(name: str) -> None:
    """Means agree within 4 standard errors and sds within 10%, more where the chain does not know them so well."""
    likelihood, epsilon = KNOWN[name], WIDE.get(name, EPSILON)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    middle = np.array([[0.4, 0.6][: likelihood.n_parameters]])
    rows = likelihood.simulate(rng, np.repeat(likelihood.quantiles(middle), N_ROWS, axis=0)).astype(likelihood.dtype)
    with pm.Model() as model:
        likelihood.build(rows, None)
    bounds = {} if likelihood.bounds is None else {"y": likelihood.bounds}
    with dp.testing.insecure_randomness(1):
        account = dp.Ledger(epsilon=epsilon)
        private = dp.privatize(model, epsilon=epsilon, domain=dp.Domain(bounds=bounds), ledger=account)
    release = dp.Release.of(private).tables["y"]
    mean, sd = grid_moments(likelihood, Releaser(likelihood, N_ROWS, epsilon), release)
    draws = chain(private)
    for place in np.flatnonzero(sd > 1e-9):
        found = draws[None, :, place]
        ess, of_sd = float(az.ess(found)), float(az.ess(found, method="sd"))
        shift, ratio = (found.mean() - mean[place]) / sd[place], sd[place] / found.std()
        print(f"{name}, parameter {place}: shift {shift:+.3f} sds, ratio of sds {ratio:.3f}, {ess:.0f} effective draws")
        assert ess > 100
        assert abs(shift) < 4 / np.sqrt(ess)
        assert abs(np.log(ratio)) < np.log(1.1) + 4 / np.sqrt(2 * of_sd)
