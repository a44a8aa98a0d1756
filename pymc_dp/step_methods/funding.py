"""What a step may spend, on how many steps, and how much of it is spent after so many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pymc_dp.accounting import Budget, Event
from pymc_dp.accounting.totals import total_epsilon
from pymc_dp.errors import PrivacyError

MOST_STEPS = 10**9
"""Of a chain, up to which it is looked for how many a budget would allow."""


@dataclass(frozen=True, kw_only=True)
class Funding:
    """What a step may spend, and on how many steps.

    Attributes
    ----------
    budget : Budget
        For all chains together.
    chains : int
    steps : int
        Steps of one chain, tuning included.
    """

    budget: Budget
    chains: int
    steps: int

    @property
    def uses(self) -> int:
        """Steps of all chains."""
        return self.chains * self.steps


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """What the steps of all chains cost.

    Attributes
    ----------
    funding : Funding
    event : Event
        Of everything: never above the budget.
    on_the_way : tuple of (int, Event)
        What everything costs that all chains have done once each has made so many steps, fewer than all.
    """

    funding: Funding
    event: Event
    on_the_way: tuple[tuple[int, Event], ...] = ()

    @cached_property
    def epsilon(self) -> float:
        """The loss of all steps of all chains, at the δ of their budget."""
        return total_epsilon(self.event, self.funding.budget.delta).epsilon

    @cached_property
    def curve(self) -> tuple[Any, Any]:
        """Steps of one chain, and the loss of all chains once each has made so many; to be interpolated."""
        delta = self.funding.budget.delta
        losses = [total_epsilon(event, delta).epsilon for _, event in self.on_the_way]
        # Other accountants may be best for shorter chains, by a hair: what was spent never falls.
        rising = np.maximum.accumulate(np.minimum([*losses, self.epsilon], self.epsilon))
        return np.array([*(steps for steps, _ in self.on_the_way), self.funding.steps]), rising

    def check(self) -> None:
        """Raise if the steps would cost more than their budget."""
        budget = self.funding.budget
        if self.epsilon > budget.epsilon:
            raise PrivacyError(
                f"The planned steps would cost {self.epsilon}, not {budget}; this is an error of pymc_dp."
            )


def steps_within(cost_of: Callable[[int], float | None], epsilon: float, steps: int) -> tuple[int, float] | None:
    """Return how many steps a budget would allow, and what they cost; None where that is no more than there are.

    Parameters
    ----------
    cost_of : callable
        Loss of so many steps; None where it is not known.
    epsilon : float
        What they may cost.
    steps : int
        That there are.
    """
    best = steps
    while (loss := cost_of(2 * best)) is not None and loss <= epsilon:
        best *= 2
        if best > MOST_STEPS:
            return None
    high = 2 * best
    while loss is not None and high - best > max(1, best // 200):
        middle = (best + high) // 2
        loss = cost_of(middle)
        best, high = (middle, high) if loss is not None and loss <= epsilon else (best, middle)
    found = cost_of(best)
    return None if found is None or best == steps else (best, found)


def some_of(steps: int, points: int = 32) -> list[int]:
    """Return numbers of steps below `steps`, in proportion, at which to look at what was spent.

    Examples
    --------
    >>> some_of(3), some_of(1)
    ([1, 2], [])
    """
    counts = np.unique(np.rint(np.geomspace(1, steps, points + 1)).astype(int))
    return [int(count) for count in counts if count < steps]


__all__ = ["Funding", "Priced", "some_of", "steps_within"]
