"""Arguments of `PrivateHMC`: their checks, and units of values from what a user says about them.

How much noise gradients and accept tests get, and what so many steps of them cost: all Gaussian, so all exact.

The size of a leapfrog step: chosen from public numbers, then from accept bits, then fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import Budget, ComposedEvent, GaussianEvent, SelfComposedEvent, gaussian_multiplier
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.batches import LARGEST, SMALLEST, positive
from pymc_dp.step_methods.metropolis.arguments import sizes_of, spread
from pymc_dp.step_methods.metropolis.coefficients import Coefficients


def hamiltonian_settings(
    *,
    clip_norm: float | None,
    clamp: float | None,
    n_leapfrog: int,
    step_size: float | None,
    scale: float | Mapping[str, Any] | None,
    gradient_share: float,
    steps_per_draw: int,
) -> dict[str, Any]:
    """Return checked settings; those that are None stay so."""
    share = _validate.number("gradient_share", gradient_share)
    if not 0 < share < 1:
        raise ArgumentError(f"gradient_share must lie in (0, 1), got {share}. 0.4 does well on most targets.")
    return {
        "clip_norm": _positive("clip_norm", clip_norm),
        "clamp": _positive("clamp", clamp),
        "n_leapfrog": _validate.many("n_leapfrog", n_leapfrog),
        "step_size": _positive("step_size", step_size),
        "scale": _scale(scale),
        "gradient_share": share,
        "steps_per_draw": _validate.many("steps_per_draw", steps_per_draw),
    }


def units_of(scale: float | Mapping[str, Array] | None, places: Coefficients) -> Array:
    """Return the unit of each value of a prior model, one after the other."""
    found = spread(scale, places.value_names, places)
    return np.ones(places.dimension) if found is None else found


def _positive(name: str, value: object) -> float | None:
    return None if value is None else positive(name, value)


def _scale(scale: object) -> float | dict[str, Array] | None:
    if not isinstance(scale, Mapping):
        return _positive("scale", scale)
    return sizes_of(scale, above=SMALLEST, below=LARGEST)


ROOM = 1 + 1e-12
"""Room for the rounding of two multipliers, relative."""


@dataclass(frozen=True, kw_only=True)
class HamiltonianNoise:
    """Noise of one chain's Gaussian mechanisms, the same at every step.

    Attributes
    ----------
    gradient, ratio : float
        Standard deviation over L2 sensitivity of each noised gradient, and of each noised log-likelihood ratio.
    n_leapfrog : int
        Leapfrog steps per step of the chain.
    """

    gradient: float
    ratio: float
    n_leapfrog: int

    def event(self, *, steps: int, chains: int = 1) -> ComposedEvent:
        """Return what so many steps of each chain cost: a ratio each, and the gradients of `evaluations`."""
        gradients = evaluations(steps, self.n_leapfrog)
        return ComposedEvent(
            events=(
                SelfComposedEvent(event=GaussianEvent(noise_multiplier=self.ratio), count=chains * steps),
                SelfComposedEvent(event=GaussianEvent(noise_multiplier=self.gradient), count=chains * gradients),
            )
        )


def evaluations(steps: int, n_leapfrog: int) -> int:
    """Return how many gradients one chain pays for: one at its start, and one per leapfrog step.

    The one at the end of a step is public, and is the first of the next.
    """
    return steps * n_leapfrog + 1


def noise_within(
    budget: Budget, *, chains: int, steps: int, n_leapfrog: int, gradient_share: float
) -> HamiltonianNoise:
    """Return the least noise whose cost is the budget, a share of it for the gradients.

    Parameters
    ----------
    budget : Budget
        For all chains together; its delta must be > 0.
    chains, steps : int
        Chains, and steps of each.
    n_leapfrog : int
    gradient_share : float
        In (0, 1): of μ², which adds up over Gaussian mechanisms.
    """
    alone = gaussian_multiplier(budget.epsilon, budget.delta) * ROOM
    gradients = chains * evaluations(steps, n_leapfrog)
    return HamiltonianNoise(
        gradient=alone * math.sqrt(gradients / gradient_share),
        ratio=alone * math.sqrt(chains * steps / (1 - gradient_share)),
        n_leapfrog=n_leapfrog,
    )


GAIN, FADING = 1.5, 0.6
WIDEST = 1e4
"""The size stays within this factor of the first one."""


def target_acceptance(dimension: int) -> float:
    """Return the share of trajectories to be accepted: where normal targets in 1 to 10 dimensions were sampled best."""
    return 0.3 + 0.2 / max(dimension, 1)


class StepSize:
    """Follows accept bits to the target while it tunes; then stays at the average of the second half of tuning.

    Parameters
    ----------
    first : float
    tune : int
        Tuning steps; 0 for a size that stays.
    target : float
        Share of accepted trajectories.

    Attributes
    ----------
    value : float
        To be used by the next step.
    """

    def __init__(self, first: float, *, tune: int, target: float) -> None:
        self.first, self.tune, self.target, self.value = first, tune, target, first
        self.made, self.sum = 0, 0.0

    def learn(self, accepted: bool) -> None:
        """Take note of one accept bit, which is public."""
        if self.made >= self.tune:
            return
        self.made += 1
        moved = math.log(self.value / self.first) + GAIN * self.made**-FADING * (accepted - self.target)
        moved = min(max(moved, -math.log(WIDEST)), math.log(WIDEST))
        if 2 * self.made > self.tune:
            self.sum += moved
        if self.made == self.tune:
            moved = self.sum / (self.tune - self.tune // 2)
        self.value = self.first * math.exp(moved)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on from here."""
        return dict(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        vars(self).update(state)


__all__ = [
    "HamiltonianNoise",
    "StepSize",
    "evaluations",
    "hamiltonian_settings",
    "noise_within",
    "target_acceptance",
    "units_of",
]
