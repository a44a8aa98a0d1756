"""Stochastic-gradient samplers: noised sums of clipped gradients of random batches, and dynamics that follow them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, cast, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import ComposedEvent, SelfComposedEvent, total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.row_density import clamped_facts
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.randomness import insecure
from pymc_dp.release.record import PartRecord, ReleaseRecord, SamplerRecord, uses_of
from pymc_dp.rows.stored import Description, Rows, StoredRows, stored_rows
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.langevin.arguments import show_all
from pymc_dp.step_methods.langevin.batches import (
    LARGEST_STABLE,
    SAMPLINGS,
    Constant,
    Course,
    Limits,
    Sampling,
    StepSizes,
    algorithm_two,
    positive,
    require_delta,
    step_sizes,
)
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.start import HALF, GivenStart, Start, planned_start, start_settings
from pymc_dp.step_methods.langevin.walk import PRECISIONS, GradientWalk, Precision
from pymc_dp.step_methods.ops import OPS


class StochasticGradient(GradientWalk):
    """Base: batches, clipping, noise and price; a subclass says what it does with noised gradients.

    A step estimates the gradient of the log-posterior by ``∇log prior(θ) + N/b Σ clipped gradients + N(0, σ²)``; the
    noise makes the sum a Gaussian mechanism of multiplier z = σ b / (N C) on a random batch, and all else is a function
    of released estimates and fresh randomness.
    """

    guarantee: ClassVar[Guarantee] = "stepwise"

    @override
    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        show_all(cls, StochasticGradient.__init__, PrivateStep.__init__)

    def __init__(
        self,
        vars: Any = None,
        *,
        batch_size: int | None = None,
        clip_norm: float | EstimatedNorm = 1.0,
        step_size: float | StepSizes | None = None,
        sampling: Sampling | None = None,
        papers: bool = False,
        dtype: Precision = "float64",
        steps_per_draw: int = 1,
        start: OPS | None = None,
        start_share: float = HALF,
        rows: Rows | None = None,
        scratch: str | PathLike[str] | None = None,
        more: dict[str, Any] | None = None,
        **funding: Any,
    ) -> None:
        stored = self._checked_rows(rows, start)
        self._norm: float | None = None
        self._norm_seeded = False
        self.start: Start = GivenStart()
        rule = step_sizes(step_size)
        settings = {
            "batch_size": None if batch_size is None else _validate.many("batch_size", batch_size),
            "clip_norm": known_norm(clip_norm, rule),
            "step_size": rule.size if isinstance(rule, Constant) else rule,
            "sampling": None if sampling is None else _validate.choice("sampling", sampling, SAMPLINGS),
            "papers": _validate.flag("papers", papers),
            "dtype": _validate.choice("dtype", dtype, PRECISIONS),
            "steps_per_draw": _validate.many("steps_per_draw", steps_per_draw),
            **start_settings(start, start_share),
            "rows": None if stored is None else Description(repr(stored)),
            "scratch": None if scratch is None else str(_validate.path("scratch", scratch)),
            **(more or {}),
        }
        super().__init__(vars, stored=stored, settings=settings, **funding)

    def _checked_rows(self, rows: Rows | None, start: OPS | None) -> StoredRows | None:
        if rows is not None and start is not None:
            raise ArgumentError(
                f"start={start!r} would draw from the posterior of the rows of the model, but these are dummies, "
                "because rows= holds the table. Give start= or rows=, not both."
            )
        return stored_rows(rows)

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @abstractmethod
    def _followed_by(self) -> tuple[tuple[str, str], ...]:
        """Say what is followed, as facts of the record."""

    def natural(self, sigma: float) -> float:
        """Return η at which noise `sigma` on gradients is what the dynamics asks for: (η σ)² = variance(η)."""
        return self.dynamics.variance(1.0) / sigma**2

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def plan(self, inspection: Inspection) -> Model:
        new = super().plan(inspection)
        self._plan_start(inspection, new)
        return new

    def _plan_start(self, inspection: Inspection, new: Model) -> None:
        budget, chains = self.binding.budget, self.binding.chains
        self.start = planned_start(self.settings, inspection, new, budget, chains=chains, previewing=self.previewing)

    @override
    def assumed(self) -> tuple[str, ...]:
        return self.start.assumptions

    @property
    @override
    def _sampling(self) -> Sampling:
        return cast(Sampling, self.settings["sampling"] or "poisson")

    @override
    def price(self, funding: Funding) -> Event:
        budget = funding.budget
        require_delta(budget, type(self).__name__)
        self.start = self.start.priced(funding)
        if self._estimate is not None:
            self._estimate.check(budget, self.neighbours, self.population)
        paid = {"beside": self._beside(self.start.event), **self.batches.arguments}
        self._least = noise_multiplier(budget.epsilon, budget.delta, funding.uses, **paid) * (1 + 1e-9)
        self._settle(funding)
        if not self.previewing:
            self._compile()
        return self._whole(self.batches.event(self.multiplier, funding.uses))

    @override
    def _fund(self, steps: int) -> None:
        super()._fund(steps)
        if self._norm is not None:  # noise and step sizes of a clip norm that was released before
            self._settle(self.funding)

    def _beside(self, start: Event | None) -> Event | None:
        """Return what is paid beside the steps, of starts this."""
        found = [start] if start is not None else []
        if self._estimate is not None:
            found.append(self._estimate.event(self.budget))
        return ComposedEvent(events=tuple(found)) if len(found) > 1 else next(iter(found), None)

    def _whole(self, steps: Event) -> Event:
        """Return what steps cost together with all that comes before them."""
        beside = self._beside(self.start.event)
        return steps if beside is None else ComposedEvent(events=(beside, steps))

    @override
    def on_the_way(self, event: Event, funding: Funding, steps: int) -> Event | None:
        *_, whole = event.events if isinstance(event, ComposedEvent) else (event,)
        made = super().on_the_way(whole, funding, steps)
        return None if made is None else self._whole(made)

    @override
    def use_of_rest(self, tune: int) -> str:
        if not self.settings["papers"]:
            return super().use_of_rest(tune)
        left = self.priced.epsilon < self.budget.epsilon / 2
        return "papers=True adds the noise of the papers' theorem; without it all would be used" if left else ""

    @property
    @override
    def claimed(self) -> Guarantee:
        return self.start.guarantee(self.guarantee)

    @property
    def _estimate(self) -> EstimatedNorm | None:
        given = self.settings["clip_norm"]
        return given if isinstance(given, EstimatedNorm) else None

    @property
    @override
    def clip_norm(self) -> float:
        """C; 1 until it is known, as the noise multiplier and all that is priced are the same for every C.

        An estimate is not known before the number of steps is fixed, so that this cannot be chosen with it in view.
        """
        if self._estimate is None:
            return float(self.settings["clip_norm"])
        return 1.0 if self._norm is None or not self.is_priced else self._norm

    def _settle(self, funding: Funding) -> None:
        """Choose noise and step sizes for the clip norm; the noise multiplier is at least what is needed."""
        self.course = self._course(self._deviation(self._least), funding)

    def _course(self, needed: float, funding: Funding) -> Course:
        """Choose step sizes and noise, the latter at least `needed` on every entry of a gradient."""
        rule = step_sizes(self.settings["step_size"])
        sigma = self._papers_deviation(needed, funding) if self.settings["papers"] else needed
        natural = self.natural(sigma)
        if isinstance(rule, Constant) and not self.settings["papers"]:
            if rule.size is not None and rule.size > natural:
                raise ArgumentError(self._too_large(rule.size, natural, funding))
            size = min(natural, self._stable) if rule.size is None else rule.size
            # Smaller steps ask for more noise on a gradient; then all of it may protect the rows, which costs less.
            sigma = max(sigma, math.sqrt(self.dynamics.variance(size)) / size)
        sizes = rule.sizes(funding.steps, Limits(natural=natural, stable=self._stable))
        return Course(sizes=sizes, sigma=sigma, temperature=sizes / self.natural(sigma))

    def _papers_deviation(self, needed: float, funding: Funding) -> float:
        """Return the noise of the papers' algorithm 2, once it is known to be enough."""
        budget = funding.budget
        rest = self.start.rest(budget)
        found = algorithm_two(self.clip_norm, funding.uses, rest.epsilon, rest.delta)
        if found < needed and funding.steps > 1:  # a funded step is priced for a single one first
            raise ArgumentError(
                f"papers=True: algorithm 2's noise, {found:.4g} on a gradient, is below the {needed:.4g} that is "
                f"needed for {budget}: its number of steps is too small for its theorem. Make more steps, or leave "
                "papers out."
            )
        return max(found, needed)

    @property
    def _stable(self) -> float:
        return LARGEST_STABLE / (self.population * self.clip_norm**2)

    @property
    def step_size(self) -> float:
        """Step size of the last steps."""
        return float(self.course.sizes[-1])

    def _deviation(self, multiplier: float) -> float:
        """Noise on an estimated gradient, of a sum that gets noise of so many clip norms: z C N / b."""
        return self.batches.deviation(multiplier, self.clip_norm)

    @property
    def multiplier(self) -> float:
        """Noise on the sum of clipped gradients over the clip norm, rounded down."""
        return self.batches.multiplier(self.course.sigma, self.clip_norm)

    def _too_large(self, wanted: float, largest: float, funding: Funding) -> str:
        sigma = math.sqrt(self.dynamics.variance(wanted)) / wanted
        steps = self.batches.event(self.batches.multiplier(sigma, self.clip_norm), funding.uses)
        cost = total_epsilon(self._whole(steps), funding.budget.delta).epsilon
        return (
            f"step_size={wanted:g} has too little noise for {funding.uses} steps within {funding.budget}: they would "
            f"cost epsilon={cost:.4g}. The largest step size that would do is {largest:.4g}. Leave step_size out to "
            "have one chosen, make fewer steps, or clip to a smaller norm. dp.schedules.PolynomialDecay and "
            "dp.schedules.AlphaPhase start "
            "with larger steps, at a higher temperature than the target."
        )

    @property
    @override
    def _paid(self) -> Event:
        """What was charged for each step, so many times: for a norm that is released later there is as much noise."""
        event = self.event
        *_, steps = event.events if isinstance(event, ComposedEvent) else (event,)
        return repeated(cast(SelfComposedEvent, steps).event, self.funding.steps)

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        super().load()
        self.start.load()
        if self._estimate is not None:
            self._buy(self._estimate)

    def _buy(self, estimate: EstimatedNorm) -> None:
        """Release a clip norm, once for all chains, and let noise and step sizes follow it."""
        assert self._rows is not None
        position = self.gradients.flat(self.prior_model.initial_point())
        norms, priced = self.row_norms(position, self._rows), self.multiplier
        self._norm, self._norm_seeded = estimate.estimate(norms, self.budget, self.neighbours), insecure() is not None
        if self.is_priced:
            self._settle(self.funding)
            if self.multiplier < priced * (1 - 1e-9):
                raise PrivacyError("The noise would be below what was paid for; this is an error of pymc_dp.")

    @override
    def record(self) -> ReleaseRecord:
        found = super().record()
        return replace(found, guarantee="none") if self._norm_seeded else found

    @override
    def forget(self) -> None:
        super().forget()
        self.start.forget()

    # --- chain --------------------------------------------------------------------------------------------------------

    @override
    def start_chain(self) -> None:
        super().start_chain()
        self.start.begin()

    @override
    def begin(self, point: Point, generator: np.random.Generator) -> Point:
        return self.start.point(point, generator)

    @override
    def describe(self) -> SamplerRecord:
        total = total_epsilon(self.event, self.funding.budget.delta)
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"{self._noise()}, multiplier {self.multiplier:.6g}",
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("batch", str(self.batches)),
                *self._clipping(),
                ("step size", self._sizes()),
                *self.start.facts,
                *self._followed_by(),
                *self.course.warmth,
                ("noise multiplier", f"{self.multiplier:.6g} (standard deviation over clip norm, per step)"),
                ("accountant", f"{total.accountant}: epsilon={total.epsilon:.6g}"),
                ("rows, public", f"{self.population}"),
                *clamped_facts(self._clamped_rows),
            ),
            parts=tuple(self._parts()),
        )

    def _parts(self) -> Iterator[PartRecord]:
        """Everything that is charged, each by itself, where there is more than the steps."""
        first = [("posterior sample at the start", "one per chain", "exponential mechanism", self.start.event)]
        if self._estimate is not None:
            norm = self._estimate.event(self.budget)
            first.append(("estimate of the clip norm", "once", "exponential mechanism", norm))
        before = [(name, uses, noise, event) for name, uses, noise, event in first if event is not None]
        if not before:
            return
        *_, steps = cast(ComposedEvent, self.event).events
        funding, name = self.funding, type(self).__name__
        uses = uses_of(funding.chains, funding.steps)
        for part, times, noise, event in [*before, (f"{name}, steps", uses, self._noise(), steps)]:
            cost = total_epsilon(event, self.budget.delta).epsilon
            yield PartRecord(name=part, variables=self.own, uses=times, noise=noise, epsilon=cost)

    def _noise(self) -> str:
        return "Gaussian noise on every gradient"

    def _clipping(self) -> tuple[tuple[str, str], ...]:
        if self._estimate is None:
            return (("clip norm", f"{self.clip_norm:g} per row, over all parameters in unconstrained space"),)
        return self._estimate.facts(self._norm, self.budget, self.neighbours)

    def _sizes(self) -> str:
        if self._estimate is not None and self._norm is None:
            return "chosen for the clip norm once it is known"
        return self.course.shown


def known_norm(given: object, rule: StepSizes) -> float | EstimatedNorm:
    """Return a clip norm, or how it will be estimated; then no step size can be fixed before."""
    if not isinstance(given, EstimatedNorm):
        return positive("clip_norm", given)
    if isinstance(rule, Constant) and rule.size is not None:
        raise ArgumentError(
            f"step_size={rule.size:g} may be too large for a clip norm that is not known yet. Leave step_size out, "
            "give a rule such as dp.schedules.PolynomialDecay(), or give clip_norm as a number."
        )
    return given


__all__ = ["StochasticGradient"]
