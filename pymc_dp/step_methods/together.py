"""Several private steps, each on variables of its own: what they do and cost together, in words for the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pymc import Model

from pymc_dp.accounting import ApproximateEvent, ComposedEvent, Event, proved_within, total_epsilon
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.release.record import GUARANTEES, ReleaseRecord, SamplerRecord
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.own_variables import Names


def described(steps: Sequence[PrivateStep], left: Names = ()) -> SamplerRecord:
    """Return the record of steps that were priced: an event for each, and which variables cost nothing."""
    said = [step.describe() for step in steps]
    facts = [("beta", _power(sorted({step.power for step in steps})))]
    for place, (step, found) in enumerate(zip(steps, said, strict=True), start=1):
        words = f"{found.name} of {', '.join(found.variables)}, {found.steps} steps a chain, {found.noise}"
        own = f"by itself epsilon={step.priced.epsilon:.6g} at delta={step.budget.delta:g}"
        facts.append((f"step {place}", f"{words}; {own}"))
        facts += [(f"step {place}, {name}", text) for name, text in found.facts]
    if left:
        facts.append(("free", f"{', '.join(left)}: no row tells anything about them given the other variables"))
    return SamplerRecord(
        name=" + ".join(found.name for found in said),
        noise="; ".join(dict.fromkeys(found.noise for found in said)),
        variables=tuple(name for found in said for name in found.variables),
        chains=said[0].chains,
        steps=max(found.steps for found in said),
        facts=tuple(facts),
        parts=tuple(found.as_part(step.row_epsilon) for step, found in zip(steps, said, strict=True)),
        power=min(step.power for step in steps),
    )


def _power(betas: Sequence[float]) -> str:
    if len(betas) == 1:
        return f"{betas[0]:.6g}, of all steps: the target is prior times likelihood to this power"
    return f"{betas[0]:.6g} to {betas[-1]:.6g}: steps with different powers of the likelihood have no known target"


@dataclass(frozen=True, kw_only=True, eq=False)
class Funded:
    """Funded steps that ran together in one ``pm.sample(step=[...])`` and moved all free variables.

    Attributes
    ----------
    steps : tuple of PrivateStep

    Notes
    -----
    **Guarantee.** Budgets add, for losses and failure probabilities of interactive mechanisms that take turns do
    (Vadhan, Zhang 2023, doi 10.1145/3564246.3585241).
    """

    steps: tuple[PrivateStep, ...]

    @property
    def prior_model(self) -> Model:
        """The model without its rows."""
        return self.steps[0].prior_model

    @property
    def stats_dtypes_shapes(self) -> dict[str, Any]:
        """Statistics of all steps."""
        return {name: kind for step in self.steps for name, kind in step.stats_dtypes_shapes.items()}

    @property
    def public_stats(self) -> Names:
        """Those that may leave, beside what all steps have."""
        return tuple(name for step in self.steps for name in step.public_stats)

    @property
    def left(self) -> Names:
        """Variables that PyMC's own samplers move: none, for they would see the raw rows."""
        return ()

    @property
    def row_epsilon(self) -> float:
        """Sum of what the steps cost, each by itself."""
        return float_up(sum((decimal(step.row_epsilon) for step in self.steps), Fraction(0)))

    def record(self) -> ReleaseRecord:
        """Return what the trace says about all of them: their composition, which is at most the sum of their losses."""
        records = [step.record() for step in self.steps]
        budgets = [step.budget for step in self.steps]
        asked = float_up(sum((decimal(budget.epsilon) for budget in budgets), Fraction(0)))
        delta = float_up(sum((decimal(budget.delta) for budget in budgets), Fraction(0)))
        event = self._event(asked, delta)
        return ReleaseRecord(
            epsilon=total_epsilon(event, delta).epsilon,
            delta=delta,
            asked=asked,
            guarantee=min((record.guarantee for record in records), key=GUARANTEES.index),
            arithmetic=records[0].arithmetic,
            neighbours=records[0].neighbours,
            noise="; ".join(dict.fromkeys(record.noise for record in records)),
            noise_aware=True,
            event=event.to_dict(),
            tables=(),
            sampler=described(self.steps),
            assumptions=tuple(dict.fromkeys(item for record in records for item in record.assumptions)),
            left_out=tuple(dict.fromkeys(item for record in records for item in record.left_out)),
        )

    def _event(self, epsilon: float, delta: float) -> Event:
        """Return the events of all steps; their budgets, where no accountant proves that these pay for them."""
        event = ComposedEvent(events=tuple(step.event for step in self.steps))
        if proved_within(event, epsilon, delta):
            return event
        budgets = [step.budget for step in self.steps]
        return ComposedEvent(events=tuple(ApproximateEvent(epsilon=one.epsilon, delta=one.delta) for one in budgets))


__all__ = ["Funded", "described"]
