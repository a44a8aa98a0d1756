"""Where gradients are released, and what all of them say together: steps that are posterior means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import chdtri

from pymc_dp.gradients.carried import carried, raised, remembered
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.curvature import Noised, estimated
from pymc_dp.gradients.legs import Leg, Prior
from pymc_dp.gradients.schedule import CLIP_CURVATURE, Limits, Stage
from pymc_dp.gradients.tails import Chosen
from pymc_dp.inspection.rows import Array

if TYPE_CHECKING:
    from pymc_dp.gradients.left_out import LeftOut
    from pymc_dp.gradients.misfit import Misfit
    from pymc_dp.gradients.simulated import Simulated

ALARM = 0.01
"""How often χ² is above its limit by chance, where the gradients are those of one quadratic."""
NOTHING = 1e-6
"""Curvature along which no row changes, over the mean of all: what is inverted must not be 0."""
LAST_CARRIED, FADED = 0.5, 0.25
"""Share of what earlier stages know that steers the last one at first, and what is paid of that stage when it is gone.

Their limits cut off what a wrong model calls unlikely, so that they lead to another estimate.
"""
EDGE, LARGEST_CURVATURE = 0.3, 40.0
"""Edge of the noise of a curvature, over the mean curvature, up to which the limit of curvatures is raised; most of it.

