"""The prior that the path of noised gradients begins with: a normal one, of draws from that of the model."""

from __future__ import annotations

import numpy as np

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.simulated import parameter_draws
from pymc_dp.gradients.walk import Prior

SEED = 20_241_119
"""Of everything that is made up; public."""
PRIOR_DRAWS = 1000


def path_prior(interface: Interface) -> Prior:
    """Return mean and precision of draws, a little towards independence: they are fewer than their products."""
    draws = parameter_draws(interface, PRIOR_DRAWS, np.random.default_rng(SEED))
    with np.errstate(all="ignore"):
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    own = np.diag(np.diag(covariance))
    weight = len(draws) / (len(draws) + draws.shape[1])
    precision = np.linalg.inv(weight * covariance + (1 - weight) * own)
    if not np.isfinite(precision).all():
        what = "draws of its priors are so large or small that their variances are no floats"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give priors that say more.")])
    return Prior(mean=draws.mean(axis=0), precision=precision)


__all__ = ["SEED", "path_prior"]
