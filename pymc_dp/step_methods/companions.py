"""Funded steps of one model, each on some of its variables: together they must move all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymc import Model

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.step_methods.own_variables import Names

if TYPE_CHECKING:
    from pymc_dp.step_methods.base import PrivateStep

ATTRIBUTE = "dp_steps"


@dataclass(kw_only=True, eq=False)
class Companions:
    """The funded steps of one model, which all of them share, so that each knows of those made after it.

    PyMC gives a variable that no step was passed for to a sampler of its own, which would evaluate the density of the
    raw rows. A step does not know what runs beside it: it asks its companions.

    Attributes
    ----------
    every : tuple of str
        All free variables of the model.
    steps : list of PrivateStep
    """

    every: Names
    steps: list[PrivateStep]

    @classmethod
    def of(cls, model: Model) -> Companions:
        """Return those of a model; none, where it has none yet."""
        found: Companions = getattr(model, ATTRIBUTE, None) or cls(every=(), steps=[])
        found.every = tuple(str(rv.name) for rv in model.free_RVs)
        return found

    @classmethod
    def steps_of(cls, model: Model) -> tuple[PrivateStep, ...]:
        """Return the funded steps of a model."""
        return tuple(cls.of(model).steps)

    @classmethod
    def join(cls, model: Model, step: PrivateStep) -> Companions | None:
        """Add a step to those of a model, and return them; None where it needs none."""
        found = cls.of(model)
        found.steps.append(step)
        setattr(model, ATTRIBUTE, found)
        return None if step.names is None else found

    def check(self, step: PrivateStep) -> None:
        """Raise where a variable belongs to no funded step: before a chain begins."""
        lost = [name for name in self.every if not step.moves(name) and not self._movers(step, name)]
        if lost:
            raise ArgumentError(
                f"{step!r} does not move {', '.join(lost)}, nor does another funded step of this model: PyMC's own "
                "samplers of them would see the raw rows. Make a step with epsilon=... for them too and pass all of "
                "them to pm.sample(step=[...]), or use dp.sample(step=[...])."
            )

    def temper(self, step: PrivateStep, draws: int) -> None:
        """Let a priced step, and those that move the other variables, take the least of their powers of the likelihood.

        With a power each their chain would have no stationary distribution that is known. All processes find the same.
        """
        movers = [found[-1] for name in self.every if not step.moves(name) and (found := self._movers(step, name))]
        for other in movers:
            other.price_chains(draws)
        least = min(other.power for other in (step, *movers))
        for other in (step, *movers):
            other.lower(least)

    def require_pace(self, step: PrivateStep) -> None:
        """Raise where a variable is not moved by a funded step that goes on together with this one."""
        for name in self.every:
            if not step.moves(name) and not any(_together(step, other) for other in self._movers(step, name)):
                raise PrivacyError(
                    f"{step!r} goes on alone, and something else moves {name}: PyMC's own samplers would see the raw "
                    "rows. Pass all funded steps of this model to one pm.sample(step=[...])."
                )

    def _movers(self, step: PrivateStep, name: str) -> list[PrivateStep]:
        return [other for other in self.steps if other is not step and other.names and other.moves(name)]


def _together(step: PrivateStep, other: PrivateStep) -> bool:
    """Whether two steps are at the same draw of their chains, or one of them just ahead."""
    ahead = step.count // step.steps_per_draw - other.count // other.steps_per_draw
    return other.in_chain and abs(ahead) <= 1


__all__ = ["ATTRIBUTE", "Companions"]
