"""How much noise gradients and accept tests get, and what so many steps of them cost: all Gaussian, so all exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymc_dp.accounting import Budget, ComposedEvent, GaussianEvent, SelfComposedEvent, gaussian_multiplier

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


__all__ = ["HamiltonianNoise", "evaluations", "noise_within"]
