"""Several private steps that take turns, each on variables of its own: one budget, one event, one release."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, final, override

from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp.accounting import Budget, ComposedEvent, Event, proved_within, total_epsilon
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.inspect import check_domain
from pymc_dp.inspection.owners import refuse_persons
from pymc_dp.inspection.weights import refuse_weights
from pymc_dp.release.record import SamplerRecord
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.own_variables import check_apart, reached_by_rows
from pymc_dp.step_methods.together import described

CLOSE = 1e-3
"""How near the shares are brought to the largest that the budget allows."""
LEFT_TUNE = 500
"""Tuning draws where PyMC's own samplers, which need them, move some of the variables."""


@dataclass_state
class ComposedState(PrivateStepState):
    """Sampling state: of the contract, and of every step."""

    states: list[Any]


@final
class ComposedSteps(PrivateStep):
    """Private steps that take turns: a step of it is one of each, given the states of all others, which are released.

    Parameters
    ----------
    steps : sequence of PrivateStep
        Specifications, each with names of variables.
    model : pymc.Model
    domain : Domain, optional

    Raises
    ------
    ArgumentError
        If a step moves all variables, two move the same, or one is left over that rows tell something about.

    Notes
    -----
    **Shares.** Each step is priced for its share of ε and δ. Events compose better than budgets add, so that all shares
    of ε are then raised by one common factor, as far as the total of the composed event at δ allows; no row is read.

    **Target.** Where one of the steps tempers the likelihood, all take the least of their powers β, without any cost:
    the chain has prior times likelihood^β as its stationary distribution. With a power each it would have none that is
    known.

    **Variables left over** are moved by PyMC's own samplers on the model without its rows. That is right only for those
    whose conditional density, given all others, has no row in it, which is looked up in the graph.

    **Guarantee.** Every state of every step is released, so that what one step does may depend on all others' states.
    The steps are interactive mechanisms that take turns on the same rows: their composition is that of their events
    (Vadhan, Zhang 2023; zero-concentrated losses add whatever is chosen by looking at what came before). What PyMC's
    own samplers do is computed from released states alone.

    References
    ----------
    Vadhan, Zhang (2023), Concurrent composition theorems for differential privacy, doi 10.1145/3564246.3585241; Lyu
    (2022), Composition theorems for interactive differential privacy, NeurIPS 35 (Rényi divergences).
    """

    name = "composed"
    guarantee: ClassVar[Guarantee] = "stepwise"
    _state_class = ComposedState

    def __init__(self, steps: Sequence[PrivateStep], model: Model, domain: Domain | None) -> None:
        super().__init__(settings={})
        self._given_power = tuple(step.power for step in steps)
        self.parts: tuple[PrivateStep, ...] = tuple(_with_names(step, model, len(steps)) for step in steps)
        own = [(repr(step), step.names or ()) for step in self.parts]
        check_apart(own)
        names = {name for _, moved in own for name in moved}
        free = [str(rv.name) for rv in model.free_RVs]
        self.names = tuple(name for name in free if name in names)
        self.left = tuple(name for name in free if name not in names)
        if model.observed_RVs:
            _check_left(self.left, own, reached_by_rows(model))

    @override
    def lengths(self) -> tuple[int, int]:
        every = [step.lengths() for step in self.parts]
        return max(draws for draws, _ in every), max([tune for _, tune in every] + [LEFT_TUNE] * bool(self.left))

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def refuse_metric(self, domain: Domain | None) -> None:
        check_domain(domain)
        refuse_persons(domain)
        refuse_weights(domain)
        if domain is not None and domain.metric is not None:
            what = "steps in a list share a budget that is accounted per row"
            remedy = "Pass one step for all variables, step=dp.TemperedGibbs() for example: it accounts ε per unit."
            raise UnsupportedModelError([Problem(where="Domain(metric=...)", what=what, remedy=remedy)])

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        return self.parts[0].of_inspected(found)

    @override
    def plan(self, inspection: Inspection) -> Model:
        shares = self._shares(1.0)
        specifications, problems = self.parts, list[Problem]()
        self.parts = tuple(map(copy.copy, specifications))
        for step, budget in zip(self.parts, shares, strict=True):
            step.settings = dict(step.settings)
            try:
                step._bind(step.of_inspected(inspection.inspected), None, budget, self.binding.chains)
            except UnsupportedModelError as error:
                problems += error.problems
        if problems:
            raise UnsupportedModelError(list(dict.fromkeys(problems)))
        prior_model = self.parts[0].prior_model
        if any(_layout(step.prior_model) != _layout(prior_model) for step in self.parts):
            raise PrivacyError("Two steps sample other variables; this is an error of pymc_dp.")
        return prior_model

    def _shares(self, factor: float) -> tuple[Budget, ...]:
        """Return the budget of each step, its epsilon raised by a factor."""
        parts = self.budget.split([step.share for step in self.parts])
        return tuple(replace(part, epsilon=part.epsilon * factor) for part in parts)

    @override
    def price(self, funding: Funding) -> Event:
        best, high = 1.0, sum(step.share for step in self.parts) / min(step.share for step in self.parts)
        while not self._fits(best, funding):
            best, high = best / 2, best
            if best < CLOSE:
                raise PrivacyError("The shares of the budget do not fit it; this is an error of pymc_dp.")
        if len(self.parts) > 1:
            while high > best * (1 + CLOSE):
                middle = (best * high) ** 0.5
                best, high = (middle, high) if self._fits(middle, funding) else (best, middle)
        return self._event(best, funding)

    def _fits(self, factor: float, funding: Funding) -> bool:
        return proved_within(self._event(factor, funding), funding.budget.epsilon, funding.budget.delta)

    def _event(self, factor: float, funding: Funding) -> Event:
        """Price every step for its share, raised by a factor, at one temperature; return what they cost together."""
        for step, own, budget in zip(self.parts, self._given_power, self._shares(factor), strict=True):
            step._binding, step.power = replace(step.binding, budget=budget, chains=funding.chains), own
            step._fund(funding.steps * step.steps_per_draw)
        self.power = min(step.power for step in self.parts)
        for step in self.parts:
            step.lower(self.power)
        return ComposedEvent(events=tuple(step.event for step in self.parts))

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        for step in self.parts:
            step.shown = self.shown
            step.load()

    @override
    def forget(self) -> None:
        for step in self.parts:
            step.forget()

    # --- chain --------------------------------------------------------------------------------------------------------

    @override
    def start_chain(self) -> None:
        for place, step in enumerate(self.parts):
            step.begin_chain(self.stream * len(self.parts) + place, self.tuning_steps)

    @override
    def advance(self, point: Point) -> Point:
        for step in self.parts if self.active() else ():  # what one filter has ended is ended for all
            point, _ = step.step(point)
        return point

    @override
    def spent_so_far(self) -> float:
        """Add what the steps have spent: no less than their composition."""
        return sum(step.spent_so_far() for step in self.parts)

    @override
    def _cost_of(self, steps: int) -> float | None:
        found = [part.on_the_way(part.event, part.funding, steps * part.steps_per_draw) for part in self.parts]
        events = [event for event in found if event is not None]
        whole = ComposedEvent(events=tuple(events))
        return total_epsilon(whole, self.budget.delta).epsilon if len(events) == len(found) else None

    @override
    def active(self) -> bool:
        return all(step.active() for step in self.parts)

    @property
    def states(self) -> list[Any]:
        """Sampling states of the steps."""
        return [step.sampling_state for step in self.parts]

    @states.setter
    def states(self, states: Sequence[Any]) -> None:
        for step, state in zip(self.parts, states, strict=True):
            step.sampling_state = state

    # --- words --------------------------------------------------------------------------------------------------------

    @override
    def assumed(self) -> tuple[str, ...]:
        return tuple(item for step in self.parts for item in (*step.binding.assumptions, *step.assumed()))

    @override
    def describe(self) -> SamplerRecord:
        return replace(described(self.parts, self.left), chains=self.funding.chains)

    @override
    def __repr__(self) -> str:
        return f"[{', '.join(f'dp.{step!r}' for step in self.parts)}]"


