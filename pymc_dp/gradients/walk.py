"""Where gradients are released, and what all of them say together: steps that are posterior means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from scipy.special import chdtri

from pymc_dp.gradients.carried import carried, raised
from pymc_dp.gradients.curvature import Levels, Noised, estimated
from pymc_dp.gradients.schedule import Limits, Stage
from pymc_dp.inspection.rows import Array

CARRIED = 0.25
"""Share of the information of a stage that the path of the next begins with, until it knows more itself."""
FORGETTING = 0.8
"""Weight, at each step of the path, of what was released before."""
ALARM = 0.01
"""How often χ² is above its limit by chance, where the gradients are those of one quadratic."""
APPROACH = 0.3
"""Share of the steps of the last stage that lead to where the likelihood is treated as quadratic, and do not count."""
FARTHEST, BEYOND = 1.0, 2.0
NEGLIGIBLE, SMALL, LARGEST = 0.03, 0.15, 8.0
"""Noise of the last gradients over the variance of scores, and edge of that of a curvature over this, up to which
limits are raised, and the most that C is. At small ε they stay as they are.
"""
FARTHEST, BEYOND = 1.0, 2.0
"""Longest step, in root mean squares of what a row says or of the prior; standard deviations that noise explains."""
SPREADING = 50
"""Rounds of the search for the spread of levels."""


class Releases(Protocol):
    """Noised sums over the rows, each released once; everything that depends on a row comes through here."""

    def curvature(self, stage: int, at: Array, limits: Limits) -> tuple[Noised, float]:
        """Return the noised sum of curvatures, or sums of it, and the standard deviation off its diagonal."""

    def gradient(self, stage: int, step: int, at: Array, limits: Limits) -> Array:
        """Return the noised sum of scores, (d,)."""

    def deviation(self, stage: int, limits: Limits) -> float:
        """Return the standard deviation of the noise off the diagonal of a curvature."""

    def variance(self, stage: int, limits: Limits) -> float:
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

    def divided(self, scale: Array) -> Prior:
        """Return the prior of the parameters divided by `scale`."""
        return Prior(mean=self.mean / scale, precision=self.precision * np.outer(scale, scale))


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a walk says: ``slope | η ~ N(curvature η, variance of the scores + noise)``.

    Attributes
    ----------
    slope : (d,) array
        Mean of G + H η over the last stage, weighted by what was paid.
    curvature : (d, d) array
        H, released where the walk ended.
    noise : (d, d) array
        Covariance of the privacy noise on `slope`.
    end : (d,) array
        Where the walk ended.
    limits : Limits
        Coordinates and limits of the last gradients.
    unresolved : int
        Directions of the last curvature that were lost in the noise.
    chi_squared : float
        Of the last stage's gradients about one quadratic, over its degrees of freedom: 1 where that is what they show.
    degrees : int
        Of freedom.
    path : tuple of (float, (d,) array, (d,) array)
        Of each gradient that counts: its weight in `slope`, where it was taken, and what was released.
    rows : float
        How many rows there are, or may be; where they are weighed, the sum of the weights.
    scores : (d, d) array or None
        Covariance of the sum of scores, as they are where the walk ended, where it was released: rows are weighed.
    """

    slope: Array
    curvature: Array
    noise: Array
    end: Array
    limits: Limits
    unresolved: int
    chi_squared: float
    degrees: int
    path: tuple[tuple[float, Array, Array], ...]
    rows: float
    scores: Array | None = None

    @property
    def chi_squared_limit(self) -> float:
        """What `chi_squared` exceeds in one of a hundred walks whose gradients are those of one quadratic.

        The variances of the noises are known, so that it is chi-squared distributed over its degrees of freedom. That
        the curvature is noised too adds little to it where the walk has come to its end.
        """
        return float(chdtri(self.degrees, ALARM)) / self.degrees

    @property
    def too_curved(self) -> bool:
        """Whether released gradients are farther from one quadratic than noise explains."""
        return self.chi_squared > self.chi_squared_limit


