"""Rows drawn from each likelihood by NumPy, and the functions of an unclamped row that its log-likelihood adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dp.families.features import TRANSFORMS, BoundedFeatures, SumStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array

MOST_RATE = 1e18
"""Beyond, where no posterior is, NumPy draws no counts."""
Draw = Callable[..., Any]
"""From a generator and parameters of every row, as PyTensor's random operation has them, to one value per row."""


def _bernoulli(rng: np.random.Generator, p: Array) -> Array:
    return (rng.random(len(p)) < p).astype(np.float64)


def categorical(rng: np.random.Generator, p: Array) -> Array:
    """Draw one level per row of (n, n_levels) probabilities."""
    below = np.cumsum(p, axis=-1)
    return (rng.random((len(p), 1)) * below[:, -1:] >= below[:, :-1]).sum(axis=-1).astype(np.float64)


def _poisson(rng: np.random.Generator, rate: Array) -> Array:
    return rng.poisson(np.minimum(rate, MOST_RATE))


DRAWS: dict[str, Draw] = {
    "bernoulli": _bernoulli,
    "categorical": categorical,
    "binomial": lambda rng, trials, p: rng.binomial(np.rint(trials).astype(np.int64), p),
    "poisson": _poisson,
    "geometric": lambda rng, p: rng.geometric(p),
    "negative_binomial": lambda rng, alpha, p: _poisson(rng, rng.gamma(alpha) * (1 - p) / p),
    "normal": lambda rng, mean, sd: rng.normal(mean, sd),
    "lognormal": lambda rng, mean, sd: rng.lognormal(mean, sd),
    "halfnormal": lambda rng, location, sd: location + np.abs(rng.normal(0.0, sd)),
    "laplace": lambda rng, location, scale: rng.laplace(location, scale),
    "exponential": lambda rng, scale: rng.exponential(scale),
    "gamma": lambda rng, shape, scale: rng.gamma(shape, scale),
    "invgamma": lambda rng, shape, scale: scale / rng.gamma(shape),
    "weibull": lambda rng, shape, scale: scale * rng.weibull(shape),
    "beta": lambda rng, alpha, beta: rng.beta(alpha, beta),
    "vonmises": lambda rng, mean, kappa: rng.vonmises(mean, kappa),
}
"""By the name of the random operation. Parameters are invalid nowhere that a sampler can be."""


def unclamped(statistic: SumStatistic, values: Array) -> Array:
    """Return what an unclamped row adds to the sufficient sums: (n_rows, n_sums), in units of the data."""
    if isinstance(statistic, BoundedMoments):
        return (values - statistic.centre)[:, None] ** np.array(statistic.powers)
    assert isinstance(statistic, BoundedFeatures)
    with np.errstate(all="ignore"):  # what is not finite is left out by the caller
        columns = [TRANSFORMS[item.transform].of_array(values, item.argument) for item in statistic.features]
    return np.stack(columns, axis=-1)


__all__ = ["DRAWS", "categorical", "unclamped"]