def _with_names(step: PrivateStep, model: Model, count: int) -> PrivateStep:
    """Return a copy whose names are those of free variables of a model."""
    if step.is_bound:
        raise ArgumentError(
            f"{step!r} has a budget of its own already. Pass dp.{type(step).__name__}([...]) without epsilon to "
            "dp.sample, or use the funded steps in pm.sample."
        )
    if step.names is None and count > 1:
        words = f"step holds {step!r}, which moves all free variables, beside other steps."
        if not step.moves_some:
            raise ArgumentError(f"{words} It can do no less: pass it alone, step=dp.{step!r}.")
        raise ArgumentError(f"{words} Name its own, such as dp.{type(step).__name__}(['{model.free_RVs[0].name}']).")
    named = copy.copy(step)
    named.names = step.names_in(model) or tuple(str(rv.name) for rv in model.free_RVs)
    return named


def _check_left(left: Sequence[str], own: Sequence[tuple[str, tuple[str, ...]]], reached: frozenset[str]) -> None:
    """Refuse to leave over what rows tell something about, and steps of what they tell nothing about."""
    lost = [name for name in left if name in reached]
    if lost:
        raise ArgumentError(
            f"step leaves over {', '.join(lost)}, but the rows carry information about "
            f"{'it' if len(lost) == 1 else 'them'} given the other variables: PyMC's own samplers would need the "
            "rows. Name them in one of the steps."
        )
    for words, names in own:
        if not reached & set(names):
            raise ArgumentError(
                f"step holds {words}, but no row tells anything about its variables given the others, so it needs no "
                "budget. Leave it out: PyMC's own samplers move them at no cost."
            )


def _layout(prior_model: Model) -> list[tuple[str, str]]:
    return [(str(rv.name), str(prior_model.rvs_to_values[rv].name)) for rv in prior_model.free_RVs]


__all__ = ["ComposedSteps"]
