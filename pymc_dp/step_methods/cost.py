"""What the steps of all chains cost: on the way, at the end, and what of the budget is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pymc_dp.accounting import Event, SelfComposedEvent, total_epsilon
from pymc_dp.release.record import ALL_OF_IT
from pymc_dp.step_methods.funding import Funding, Priced, some_of, steps_within
from pymc_dp.step_methods.per_unit import MaybePerUnit


class WithCost(MaybePerUnit):
    """Part of every private step method.

    Attributes
    ----------
    count : int
        Steps that this chain has made.
    settings : dict
        What the step was made with.
    """

    count: int
    settings: dict[str, Any]

    @property
    def steps_per_draw(self) -> int:
        """Steps between two states that are kept; every one of them is charged."""
        return int(self.settings.get("steps_per_draw", 1))

    def active(self) -> bool:
        """Whether the last step was made; False where a filter has ended the chain."""
        return True

    def spent(self) -> float:
        """Loss per row of all chains, were each as far as this one: bookkeeping; the whole is the guarantee.

        At the end of a chain it is the ε of the trace. What a chain that was ended early leaves is not given back.
        """
        ended = self.count >= self.funding.steps or not self.active()
        return self.for_row(self.priced.epsilon if ended else min(self.spent_so_far(), self.priced.epsilon))

    def spent_so_far(self) -> float:
        """Loss of all chains, were each as far as this one; per unit of a metric, where there is one."""
        return float(np.interp(self.count, *self.priced.curve, left=0.0))

    def on_the_way(self, event: Event, funding: Funding, steps: int) -> Event | None:
        """Return what all chains cost once each has made so many steps; None where that is not known before.

        Parameters
        ----------
        event : Event
            Of all steps.
        funding : Funding
        steps : int
            More than all of them, too: then of longer chains, whose steps cost the same.
        """
        if isinstance(event, SelfComposedEvent) and event.count == funding.uses:
            return replace(event, count=funding.chains * steps)
        return None

    def use_of_rest(self, tune: int) -> str:
        """Say what would use the rest of the budget, where some of it is left: by default more draws."""
        if self.priced.epsilon > ALL_OF_IT * self.budget.epsilon:
            return ""
        found = steps_within(self._cost_of, self.funding.budget.epsilon, self.funding.steps)
        draws = 0 if found is None else found[0] // self.steps_per_draw - tune
        return "" if found is None or draws < 1 else f"draws={draws} would cost ε = {self.for_row(found[1]):.4g}"

    def _cost_of(self, steps: int) -> float | None:
        event = self.on_the_way(self.event, self.funding, steps)
        return None if event is None else total_epsilon(event, self.budget.delta).epsilon

    def _set_price(self, funding: Funding, event: Event) -> None:
        known = [(steps, self.on_the_way(event, funding, steps)) for steps in some_of(funding.steps)]
        course = tuple((steps, found) for steps, found in known if found is not None)
        self._priced = Priced(funding=funding, event=event, on_the_way=course)
        self._priced.check()


__all__ = ["WithCost"]
