"""What a step may spend, on how many steps, and how much of it is spent after so many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pymc_dp.accounting import Budget, ComposedEvent, Event, SelfComposedEvent
from pymc_dp.accounting.conversion import total_epsilon
from pymc_dp.errors import PrivacyError


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
    steps : Event
        Of the steps alone.
    first : Event, optional
        What one chain pays before its steps.
    """

    funding: Funding
    event: Event
    steps: Event
    first: Event | None = None

    @cached_property
    def curve(self) -> tuple[Any, Any]:
        """Steps of one chain, and what so many of them cost."""
        return spending_curve(self.steps, self.funding, self.funding.budget.delta, first=self.first)

    def check(self) -> None:
        """Raise if the steps would cost more than their budget."""
        budget = self.funding.budget
        total = total_epsilon(self.event, budget.delta)
        if total.epsilon > budget.epsilon:
            raise PrivacyError(
                f"The planned steps would cost {total.epsilon}, not {budget}; this is an error of pymc_dp."
            )


def spending_curve(
    event: Event, funding: Funding, delta: float, points: int = 33, *, first: Event | None = None
) -> tuple[Any, Any]:
    """Steps of one chain, and what so many of them cost alone; between the points a reader may interpolate.

    What a chain pays before its steps is `first`; it is no part of `event`.
    """
    if not isinstance(event, SelfComposedEvent) or event.count != funding.uses:
        return np.array([0, funding.steps]), np.array([0.0, total_epsilon(event, delta).epsilon])
    counts = np.unique(np.rint(np.geomspace(1, funding.steps, points)).astype(int))
    events: list[Event] = [SelfComposedEvent(event=event.event, count=int(count)) for count in counts]
    if first is None:
        return np.append(0, counts), np.array([0.0, *(total_epsilon(steps, delta).epsilon for steps in events)])
    whole = [first, *(ComposedEvent(events=(first, steps)) for steps in events)]
    losses = np.array([total_epsilon(paid, delta).epsilon for paid in whole])
    # Other accountants may be best for shorter chains, by a hair: what was spent never falls.
    return np.append(0, counts), np.maximum.accumulate(np.minimum(losses, losses[-1]))


__all__ = ["Funding", "Priced", "spending_curve"]