def walk(
    stages: tuple[Stage, ...],
    prior: Prior,
    releases: Releases,
    *,
    limits: Limits,
    n_rows: float,
    start: Array | None = None,
    bend: Callable[[Array], Array] | None = None,
    first: int = 0,
) -> Found:
    """Release all that is paid for, where each next point is the posterior mean of what was released before.

    Parameters
    ----------
    stages : tuple of Stage
        The last one has no steps: its curvature is released where the walk ended.
    prior : Prior
        In the coordinates of the walk, η / D.
    releases : Releases
    limits : Limits
        Of the first curvature.
    n_rows : float
        How many rows there are, or may be; where they are weighed, the sum of the weights.
    start : (d,) array, optional
        Default: the mean of the prior.
    bend : callable, optional
        Curvature at a point, (d, d), or its diagonal, of public made-up rows: it carries a released matrix to other
        points than that of its release (`carried`). None: it stays as it is.
    first : int
        Number of the first stage, where the releases count others before it.

    Notes
    -----
    Each stage begins with a curvature H, which says in what coordinates the gradients of the stage are released and how
    large a row may be in them (`Limits.whitened`). Step t adds a_t (H_t η_t + G_t) to z and a_t H_t to M, which forget
    a fifth of what was there, with N the covariance of the noise on z / A, A the sum of the weights. With H = M/A, W =
    (H + N)⁻¹ and P the prior's precision, η_{t+1} = (P + H W H)⁻¹ (P m + H W z/A). That is damped by the noise and
    needs no step size. Where a stage ends, a quarter of its information goes into the prior of the next one's path:
    without it each walk falls back to the prior at its first, noisiest step. It fades as the stage comes to know more:
    what was linear elsewhere would hold the walk back.

    No step is longer than what one row says, or the prior, is wide, for scores are not linear farther out. Where the
    slope turns by more than noise explains, the last step was too long, and the next one ends between both: with a
    curvature that is too small, walks went to and fro until their end.

    A curvature is released in coordinates, and within limits, that fit where the walk has come to: where σ had fallen
    by a tenth, rows were cut to a fraction by limits of where it began, and the curvature with them.

    With much budget limits are raised in the last stage until noise is a small part of what rows vary by: clipped
    scores stay centred, but are not those of the posterior without privacy, which at ε = 100 showed.

    A last curvature is released where the walk has ended; the likelihood is treated as quadratic there. Where
    curvatures fall towards the truth, one released before the last steps is too large: of heavy-tailed columns
    intervals covered .84 where they cover .91.

    **Guarantee.** Post-processing of `releases`: where the next one is made, and in what coordinates, may depend on
    those before it (adaptive composition of Gaussian noise whose scales are fixed in advance).
    """
    at = prior.mean if start is None else start
    here, later = None, limits
    for stage, plan in enumerate(stages, first):
        if plan.steps:
            limits = later if stage + 2 - first < len(stages) else _relaxed(later, stage, releases, n_rows)
        noised, deviation = releases.curvature(stage, at, limits)
        found = estimated(noised, deviation, limits.levels)
        curvature = limits.curvature(found.matrix)
        if not plan.steps:
            break
        ahead = partial(limits.whitened, deviation=deviation, n_rows=n_rows)
        limits = ahead(curvature).relaxed(*limits.relaxing)
        noise = limits.curvature(np.eye(len(at)) * releases.variance(stage, limits))
        bent = carried(curvature, at, bend)
        here = _Leg(prior=prior, noise=noise, curvature=curvature, before=here, n_rows=n_rows)
        for step, share in enumerate(plan.steps):
            gradient = limits.score(releases.gradient(stage, step, at, limits))
            at = here.step(at, share, gradient, bent(at))
        later = ahead(raised(curvature, bent(at)))
        if limits.levels is not None:
            prior = here.learned(prior, limits.levels)
    assert here is not None
    mean = here.counted()
    return Found(
        slope=mean.slope + (curvature - mean.curvature) @ at,
        curvature=curvature,
        noise=mean.noise,
        end=at,
        limits=limits,
        unresolved=found.unresolved,
        chi_squared=here.chi_squared(mean),
        degrees=here.degrees,
        path=here.path,
        rows=n_rows,
    )


def _relaxed(limits: Limits, stage: int, releases: Releases, n_rows: float) -> Limits:
    """Return limits as large as noise allows, by what is public: the scales of noises and the number of rows."""
    noise = releases.variance(stage, limits) / n_rows
    edge = 2 * np.sqrt(len(limits.scale)) * releases.deviation(stage, limits) / n_rows
    norm = min(max(1.0, math.sqrt(NEGLIGIBLE / noise)), LARGEST)
    return limits.relaxed(norm, max(1.0, min(norm**2, float(SMALL / edge))))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Mean:
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


