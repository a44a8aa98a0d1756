"""What was released of one stretch of a walk, and what it says near a point: steps that are posterior means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pymc_dp.gradients.curvature import Levels
from pymc_dp.inspection.rows import Array

CARRIED, LEAST = 0.25, 0.05
"""Share of what one leg knows that the next takes over, and the share that is too small to be."""
NEAR = 0.3
"""Share of the precision of a gradient that is left of one that is held against others."""
FORGETTING = 0.8
"""Weight, at each step, of what was released before."""
STRAIGHT, BENDING = 0.1, 3.0
"""Relative error of a curvature, and of one at a distance of what a row says: scores are no straight lines."""
CHANGED = 2.0
"""Change of a curvature along a parameter from which on coordinates and limits no longer fit."""
APPROACH = 0.3
"""Share of the steps of the last leg that lead to where the likelihood is treated as quadratic, and do not count."""
HOLDING = 2.0
"""Rows that are taken to say that the truth is where the walk is, or starts."""
FARTHEST, BEYOND = 0.75, 2.0
"""Longest step, in root mean squares of what a row says or of the prior; standard deviations that noise explains."""
SHORTEST = 0.01
"""Least value of the longest step: from a smaller one it would take the rest of a stage to grow again."""
SPREADING = 50
"""Rounds of the search for the spread of levels."""


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

    def divided(self, scale: Array) -> Prior:
        """Return the prior of the parameters divided by `scale`."""
        return Prior(mean=self.mean / scale, precision=self.precision * np.outer(scale, scale))


@dataclass(frozen=True, kw_only=True, eq=False)
class Mean:
    """Weighted mean of some gradients: ``slope | η ~ N(curvature η, …)``, and the covariance of its noise."""

    slope: Array
    curvature: Array
    noise: Array

    @property
    def _weight(self) -> Array:
        """Return H W, with W = (H + noise)⁻¹."""
        return np.asarray(np.linalg.solve(self.curvature + self.noise, self.curvature).T)

    def added(self, prior: Prior, share: float = 1.0) -> Prior:
        """Return the posterior of a prior and a share of this information."""
        weight = share * self._weight
        precision = prior.precision + weight @ self.curvature
        precision = (precision + precision.T) / 2
        weighted = prior.weighted + weight @ self.slope
        return Prior(mean=np.linalg.solve(precision, weighted), precision=precision)


class Leg:
    """What was released in the same coordinates, within the same limits, and the legs before.

    Attributes
    ----------
    idle : (d, k) array
        Directions along which no row changes, orthonormal.
    carried : float
        Share of what the leg before knows that steers this one.
    fading : bool
        Whether that share becomes less until it is 0.
    """

    def __init__(
        self,
        *,
        prior: Prior,
        noise: Array,
        curvature: Array,
        before: Leg | None,
        n_rows: float,
        idle: Array | None = None,
    ) -> None:
        self.prior, self.noise, self.curvature, self.before = prior, noise, curvature, before
        self.idle = np.zeros((len(noise), 0)) if idle is None else idle
        self.n_rows, self.length = n_rows, 0.0
        self.carried, self.fading = CARRIED, False
        self.reach: float = FARTHEST if before is None else before.reach
        self.steps: list[tuple[float, Array, Array, Array]] = []

    def step(self, at: Array, share: float, gradient: Array, curvature: Array) -> Array:
        """Take a gradient in, and the curvature there; return the next point."""
        self._reach(at, share, gradient)
        self.steps.append((share, at, gradient, curvature))
        away = self._held_back(self.known(at, self.prior), at)
        squares = (
            float(away @ self.curvature @ away) / self.n_rows,
            float(away @ curvature @ away) / self.n_rows,
            float(away @ self.prior.precision @ away) / len(at),
        )
        length = math.sqrt(max(*squares, 0.0))
        self.length = min(length, self.reach)
        return np.asarray(at + away * (self.length / length if length else 1.0))

    def _held_back(self, known: Prior, at: Array) -> Array:
        """Return the way to the mean of what is known, as if `HOLDING` rows had said that it is where the walk is now.

        The first gradients say less than one row does: they are nearly all noise. A vague prior does not damp them, so
        that the walk would go as far as steps may be long, to where scores are far from straight.
        """
        held = known.precision + HOLDING * self.curvature / self.n_rows
        return np.asarray(np.linalg.solve(held, known.precision @ (known.mean - at)))

    def known(self, at: Array, prior: Prior, share: float = 1.0) -> Prior:
        """Return the posterior of a prior, a share of what was released here and what was before, near a point."""
        part = self.carried * share
        if self.before is not None and (part > LEAST or (self.fading and part > 0)):
            prior = self.before.known(at, prior, part)
        return self._recent(at).added(prior, share)

    def _reach(self, at: Array, share: float, gradient: Array) -> None:
        """Shorten the next step where the last went too far: if the slope against it is more than noise explains."""
        if not self.steps:
            return
        _, before, earlier, _ = self.steps[-1]
        away = at - before
        now, then = (
            float(away @ (slope + self.prior.precision @ (self.prior.mean - place)))
            for slope, place in ((gradient, at), (earlier, before))
        )
        if now < -BEYOND * math.sqrt(float(away @ self.noise @ away) / share):
            part = min(max(then / (then - now), 0.1), 0.5) if then > 0 else 0.5
            self.reach = max(self.length * part, SHORTEST)
        else:
            self.reach = min(FARTHEST, 2 * self.reach)

    def learned(self, at: Array, prior: Prior, levels: Levels) -> Prior:
        """Return a prior in which levels are as far apart as what was released says they are.

        Notes
        -----
        The mean and the spread of the levels of an array that make what was released likeliest, by expectation and
        maximisation, with all else as the posterior mean has it. A path prior of another spread leaves the path where
        scores are not linear: with too narrow a one, saturated levels count as better known than they are.
        """
        found = self._recent(at).added(prior)
        known = found.precision - prior.precision
        own = np.maximum(np.diag(known), 0.0)
        shift = found.weighted - prior.weighted - known @ found.mean + np.diag(known) * found.mean
        mean, covariance = found.mean, np.linalg.inv(prior.precision)
        spread = np.diag(covariance)
        for _ in range(SPREADING):
            middle = levels.pooled(mean)
            variance = 1 / (own + 1 / spread)
            mean = variance * (shift + middle / spread)
            spread = levels.pooled((mean - levels.pooled(mean)) ** 2 + variance)
        alone = levels.groups < 0
        precision = np.diag(1 / spread)
        precision[np.ix_(alone, alone)] = np.linalg.inv(covariance[np.ix_(alone, alone)])
        return Prior(mean=np.where(alone, prior.mean, levels.pooled(mean)), precision=precision)

    def changed(self, curvature: Array) -> bool:
        """Whether the curvature is another than that in whose coordinates scores are released."""
        ratio = np.diag(curvature) / np.diag(self.curvature)
        return bool(ratio.max() > CHANGED or ratio.min() < 1 / CHANGED)

    @property
    def _first(self) -> int:
        """Place of the first gradient that counts."""
        return round(APPROACH * len(self.steps))

    @cached_property
    def _relative_noise(self) -> float:
        """V / n², see `_weights`: of the whole leg, while weights are asked for at every step.

        Not of directions along which no row changes: they have next to no curvature.
        """
        ratio, idle = np.linalg.solve(self.curvature, self.noise), self.idle
        total = float(np.trace(ratio) - np.einsum("ik,ij,jk->", idle, ratio, idle, optimize=True))
        return total / (self.n_rows * (len(ratio) - idle.shape[1]))

    def _weights(self, at: Array) -> list[float]:
        """Return the precisions of gradients as those at a point, in units of one that is paid the whole stage's share.

        Notes
        -----
        In coordinates in which the curvature is n times the identity, noise has a variance of V / share, and at a
        distance δ, in what a row says, a slope that is taken for straight is off by about n δ (a + b δ).
        """
        size, noise = len(at), self._relative_noise
        found = list[float]()
        for share, place, _, curvature in self.steps:
            away = at - place
            square = max(float(away @ one @ away) for one in (self.curvature, curvature)) / self.n_rows
            off = square * (STRAIGHT + BENDING * math.sqrt(max(square, 0.0))) ** 2 / size
            found.append(share * noise / (noise + share * off) if noise else share)
        return found

    def _recent(self, at: Array) -> Mean:
        """Return what steers: the mean by precisions near a point, with what bending adds to the noise."""
        last = len(self.steps) - 1
        weights = [weight * FORGETTING ** (last - place) for place, weight in enumerate(self._weights(at))]
        mean = self._mean(weights)
        return replace(mean, noise=self.noise / sum(weights))

    def _counted(self, at: Array) -> list[float]:
        """Return the weights of gradients that count, and 0 for others."""
        return [weight * (place >= self._first) for place, weight in enumerate(self._weights(at))]

    def counted(self, at: Array) -> Mean:
        """Return the mean of the gradients that count, of a walk that ended at a point."""
        return self._mean(self._counted(at))

    def path(self, at: Array) -> tuple[tuple[float, Array, Array], ...]:
        """Weights, positions and gradients of those that count, of a walk that ended at a point."""
        weights = self._counted(at)
        parts = zip(weights, self.steps, strict=True)
        return tuple((own / sum(weights), place, gradient) for own, (_, place, gradient, _) in parts if own)

    def _mean(self, weights: list[float]) -> Mean:
        total = sum(weights)
        slope, mean = np.zeros(len(self.noise)), np.zeros_like(self.noise)
        spread = 0.0
        for weight, (share, at, gradient, curvature) in zip(weights, self.steps, strict=True):
            slope += weight / total * (curvature @ at + gradient)
            mean += weight / total * curvature
            spread += (weight / total) ** 2 / share
        return Mean(slope=slope, curvature=mean, noise=self.noise * spread)

    def agreement(self, at: Array) -> tuple[float, int]:
        """Return χ² of gradients about one quadratic, per degree of freedom, and these; of released numbers alone.

        Of the gradients that count, of a walk that ended at a point: the nearer half, and those from so near that noise
        is most of what is wrong with them if scores bend as `BENDING` says.
        """
        weights = self._counted(at)
        left = np.array([weight / share for weight, (share, *_) in zip(weights, self.steps, strict=True)])
        near = left >= min(NEAR, float(np.median(left[self._first :])))
        mean = self._mean([weight * one for weight, one in zip(weights, near, strict=True)])
        degrees = (int(near.sum()) - 1) * len(self.noise)
        if not self.noise.any() or degrees < 1:
            return float("nan"), degrees
        parts = 0.0
        for own, (share, place, gradient, _) in zip(near, self.steps, strict=True):
            off = gradient + mean.curvature @ place - mean.slope
            parts += own * share * float(off @ np.linalg.solve(self.noise, off))
        return float(parts) / degrees, degrees


__all__ = ["Leg", "Mean", "Prior"]