With lower limits slopes in skewed directions came out at .01 to .14 of what they are, with higher ones noise is most.
"""
LATEST = 0.6
"""Share of a stage's steps after which its coordinates and limits stay as they are."""
NEGLIGIBLE, SMALL, LOST, LARGEST = 0.03, 0.15, 0.3, 8.0
"""Noise of the last gradients over the variance of scores, and edge of that of a curvature over this, up to which
limits are raised; part of the variance of scores that is lost where they are not, by clipping; and the most that C is.
"""


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
    deviation : float
        Of the noise on the last curvature, off its diagonal, in the coordinates of `limits`.
    chosen : Chosen or None
        By which histogram the last limit was chosen.
    scores : (d, d) array or None
        Covariance of the sum of scores, as they are where the walk ended, where it was released.
    simulated : Simulated or None
        Made-up rows, with what was released of columns.
    misfit : Misfit or None
        What was released of the fit of rows to the model.
    left_out : LeftOut or None
        What was released of rows of persons that are left out.
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
    deviation: float = 0.0
    chosen: Chosen | None = None
    scores: Array | None = None
    simulated: Simulated | None = None
    misfit: Misfit | None = None
    left_out: LeftOut | None = None

    @property
    def chi_squared_limit(self) -> float:
        """What `chi_squared` exceeds in one of a hundred walks whose gradients are those of one quadratic.

        The variances of the noises are known, so that it is chi-squared distributed over its degrees of freedom. That
        the curvature is noised too adds little to it where the walk has come to its end.
        """
        return float(chdtri(self.degrees, ALARM)) / self.degrees if self.degrees else float("nan")

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
    early: Prior | None = None,
    bend: Callable[[Array], Array] | None = None,
    unidentified: Callable[[Array], Array] | None = None,
    limit: Callable[[int, Array, Limits], Chosen] | None = None,
    widest: Callable[[Array, Limits], float] | None = None,
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
    early : Prior, optional
        That of the first stage. Default: `prior`.
    bend : callable, optional
        Curvature at a point, (d, d), or its diagonal, of public made-up rows: it carries a released matrix to other
        points than that of its release (`carried`). None: it stays as it is.
    unidentified : callable, optional
        Directions along which no row changes, at a point, (d, k): what is released of them is noise.
    limit : callable, optional
        Limit of the scores of a stage, at a point, in coordinates: of the last stage, by what is released there. None:
        limits are those of rows that are of the model.
    widest : callable, optional
        Up to which limit of curvatures, over their mean trace, it is worth to raise that of the last ones, at a point.
    first : int
        Number of the first stage, where the releases count others before it.

    Notes
    -----
    Each stage begins with a curvature H, which says in what coordinates its gradients are released and how large a row
    may be in them (`Limits.whitened`). Step t adds w_t (H_t η_t + G_t) to z and w_t H_t to M, with N the covariance of
    the noise on z / A, A the sum of the weights. With H = M/A, W = (H + N)⁻¹ and P the prior's precision, η_{t+1} =
    (P + H W H)⁻¹ (P m + H W z/A). That is damped by the noise and needs no step size.

    Weights forget a fifth of what was there at each step, and fall with the distance of where a gradient was released
    from where the walk is now (`Leg`): scores are no straight lines. Made-up rows say how H changes on the way, and
    where it has changed by a factor, a new leg begins within the stage, in coordinates and within limits that fit:
    where σ had fallen to a third, rows were cut to a third by limits of where the stage began, and walks ended far off
    without a warning. Of what the legs before know, a quarter goes into the prior of the next one's path: without it
    each walk falls back to the prior at its first, noisiest step.

    No step is longer than what one row says, or the prior, is wide, for scores are not linear farther out. Where the
    slope turns by more than noise explains, the last step was too long, and the next one ends between both: with a
    curvature that is too small, walks went to and fro until their end.

    So is a curvature: of rows that are cut to a fraction it is cut too. What is noise of it is carried along with it,
    for it says below what size a direction is not blown up: where σ rose ninefold on the way and that size stayed, the
    coefficients had next to no share of the budget.

    With much budget limits are raised in the last stage as far as noise allows: clipped scores stay centred, but are
    not those of the posterior without privacy, which at ε = 100 showed.

    A last curvature is released where the walk has ended; the likelihood is treated as quadratic there. Where
    curvatures fall towards the truth, one released before the last steps is too large: of heavy-tailed columns
    intervals covered .84 where they cover .91.

    **Guarantee.** Post-processing of `releases`: where the next one is made, and in what coordinates, may depend on
    those before it (adaptive composition of Gaussian noise whose scales are fixed in advance).
    """
    at, bend = prior.mean if start is None else start, remembered(bend)
    own = prior if early is None else early
    here: Leg | None = None
    later, picked = limits, None
    for stage, plan in enumerate(stages, first):
        last = stage + 2 - first >= len(stages)  # with steps, or after these
        if plan.steps:
            limits = later
            if limit is not None:
                limits = _raised(later, stage, releases, n_rows, at, widest)
                if last:
                    limits = replace(limits, clip_norm=UNLIMITED, weighing=False)
            elif last:
                limits = _relaxed(later, stage, releases, n_rows)
        elif picked is not None:
            limits = _raised(limits, stage, releases, n_rows, at, widest)
        noised, deviation = releases.curvature(stage, at, limits)
        found = estimated(noised, deviation, limits.levels, limits.blocks)
        curvature = limits.curvature(found.matrix)
        idle = np.zeros((len(at), 0)) if unidentified is None else unidentified(at)
        if idle.shape[1]:
            curvature = _without(curvature, idle)
        if not plan.steps:
            break
        floored, relaxing = curvature + limits.floor(deviation), limits.relaxing
        edge, now = carried(floored, at, bend), curvature
        link: Leg | None = None
        for step, share in enumerate(plan.steps):
            if here is None or not step or (step <= LATEST * len(plan.steps) and here.changed(now)):
                limits = limits.whitened(now, n_rows, edge(at))
                if last and limit is not None:
                    if picked is None:
                        picked = limit(stage, at, limits)
                        relaxing = picked.limit / limits.clip_norm, 1.0
                    limits = replace(limits, weighing=False)
                limits = limits.relaxed(*relaxing)
                noise = limits.curvature(np.eye(len(at)) * releases.variance(stage, limits))
                bent = carried(now, at, bend)
                here = Leg(prior=own, noise=noise, curvature=now, before=here, n_rows=n_rows, idle=idle)
                link = link or here
            if last and link is not None:
                left = 1 - sum(plan.steps[: step + 1]) / FADED
                link.fading, link.carried = True, LAST_CARRIED * max(0.0, left)
            gradient = limits.score(releases.gradient(stage, step, at, limits))
            at = here.step(at, share, gradient, now)
            now = bent(at)
        later = limits.whitened(raised(curvature, now), n_rows, raised(floored, edge(at)))
        if limits.levels is not None and here is not None:
            prior = here.learned(at, prior, limits.levels)
        own = prior
    assert here is not None
    mean, (chi_squared, degrees) = here.counted(at), here.agreement(at)
    noise = mean.noise
    if picked is not None:
        noise = noise + limits.curvature(np.eye(len(at)) * (picked.bias * limits.clip_norm / picked.limit) ** 2)
    return Found(
        slope=mean.slope + (curvature - mean.curvature) @ at,
        curvature=curvature,
        noise=noise,
        end=at,
        limits=limits,
        unresolved=found.unresolved,
        chi_squared=chi_squared,
        degrees=degrees,
        path=here.path(at),
        rows=n_rows,
        deviation=deviation,
        chosen=picked,
    )


def _raised(
    limits: Limits,
    stage: int,
    releases: Releases,
    n_rows: float,
    at: Array,
    widest: Callable[[Array, Limits], float] | None,
) -> Limits:
    """Return limits of which that of curvatures is as large as it need be, and noise allows, by what is public."""
    directions = len(limits.scale) if limits.levels is None else limits.levels.count
    edge = 2 * math.sqrt(directions) * releases.deviation(stage, limits) / n_rows
    most = LARGEST_CURVATURE if widest is None else widest(at, limits) / CLIP_CURVATURE
    factor = min(EDGE / edge if edge else LARGEST_CURVATURE, most, LARGEST_CURVATURE)
    return limits.relaxed(1.0, max(1.0, factor))


def _without(curvature: Array, directions: Array) -> Array:
    """Return a curvature that is next to nothing in some directions, (d, k), and positive definite."""
    out = directions @ directions.T
    kept = np.eye(len(out)) - out
    return np.asarray(kept @ curvature @ kept + NOTHING * np.trace(curvature) / len(out) * out)


def _relaxed(limits: Limits, stage: int, releases: Releases, n_rows: float) -> Limits:
    """Return limits as large as noise allows, by what is public: the scales of noises and the number of rows.

    Limits r times as large have r² times the noise v, and lose about `LOST` / r² by clipping, for squared residuals and
    rows of high leverage have heavy tails: the sum is least at r⁴ = `LOST` / v. At small ε they stay as they are.
    """
    noise = releases.variance(stage, limits) / n_rows
    edge = 2 * np.sqrt(len(limits.scale)) * releases.deviation(stage, limits) / n_rows
    norm = max(1.0, min(math.sqrt(NEGLIGIBLE / noise), (LOST / noise) ** 0.25, LARGEST))
    return limits.relaxed(norm, max(1.0, min(norm**2, float(SMALL / edge))))


def agreement(found: Found) -> str:
    """Say how well released gradients agree with one quadratic. Of released numbers alone."""
    if not found.degrees:
        return "too few gradients count to say whether they agree with one quadratic: take more steps"
    says = f"released gradients about one quadratic have χ² = {found.chi_squared:.3g} per degree of freedom, "
    if found.too_curved:
        return (
            f"{says}above {found.chi_squared_limit:.2f}, which noise alone exceeds once in a hundred releases: the "
            "log-likelihood is not quadratic there, or the walk has not converged, and intervals may be too narrow"
        )
    return f"{says}not above {found.chi_squared_limit:.2f}, which noise alone exceeds once in a hundred releases"


__all__ = ["Found", "Releases", "agreement", "walk"]
