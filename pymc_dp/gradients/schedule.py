"""What is released of a walk: stages, each of a curvature matrix and some gradients, and their shares of the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import Budget, ComposedEvent, DiscreteGaussianEvent, calibrated
from pymc_dp.errors import ArgumentError

LEAST_STEPS = 10
LEAST_MOMENTUM = 20
ROUNDING = 1e-12
"""Room for the rounding of scales, relative."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A curvature matrix, released where the stage begins, and a walk of gradients from there; either may be left out.

    Attributes
    ----------
    curvature, gradients : float
        Shares of the budget: of ρ, which adds up over Gaussian noise. 0: none is released.
    steps : tuple of float
        Share of `gradients` of each step; they add up to 1. None in a last stage, of a curvature alone.
    """

    curvature: float
    gradients: float
    steps: tuple[float, ...]


STAGES = ((0.05, 0.06, 5, 0.3), (0.05, 0.10, 5, 0.3), (0.06, 0.58, 3, 0.4))
"""Shares of curvature and gradients, power k by which later steps are paid more, share of the steps: of each stage."""
END = 0.10
"""Share of the curvature where the walk ends."""
DESCENT = 0.40
"""Share of a descent with momentum before the walk, if there is one; the stages share the rest."""


def stages_of(steps: int, momentum_steps: int = 0) -> tuple[Stage, ...]:
    """Return the stages of a walk of `steps` gradients: step t of a stage is paid in proportion to t^k.

    A descent with momentum before it is a stage without a curvature, whose steps are all paid alike.

    With H the curvature and ρ the share of it that is known, the error of a stage falls as t^(-(k + 1) ρ); later steps
    weigh what they were paid, so that nothing is lost by k > 0.

    Examples
    --------
    >>> [len(stage.steps) for stage in stages_of(60)]
    [18, 18, 24, 0]
    >>> [len(stage.steps) for stage in stages_of(60, momentum_steps=150)]
    [150, 18, 18, 24, 0]
    """
    _validate.many("steps", steps)
    if steps < LEAST_STEPS:
        raise ArgumentError(f"steps must be at least {LEAST_STEPS}, got {steps}: each of three stages needs some.")
    require_momentum(momentum_steps)
    rest = 1 - DESCENT if momentum_steps else 1.0
    counts = [round(share * steps) for *_, share in STAGES[:-1]]
    counts.append(steps - sum(counts))
    stages = [
        Stage(curvature=rest * curvature, gradients=rest * gradients, steps=_rising(count, power))
        for (curvature, gradients, power, _), count in zip(STAGES, counts, strict=True)
    ]
    stages.append(Stage(curvature=rest * END, gradients=0.0, steps=()))
    if momentum_steps:
        stages.insert(0, Stage(curvature=0.0, gradients=DESCENT, steps=_rising(momentum_steps, 0)))
    return tuple(stages)


def require_momentum(momentum_steps: int) -> None:
    """Refuse numbers of steps that are none, or lead nowhere."""
    _validate.many("momentum_steps", momentum_steps, 0)
    if 0 < momentum_steps < LEAST_MOMENTUM:
        raise ArgumentError(
            f"momentum_steps must be 0, or at least {LEAST_MOMENTUM}, got {momentum_steps}: fewer lead nowhere. Leave "
            "it out where the log-likelihood is concave, or about so; write momentum_steps=150 for a neural net."
        )


def _rising(count: int, power: float) -> tuple[float, ...]:
    weights = np.arange(1, count + 1) ** float(power)
    return tuple(map(float, weights / weights.sum()))


@dataclass(frozen=True, kw_only=True)
class Units:
    """What one row can add to the integers that are summed.

    Attributes
    ----------
    gradient, curvature : int
        Largest L2 norm of a row's score, and Frobenius norm of its curvature.
    dimension : int
        Number of parameters d.
    neighbours : {"replace", "add_remove"}
    collapsed : int or None
        How many sums of a curvature are released, where not all of it is.

    Notes
    -----
    **Sensitivity.** A score moves a sum by its norm where a row comes or goes, by twice that where it is replaced.
    Curvatures are positive semidefinite, and the inner product of two such matrices is not negative, so that replacing
    one moves the sum by at most √2 times the norm. Of sums over entries that product may be negative: there it is
    twice the norm, which is enforced on the sums.
    """

    gradient: int
    curvature: int
    dimension: int
    neighbours: str
    collapsed: int | None = None

    @property
    def gradient_squared(self) -> int:
        """Square of the L2 sensitivity of a sum of scores."""
        return self.gradient**2 * (4 if self.neighbours == "replace" else 1)

    @property
    def curvature_squared(self) -> int:
        """Square of the L2 sensitivity of a sum of curvatures, of which off-diagonal entries count twice."""
        if self.neighbours != "replace":
            return self.curvature**2
        return self.curvature**2 * (2 if self.collapsed is None else 4)

    @property
    def names(self) -> tuple[str, str]:
        """Sensitivities of a sum of scores and of one of curvatures, in words."""
        if self.neighbours != "replace":
            return "C", "C_F"
        return "2 C", "√2 C_F" if self.collapsed is None else "2 C_F"

    @property
    def entries(self) -> int:
        """Numbers of a curvature that are released: its upper triangle, or sums of it."""
        if self.collapsed is not None:
            return self.collapsed
        return self.dimension * (self.dimension + 1) // 2


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Every release of a walk, and the scale of its noise.

    Attributes
    ----------
    stages : tuple of Stage
    units : Units
    multiplier : float
        Standard deviation over sensitivity that one release of everything would have.
    """

    stages: tuple[Stage, ...]
    units: Units
    multiplier: float

    @classmethod
    def within(cls, budget: Budget, units: Units, steps: int, momentum_steps: int = 0) -> Schedule:
        """Return the releases whose events cost a budget together, never more; δ must be > 0."""
        if budget.delta == 0:
            raise ArgumentError(
                "dp.Gradients adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below 1 / "
                "number of rows. Exact sums, statistics=dp.Statistics(), need no delta, but they read rows in the "
                "model only, not those of rows=."
            )
        plain = cls(stages=stages_of(steps, momentum_steps), units=units, multiplier=1.0)
        found = calibrated(plain.event, budget.epsilon, budget.delta)
        assert isinstance(found, ComposedEvent)
        scaled, own = found.events[-1], plain.event.events[-1]
        assert isinstance(scaled, DiscreteGaussianEvent) and isinstance(own, DiscreteGaussianEvent)
        multiplier = scaled.scale / own.scale * (1 + ROUNDING)
        return cls(stages=plain.stages, units=units, multiplier=multiplier)

    def curvature_scale(self, stage: int) -> float:
        """Scale of the noise on a curvature's diagonal, in integers; off the diagonal it is less by √2."""
        return float(self.multiplier * np.sqrt(self.units.curvature_squared / self.stages[stage].curvature))

    def gradient_scale(self, stage: int, step: int) -> float:
        """Scale of the noise on a gradient, in integers."""
        share = self.stages[stage].gradients * self.stages[stage].steps[step]
        return float(self.multiplier * np.sqrt(self.units.gradient_squared / share))

    def gradient_variance(self, stage: int) -> float:
        """Variance of the noise that a gradient would have that is paid all of its stage's share, in integers."""
        return self.multiplier**2 * self.units.gradient_squared / self.stages[stage].gradients

    @property
    def event(self) -> ComposedEvent:
        """What all releases cost together."""
        units, events = self.units, list[DiscreteGaussianEvent]()
        for place, stage in enumerate(self.stages):
            # Entries off the diagonal count twice and have noise that is less by √2: all in units of that noise.
            if stage.curvature:
                events.append(
                    DiscreteGaussianEvent(
                        scale=math.nextafter(self.curvature_scale(place) / math.sqrt(2), 0.0),
                        l2_squared=-(-units.curvature_squared // 2),
                        coordinates=units.entries,
                    )
                )
            events += [
                DiscreteGaussianEvent(
                    scale=self.gradient_scale(place, step),
                    l2_squared=units.gradient_squared,
                    coordinates=units.dimension,
                )
                for step in range(len(stage.steps))
            ]
        return ComposedEvent(events=tuple(events))


__all__ = ["Schedule", "Stage", "Units", "require_momentum", "stages_of"]
