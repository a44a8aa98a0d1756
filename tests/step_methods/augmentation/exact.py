"""Chains of augmented rows, and posteriors of tiny tables by brute force."""

import math

import arviz as az
import numpy as np
import pytensor
from scipy import stats

from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.step_methods.augmentation import DataAugmentation


def bound(private, **settings):
    """A step whose functions NumPy evaluates."""
    with pytensor.config.change_flags(**NUMPY):
        return DataAugmentation(model=private, **settings)


def run(step, private, draws, *, tune=60, seed=1):
    """Draws of every value variable, by name; what is no longer than the widths take to settle is left out."""
    with pytensor.config.change_flags(**NUMPY):
        point = {name: np.asarray(value) for name, value in private.initial_point().items()}
    step.setup_chain(np.random.default_rng(seed), tune, draws)
    found = []
    for count in range(tune + draws):
        point, _ = step.step(point)
        if count >= tune:
            found.append(point)
    return {name: np.array([item[name] for item in found]) for name in point}


def agrees(chain, grid, log_density, *, least=100):
    """Mixes, has the mean of a density on a grid, and its distribution (Kolmogorov, Smirnov, on thinned draws)."""
    mass = np.exp(log_density - np.max(log_density))
    mass /= mass.sum()
    ess = float(az.ess(chain[None]))
    assert ess > least, ess
    assert abs(chain.mean() - grid @ mass) < 5 * float(az.mcse(chain[None])), (chain.mean(), grid @ mass)
    thinned = chain[:: math.ceil(len(chain) / ess)]
    below = np.cumsum(mass) - mass / 2
    assert stats.kstest(thinned, lambda x: np.interp(x, grid, below)).pvalue > 0.001


def sum_of(masses, n):
    """Probabilities of sums of n independent rows, each on 0..k with probabilities along the last axis."""
    found = np.ones((*masses.shape[:-1], 1))
    for _ in range(n):
        longer = np.zeros((*masses.shape[:-1], found.shape[-1] + masses.shape[-1] - 1))
        for k in range(masses.shape[-1]):
            longer[..., k : k + found.shape[-1]] += found * masses[..., [k]]
        found = longer
    return found
