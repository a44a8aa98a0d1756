"""While a chain of Hamiltonian Monte Carlo tunes: a climb to where the posterior is, and the size of its steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array

NARROW = 1e-4
LONGER, SHORTER = 1.2, 0.5
"""What the size is multiplied by after a move whose ends have slopes of one direction, or of opposite ones."""
LEAST = 1e-2
"""Shortest size over the first one: a stiff direction may not stop the others."""
FARTHEST = 2.0
"""Longest move over 1 / clip norm, which is what all rows together move at most."""


class Climb:
    """Gradient steps, longer while slopes agree and shorter once they turn.

    They leave no posterior as it is, so that a chain makes them while it tunes only.

    Hamiltonian trajectories conserve energy, so no way downhill makes up for what the noise of a ratio costs. From a
    start many standard deviations away they would take most of the budget to arrive.

    Parameters
    ----------
    of_prior : callable
        Gradient of the log prior, per unit.
    start : (n_values,) array
    units : (n_values,) array
    clip_norm : float
    population : int
        Public number of rows, or the bound on it.

    Attributes
    ----------
    size : float
        To be used by the next move.

    Notes
    -----
    Where gradients of rows have norm C, the log-likelihood of N rows bends by about N C²; the prior, by what it does at
    the start. The first size is one over that sum. Where noise outweighs slopes they turn often, and moves get short.
    """

    def __init__(
        self,
        of_prior: Callable[[Array], Array],
        start: Array,
        units: Array,
        *,
        clip_norm: float,
        population: int,
    ) -> None:
        self._units, self._longest = units, FARTHEST / clip_norm
        apart = of_prior(start + NARROW * units) - of_prior(start)
        bent = float(np.nan_to_num(np.abs(apart) / NARROW, posinf=0.0).max(initial=0.0))
        self._first = 1 / (max(population, 1) * clip_norm**2 + bent)
        self.size = self._first

    def restart(self) -> None:
        """Forget what slopes have said."""
        self.size = self._first

    @np.errstate(all="ignore")  # slopes may leave the numbers
    def __call__(
        self, position: Array, force: Array, slope: Callable[[Array], Array], moves: int
    ) -> tuple[Array, Array]:
        """Return where so many moves lead, and the slope there: one evaluation each."""
        for _ in range(moves):
            move = self.size * force
            length = float(np.linalg.norm(move))
            position = position + self._units * move * min(1.0, self._longest / max(length, 1e-300))
            before, force = force, slope(position)
            self.size *= LONGER if float(before @ force) > 0 else SHORTER
            self.size = max(self.size, LEAST * self._first)
        return position, force


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


__all__ = ["Climb", "StepSize", "target_acceptance"]
