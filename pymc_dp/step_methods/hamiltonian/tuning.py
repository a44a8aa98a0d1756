"""The size of a leapfrog step: chosen from public numbers, then from accept bits, then fixed."""

from __future__ import annotations

import math
from typing import Any

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


__all__ = ["StepSize", "target_acceptance"]
