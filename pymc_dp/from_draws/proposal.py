"""Public points that fill the part of the parameter space where tempered posteriors may lie, with their densities.

Rows that stand for those of the table: simulated at parameters near released draws, and weighted to any others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pymc import Model
from scipy import special, stats
from scipy.stats import qmc

from pymc_dp.from_draws.given import Coordinates
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.prior import in_value_space
from pymc_dp.step_methods.ops.row_density import RowDensity

STEP = 1e-4
"""Of differences that stand for derivatives, on the scale of value variables."""
RIDGE = 1e-10
"""Added to an information matrix, as a share of its largest entry: of parameters that no row depends on."""
LEAST = 0.1
"""Of what calibration multiplies a weight by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRows:
    """Simulated rows with weights that make of them a table drawn at any parameters.

    Attributes
    ----------
    drawn, held : list of (n_rows, ...) arrays
        One for each column: as drawn, which is what their density is about, and as a mechanism holds them, clamped.
    base : (n_rows,) array
        Log weights, to which a row's log-likelihood at some parameters is added.
    scores : (n_rows, d) array
        Derivatives of each row's log-likelihood at the centre, by value variables.
    """

    drawn: list[Array]
    held: list[Array]
    base: Array
    scores: Array

    @classmethod
    def of(
        cls,
        density: RowDensity,
        coordinates: Coordinates,
        rows: tuple[Sequence[Array], Sequence[Array]],
        sources: Array,
        centre: Array,
    ) -> Self:
        """Weight rows that were drawn at several parameters, as many at each.

        Parameters
        ----------
        density, coordinates
        rows : (arrays, arrays)
            As drawn and as held.
        sources : (n_sources, n_scalars) array
            Parameters that they were drawn at.
        centre : (d,) array
            Where their mean score is made 0, as it is in truth, in terms of value variables.
        """
        drawn, held, counts = _distinct(*rows)
        mixed = density.each(sources, drawn)[1]
        base = np.log(counts) - np.logaddexp.reduce(mixed, axis=0)
        scores = _scores(density, coordinates, drawn, centre)
        own = density.each(coordinates.own(centre[None])[0], drawn)[1][0]
        weights = normalised(own + base)
        spread = (scores * weights[:, None]).T @ scores
        tilt = np.linalg.lstsq(spread, scores.T @ weights, rcond=1e-12)[0]
        base = base + np.log(np.maximum(1 - scores @ tilt, LEAST))
        return cls(drawn=drawn, held=held, base=base, scores=scores)

    def weights(self, density: RowDensity, flat: Array) -> Array:
        """Return the shares of the rows in tables drawn at (n, n_scalars) parameters: (n, n_rows) array."""
        return normalised(density.each(flat, self.drawn)[1] + self.base)

    def factor(self, weights: Array) -> tuple[Array, Array]:
        """Return mean scores, (n, d), and lower Cholesky factors of the information of a row, (n, d, d)."""
        means = weights @ self.scores
        second = np.einsum("nm,mi,mj->nij", weights, self.scores, self.scores, optimize=True)
        information = second - means[:, :, None] * means[:, None, :]
        ridge = RIDGE * np.maximum(np.abs(information).max(axis=(1, 2)), 1e-300)
        return means, np.linalg.cholesky(information + ridge[:, None, None] * np.eye(means.shape[1]))


def normalised(logs: Array) -> Array:
    """Return weights that add up to 1 along the last axis; NaN counts as nothing."""
    logs = np.where(np.isnan(logs), -np.inf, logs)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _distinct(drawn: Sequence[Array], held: Sequence[Array]) -> tuple[list[Array], list[Array], Array]:
    """Keep one of rows that are equal, with their number."""
    flat = np.concatenate([np.reshape(part, (len(part), -1)).astype(np.float64) for part in drawn], axis=1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    kept = [[np.ascontiguousarray(part[first]) for part in parts] for parts in (drawn, held)]
    return kept[0], kept[1], counts.astype(np.float64)


def _scores(density: RowDensity, coordinates: Coordinates, rows: Sequence[Array], centre: Array) -> Array:
    moves = STEP * np.eye(len(centre))
    ends = [density.each(coordinates.own(centre + sign * moves)[0], rows)[1] for sign in (1, -1)]
    return np.nan_to_num((ends[0] - ends[1]).T / (2 * STEP))


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


__all__ = ["RIDGE", "Proposal", "PublicRows", "normalised", "prior_of"]
