"""What is made of the weights: indices, weights with noise, the log evidence with noise. Everything here is a release.

Along an increasing path from 0 to β a row x adds ``sum_j (β_j - β_{j-1}) l(x, θ_ij)`` to the log weight of particle i.
The steps add up to β and each ``l(x, θ) - l(x', θ)`` lies in an interval of length R whatever θ is, so that over
particles the log weights of two neighbours differ by an amount of range β R; and each of them by β Δl at most.
"""

from __future__ import annotations

import numpy as np

from pymc_dp.accounting import DiscreteLaplaceEvent
from pymc_dp.draws.finite_choice import choose
from pymc_dp.inspection.rows import Array
from pymc_dp.release.noise import LAPLACE
from pymc_dp.step_methods.annealing.price import WEIGHT_BITS

MOST = 2**62
"""Units of a log evidence, that whole numbers of 64 bits hold it."""


def log_weights(likelihoods: Array, path: Array) -> Array:
    """Return the log weight of every particle. **Private**.

    Parameters
    ----------
    likelihoods : (n_particles, n_temperatures) array
        Log-likelihood of each particle before the transition at each temperature.
    path : (n_temperatures,) array
        Inverse temperatures that increase, without the prior's 0.

    References
    ----------
    Neal (2001), Annealed importance sampling, equation 9, doi 10.1023/A:1008923215028.
    """
    return likelihoods @ np.diff(path, prepend=0.0)


def chosen(rng: np.random.Generator, logs: Array, count: int) -> Array:
    """Draw `count` particles by their weights, one exponential mechanism each."""
    return choose(rng, np.broadcast_to(logs, (count, len(logs))))


def noised_weights(logs: Array, noise: DiscreteLaplaceEvent) -> Array:
    """Return normalised weights with discrete Laplace noise, projected to the simplex, which is post-processing."""
    weights = np.exp(logs - logs.max())
    units = np.floor(np.minimum(weights / weights.sum(), 1.0) * 2.0**WEIGHT_BITS).astype(np.int64)
    return on_the_simplex(LAPLACE.add(units, noise.scale) / 2.0**WEIGHT_BITS)


def log_evidence(logs: Array, constant: float, noise: DiscreteLaplaceEvent, unit: float) -> float:
    """Return the log of the mean weight with discrete Laplace noise, in whole units.

    The log of a mean of exponentials moves by no more than the largest of its terms does.

    Parameters
    ----------
    logs : (n_particles,) array
    constant : float
        What all log weights have in common.
    noise : DiscreteLaplaceEvent
    unit : float
        Power of 2.
    """
    top = logs.max()
    value = top + np.log(np.exp(logs - top).mean()) + constant
    units = np.array([int(np.clip(np.rint(np.nan_to_num(value) / unit), -MOST, MOST))], dtype=np.int64)
    return float(LAPLACE.add(units, noise.scale)[0]) * unit


def on_the_simplex(values: Array) -> Array:
    """Return the nearest point (Euclidean) with entries >= 0 that add up to 1.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra (2008), figure 1, doi 10.1145/1390156.1390191.

    Examples
    --------
    >>> on_the_simplex(np.array([0.75, 0.75, -0.5])).tolist()
    [0.5, 0.5, 0.0]
    """
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(ordered > over)[-1])
    return np.maximum(values - over[kept], 0.0)


__all__ = ["chosen", "log_evidence", "log_weights", "noised_weights", "on_the_simplex"]
