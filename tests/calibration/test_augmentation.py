"""Noise-aware densities against rows that are imagined, whose posterior is exact, for every likelihood of one number."""

from __future__ import annotations

import zlib

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode

import pymc_dp as dp
from tests.calibration.posteriors import LIKELIHOODS, Array, Likelihood, Releaser, simulate
from tests.calibration.test_families import FAMILIES

N_ROWS, EPSILON = 200, 1.0
DRAWS, TUNE, SCANS = 3000, 400, 2
KNOWN = {**{name: LIKELIHOODS[name] for name in ("Bernoulli", "Poisson", "Normal")}, **FAMILIES}


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
