"""Theorems about the privacy of Bayesian inference, as functions: what they say about given numbers, and when nothing.

Every function returns a `Statement`: a value with its unit, whether it says anything (`vacuous`, and why), and a
`Privacy` in `proof` where it is a proof of (ε, δ). Only that has numbers that may enter a budget. Lipschitz constants
of common likelihoods are in `families`.
"""

from pymc_dp.theorems import families
from pymc_dp.theorems.distinguishing import (
    distinguishing_distance,
    fourier_updates_error,
    laplace_updates_divergence,
    query_loss,
    restricted_prior_loss,
    stochastic_distinguishing_distance,
)
from pymc_dp.theorems.families import Smoothness
from pymc_dp.theorems.lipschitz import (
    StochasticLipschitz,
    approximate_sampling,
    posterior_divergence,
    posterior_privacy,
    random_privacy,
    stochastic_divergence,
    stochastic_total_variation,
)
from pymc_dp.theorems.statement import Privacy, Statement

__all__ = [
    "Privacy",
    "Smoothness",
    "Statement",
    "StochasticLipschitz",
    "approximate_sampling",
    "distinguishing_distance",
    "families",
    "fourier_updates_error",
    "laplace_updates_divergence",
    "posterior_divergence",
    "posterior_privacy",
    "query_loss",
    "random_privacy",
    "restricted_prior_loss",
    "stochastic_distinguishing_distance",
    "stochastic_divergence",
    "stochastic_total_variation",
]
