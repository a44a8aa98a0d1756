"""Public points that fill the part of the parameter space where tempered posteriors may lie, with their densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pymc import Model
from scipy import special, stats
from scipy.stats import qmc

from pymc_dp.from_draws.public_rows import normalised
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.prior import in_value_space

FREEDOM = 5
"""Degrees of freedom of the t distribution that points are drawn from."""
WIDER = 1.2
"""Standard deviations of the last proposal over those of what it is to cover."""
ROUNDS = 2
PRIOR_DRAWS = 400
FLAT = 1e-6
"""Precision that stands for that of a prior without draws."""
CENTRAL = (16, 84)
"""Percentiles that are two standard deviations of a normal apart."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """A multivariate t distribution on the scale of value variables.

    Attributes
    ----------
    mean : (d,) array
    covariance : (d, d) array
        Scale matrix.
    """

    mean: Array
    covariance: Array

    @classmethod
    def between(cls, centre: Array, information: Array, prior: Proposal) -> Proposal:
        """Return the normal approximation of a posterior: of a likelihood about `centre`, and a prior."""
        weight = np.linalg.inv(prior.covariance)
        covariance = np.linalg.inv(information + weight)
        return cls(mean=covariance @ (information @ centre + weight @ prior.mean), covariance=covariance)

    def points(self, count: int, seed: int) -> tuple[Array, Array]:
        """Return `count` points, a power of 2, that fill the distribution evenly, and log densities there."""
        size = len(self.mean)
        even = np.clip(qmc.Sobol(size + 1, seed=seed).random(count), 1e-9, 1 - 1e-9)
        root = np.linalg.cholesky(self.covariance)
        stretched = special.ndtri(even[:, :size]) / np.sqrt(special.chdtri(FREEDOM, even[:, size:]) / FREEDOM)
        points = self.mean + stretched @ root.T
        return points, stats.multivariate_t.logpdf(points, self.mean, self.covariance, df=FREEDOM).reshape(count)

    def fitted(self, points: Array, weights: Array) -> Proposal:
        """Return one with the mean and covariance of weighted points; what few points say is mixed with its own."""
        mean = weights @ points
        spread = (points - mean).T @ ((points - mean) * weights[:, None])
        effective = float(1 / (weights @ weights))
        share = min(1.0, effective / (10 * len(mean)))
        return Proposal(mean=mean, covariance=share * spread + (1 - share) * self.covariance)

    def adapted(self, log_target: Callable[[Array], Array], count: int, seed: int) -> Proposal:
        """Return the proposal that covers a distribution, after some rounds of importance sampling."""
        found = self
        for turn in range(ROUNDS):
            points, density = found.points(count, seed + turn)
            found = found.fitted(points, normalised(log_target(points) - density))
        return Proposal(mean=found.mean, covariance=WIDER**2 * found.covariance)


def prior_of(prior_model: Model, centre: Array, rng: np.random.Generator) -> Proposal:
    """Return where the prior lies, element by element; nearly flat about `centre` where it cannot be drawn from."""
    try:
        drawn = plain_draw([in_value_space(prior_model, rv) for rv in prior_model.free_RVs], rng, PRIOR_DRAWS)
    except NotImplementedError:
        return Proposal(mean=centre, covariance=np.eye(len(centre)) / FLAT)
    flat = np.concatenate([np.reshape(part, (PRIOR_DRAWS, -1)) for part in drawn], axis=1)
    low, high = np.nanpercentile(flat, CENTRAL, axis=0)
    return Proposal(mean=(low + high) / 2, covariance=np.diag(np.maximum((high - low) / 2, 1e-6) ** 2))


__all__ = ["Proposal", "prior_of"]
