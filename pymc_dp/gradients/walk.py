"""Where gradients are released, and what all of them say together: steps that are posterior means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pymc_dp.gradients.curvature import shrunk
from pymc_dp.gradients.schedule import Stage
from pymc_dp.inspection.rows import Array

MOST_SCALED = 100.0
"""How far rows of made-up tables may raise or lower a curvature on the way."""
CARRIED = 0.25
"""Share of the information of a stage that the path of the next begins with."""


class Releases(Protocol):
    """Noised sums over the rows, each released once; everything that depends on a row comes through here."""

    def curvature(self, stage: int, at: Array) -> tuple[Array, float]:
        """Return the noised sum of curvatures, (d, d), and the standard deviation off its diagonal."""

    def gradient(self, stage: int, step: int, at: Array) -> Array:
        """Return the noised sum of scores, (d,)."""

    def variance(self, stage: int) -> float:
        """Return V: a gradient that is paid a share a of its stage's has a noise of variance V / a."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Mean and precision that steer the path; the posterior takes the model's own prior instead.

    Attributes
    ----------
    mean : (d,) array
    precision : (d, d) array
    """

    mean: Array
    precision: Array

    @property
    def weighted(self) -> Array:
        """Precision times mean."""
        return np.asarray(self.precision @ self.mean)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a walk says: ``slope | η ~ N(curvature η, variance of the scores + noise I)``.

    Attributes
    ----------
    slope : (d,) array
        Mean of G + H η over the last stage, weighted by what was paid.
    curvature : (d, d) array
        Mean of H over the last stage.
    noise : float
        Variance V of the privacy noise on `slope`.
    end : (d,) array
        Where the walk ended.
    unresolved : int
        Directions of the last curvature that were lost in the noise.
    chi_squared : float
        Of the last stage's gradients about one quadratic, over its degrees of freedom: 1 where that is what they show.
    """

    slope: Array
    curvature: Array
    noise: float
    end: Array
    unresolved: int
    chi_squared: float


def walk(
    stages: tuple[Stage, ...], prior: Prior, releases: Releases, bend: Callable[[Array], Array] | None = None
) -> Found:
    """Release all that is paid for, where each next point is the posterior mean of what was released before.

    Parameters
    ----------
    stages : tuple of Stage
    prior : Prior
        In the coordinates of the releases.
    releases : Releases
    bend : callable, optional
        Diagonal of the curvature at a point, (d,), of public made-up rows: it carries a released matrix to other points
        than that of its release. None: it stays as it is.

    Notes
    -----
    Step t of a stage adds a_t (H_t η_t + G_t) to z and a_t H_t to M, A the sum of the weights a_t so far. With H = M/A,
    W = (H + V/A I)⁻¹ and P the prior's precision, η_{t+1} = (P + H W H)⁻¹ (P m + H W z/A). That is damped by the noise
    and needs no step size. Where a stage ends, a quarter of its information goes into the prior of the next one's path:
    without it each walk falls back to the prior at its first, noisiest step.

    **Guarantee.** Post-processing of `releases`: where the next one is made may depend on those before it (adaptive
    composition of Gaussian noise whose scales are fixed in advance).
    """
    at, carried = prior.mean, prior
    for stage, plan in enumerate(stages):
        noised, deviation = releases.curvature(stage, at)
        first = shrunk(noised, deviation)
        here = _Leg(prior=carried, variance=releases.variance(stage), size=len(at))
        scale = _carrier(bend, at)
        for step, share in enumerate(plan.steps):
            factor = scale(at)
            curvature = first.matrix * np.outer(factor, factor)
            at = here.step(at, share, releases.gradient(stage, step, at), curvature)
        carried = here.carried(prior)
    return Found(
        slope=here.slope,
        curvature=here.curvature,
        noise=here.variance,
        end=at,
        unresolved=first.unresolved,
        chi_squared=here.chi_squared,
    )


def _carrier(bend: Callable[[Array], Array] | None, begun: Array) -> Callable[[Array], Array]:
    """Return the square roots of how much each diagonal entry changes from where a stage begins."""
    if bend is None:
        return np.ones_like
    first = bend(begun)

    def scale(at: Array) -> Array:
        with np.errstate(all="ignore"):
            ratio = np.sqrt(bend(at) / first)
        return np.clip(np.nan_to_num(ratio, nan=1.0), 1 / MOST_SCALED, MOST_SCALED)

    return scale


class _Leg:
    """What one stage has released so far."""

    def __init__(self, *, prior: Prior, variance: float, size: int) -> None:
        self.prior, self.variance = prior, variance
        self.paid, self._slope, self._curvature = 0.0, np.zeros(size), np.zeros((size, size))
        self._seen: list[tuple[float, Array, Array]] = []

    @property
    def slope(self) -> Array:
        return self._slope / self.paid

    @property
    def curvature(self) -> Array:
        return self._curvature / self.paid

    def step(self, at: Array, share: float, gradient: Array, curvature: Array) -> Array:
        """Take a gradient in, and return the posterior mean."""
        self._slope = self._slope + share * (curvature @ at + gradient)
        self._curvature = self._curvature + share * curvature
        self.paid += share
        self._seen.append((share, at, gradient))
        weight = self._weight(self.variance / self.paid)
        precision = self.prior.precision + weight @ self.curvature
        return np.linalg.solve(precision, self.prior.weighted + weight @ self.slope)

    def _weight(self, noise: float) -> Array:
        """Return H W, which commute: W = (H + noise I)⁻¹."""
        curvature = self.curvature
        return np.linalg.solve(curvature + noise * np.eye(len(curvature)), curvature)

    def carried(self, prior: Prior) -> Prior:
        """Return a prior with a share of what this stage has shown."""
        weight = self._weight(self.variance)
        precision = prior.precision + CARRIED * weight @ self.curvature
        precision = (precision + precision.T) / 2
        weighted = prior.weighted + CARRIED * weight @ self.slope
        return Prior(mean=np.linalg.solve(precision, weighted), precision=precision)

    @property
    def chi_squared(self) -> float:
        """Of the gradients about one quadratic, per degree of freedom; of released numbers alone."""
        curvature, slope = self.curvature, self.slope
        parts = [share * np.sum((gradient + curvature @ at - slope) ** 2) for share, at, gradient in self._seen]
        freedom = (len(parts) - 1) * len(slope)
        return float(sum(parts) / self.variance / freedom) if self.variance else float("nan")


__all__ = ["Found", "Prior", "Releases", "walk"]