class _Leg:
    """What one stage has released so far."""

    def __init__(self, *, prior: Prior, noise: Array, curvature: Array, before: _Leg | None, n_rows: float) -> None:
        self.prior, self.noise, self.curvature = prior, noise, curvature
        self.before = None if before is None else before._recent()
        self.n_rows, self.length = n_rows, 0.0
        self.reach: float = FARTHEST if before is None else before.reach
        self.steps: list[tuple[float, Array, Array, Array]] = []

    def step(self, at: Array, share: float, gradient: Array, curvature: Array) -> Array:
        """Take a gradient in, and the curvature there; return the next point."""
        self._reach(at, share, gradient)
        self.steps.append((share, at, gradient, curvature))
        prior, recent = self.prior, self._recent()
        if self.before is not None:
            unknown = float(np.trace(np.linalg.solve(recent.curvature, recent.noise))) / len(at)
            prior = self.before.added(prior, CARRIED * min(1.0, unknown) ** 2)
        away = recent.added(prior).mean - at
        squares = (
            away @ self.curvature @ away / self.n_rows,
            away @ curvature @ away / self.n_rows,
            away @ self.prior.precision @ away / len(at),
        )
        length = math.sqrt(max(*squares, 0.0))
        self.length = min(length, self.reach)
        return np.asarray(at + away * (self.length / length if length else 1.0))

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
            self.reach = self.length * min(max(then / (then - now), 0.1), 0.5)
        else:
            self.reach = min(FARTHEST, 2 * self.reach)

    def learned(self, prior: Prior, levels: Levels) -> Prior:
        """Return a prior in which levels are as far apart as what was released says they are.

        Notes
        -----
        The mean and the spread of the levels of an array that make what was released likeliest, by expectation and
        maximisation, with all else as the posterior mean has it. A path prior of another spread leaves the path where
        scores are not linear: with too narrow a one, saturated levels count as better known than they are.
        """
        found = self._recent().added(prior)
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

    @property
    def _first(self) -> int:
        """Place of the first gradient that counts."""
        return round(APPROACH * len(self.steps))

    @property
    def _shares(self) -> list[float]:
        """What was paid for the gradients that count; 0 for others."""
        return [share * (place >= self._first) for place, (share, *_) in enumerate(self.steps)]

    def counted(self) -> _Mean:
        """Return the mean of the gradients that count, by what was paid for them."""
        return self._mean(self._shares)

    @property
    def path(self) -> tuple[tuple[float, Array, Array], ...]:
        """Weights, positions and gradients of those that count."""
        shares = self._shares
        parts = zip(shares, self.steps, strict=True)
        return tuple((own / sum(shares), at, gradient) for own, (_, at, gradient, _) in parts if own)

    def _recent(self) -> _Mean:
        count = len(self.steps)
        return self._mean([share * FORGETTING ** (count - 1 - k) for k, (share, *_) in enumerate(self.steps)])

    def _mean(self, weights: list[float]) -> _Mean:
        total = sum(weights)
        slope, mean = np.zeros(len(self.noise)), np.zeros_like(self.noise)
        spread = 0.0
        for weight, (share, at, gradient, curvature) in zip(weights, self.steps, strict=True):
            slope += weight / total * (curvature @ at + gradient)
            mean += weight / total * curvature
            spread += (weight / total) ** 2 / share
        return _Mean(slope=slope, curvature=mean, noise=self.noise * spread)

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the gradients that are counted, about their mean."""
        return (len(self.steps) - self._first - 1) * len(self.noise)

    def chi_squared(self, mean: _Mean) -> float:
        """Of the gradients that are counted about one quadratic, per degree of freedom; of released numbers alone."""
        if not self.noise.any() or self.degrees < 1:
            return float("nan")
        parts = 0.0
        for share, at, gradient, _ in self.steps[self._first :]:
            off = gradient + mean.curvature @ at - mean.slope
            parts += share * float(off @ np.linalg.solve(self.noise, off))
        return parts / self.degrees


def agreement(found: Found) -> str:
    """Say how well released gradients agree with one quadratic. Of released numbers alone."""
    says = f"released gradients about one quadratic have χ² = {found.chi_squared:.3g} per degree of freedom, "
    if found.too_curved:
        return (
            f"{says}above {found.chi_squared_limit:.2f}, which noise alone exceeds once in a hundred releases: the "
            "log-likelihood is not quadratic there, or the walk has not converged, and intervals may be too narrow"
        )
    return f"{says}not above {found.chi_squared_limit:.2f}, which noise alone exceeds once in a hundred releases"


__all__ = ["Found", "Prior", "Releases", "agreement", "walk"]
