"""The contract of every private step method: what is paid for, when rows are read, what a draw shows."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, Self, final, override

import numpy as np
from pymc import Model
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp._interrupts import leave_to_parent
from pymc_dp.accounting import Budget, Event
from pymc_dp.before_kernel import secure_generator
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.of_context import context_model
from pymc_dp.kernel.randomness import insecure
from pymc_dp.release.paid import paid
from pymc_dp.release.record import ReleaseRecord, SamplerRecord
from pymc_dp.rows.gate import opened_gate
from pymc_dp.samplers.chain_account import by_token
from pymc_dp.step_methods.binding import Binding
from pymc_dp.step_methods.companions import Companions
from pymc_dp.step_methods.cost import WithCost
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.own_variables import Names, free_names, names_given
from pymc_dp.step_methods.preview import Preview, previewed
from pymc_dp.step_methods.shown import SPENT, ShownStep
from pymc_dp.step_methods.specified import SpecifiedStep

Point = dict[str, np.ndarray]
Guarantee = Literal["exact", "stepwise", "asymptotic"]
ACTIVE, IDENTITY = "active", "step_identity"


@dataclass_state
class PrivateStepState(StepMethodState):
    """Sampling state: how many steps were made, and the state of the privacy randomness, which is secret.

    It may only be set to go on with the same chain from the point it was saved with: from another point the steps would
    be new releases that nothing pays for.
    """

    tune: bool
    count: int
    randomness: dict[str, Any] | None
    settings: dict[str, Any] = field(metadata={"frozen": True})


class PrivateStep(ShownStep, WithCost, SpecifiedStep, ABC):
    """Base of the private samplers.

    A step without a budget, ``dp.OPS()``, is a **specification**: ``dp.sample(step=...)`` binds it to a model and a
    budget. A step with one, ``dp.OPS(epsilon=1, chains=1)`` inside of a model, is **funded**: it holds the rows, and
    works in ``pm.sample(step=...)``; pass the trace through ``dp.scrub``. It is bound (`binding`) and, once the number
    of steps is known, priced (`priced`); a chain has a `generator`. See `Stages`.

    A subclass says how it plans (`plan`: reads public things only), what it costs (`price`: given a budget and a number
    of steps, before rows are read), what it reads (`load`: once, after the budget was charged) and how it moves
    (`start_chain`, `advance`). Nothing it does outside of `advance` may depend on a row.

    Attributes
    ----------
    guarantee : {"exact", "stepwise", "asymptotic"}
    default_draws : int
        Draws of one chain where ``dp.sample(draws=None)``.
    default_tune : int
        Tuning steps of one chain where ``dp.sample(tune=None)``; they are paid for.
    free_on_releases : bool
        Whether the step also samples a private model, where it costs nothing.
    public_stats : tuple of str
        Statistics beside ``epsilon_spent`` that may leave: functions of released states and public numbers.
    moves_some : bool
        Whether the step can move some of the free variables, given the states of the others, which are released.
    names : tuple of str, optional
        Those that it moves; None for all.
    share : float
        Weight of the step where several share a budget.
    power : float
        Power of the likelihood in the distribution that the chain leaves invariant, where that is one.
    left : tuple of str
        Free variables for PyMC's own samplers, which see the model without its rows.
    """

    guarantee: ClassVar[Guarantee]
    default_draws: ClassVar[int] = 1000
    default_tune: ClassVar[int] = 0
    free_on_releases: ClassVar[bool] = False
    public_stats: ClassVar[tuple[str, ...]] = ()
    moves_some: ClassVar[bool] = False
    power: float = 1.0
    left: Names = ()
    companions: Companions | None = None
    previewing = False
    """Whether nothing will be sampled, so that a subclass may leave out what only sampling needs."""
    shown = False
    """Whether a bar may show that rows are copied: their number only, where that is public."""
    default_tune_steps = 0
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        SPENT: (np.float64, []),
        ACTIVE: (bool, []),
        IDENTITY: (np.int64, []),
    }
    _state_class = PrivateStepState

    def __init__(
        self,
        vars: Any = None,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        chains: int = 1,
        domain: Domain | None = None,
        model: Model | None = None,
        share: float = 1.0,
        settings: Mapping[str, Any],
        blocked: bool = True,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: Any = None,
    ) -> None:
        self.settings: dict[str, Any] = dict(settings)
        self.tune, self.count, self.rng = False, 0, rng
        self.vars: list[Variable] = []
        self.var_names: tuple[str, ...] = ()
        self.names, self.share = names_given(vars), _validate.epsilon(share, "share")
        if self.share != 1 and (epsilon is not None or not self.moves_some):
            raise ArgumentError(
                f"share={share} is for samplers of some variables, which share the budget of dp.sample(step=[...]). "
                "Leave it out."
            )
        if epsilon is None:
            if (vars is not None and not self.moves_some) or delta or chains != 1 or domain is not None:
                what = "delta" if self.moves_some else "vars, delta"
                raise ArgumentError(
                    f"{type(self).__name__} has no budget, so {what}, chains and domain mean nothing to it. Give "
                    "it epsilon=..., or leave them out and pass them to dp.sample."
                )
            return
        source = context_model(model)
        self.names = self.names_in(source)
        self.refuse_metric(domain)
        budget = Budget(_validate.epsilon(epsilon), delta)
        inspection = self.inspect(source, domain)
        self._bind(inspection, source, budget, _validate.many("chains", chains))
        self.price(Funding(budget=budget, chains=chains, steps=1))  # refuse now what no number of steps can mend
        with paid(inspection, budget, diameter=self.diameter) as payment:
            payment.read(self.load, holder=self)
        self.companions = Companions.join(source, self)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "start_chain" in vars(cls):
            cls.start_chain = by_token(cls.start_chain)  # type: ignore[method-assign]

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @final
    def inspect(self, model: Model, domain: Domain | None) -> Inspection:
        """Find what `plan` needs to know of a model."""
        return self.of_inspected(inspect(model, domain, per_unit=self.knows_metric))

    def of_inspected(self, found: Inspected) -> Inspection:
        """Return what `plan` needs of what was found; a step that needs less than a release may refuse less."""
        return found.sums

    @abstractmethod
    def plan(self, inspection: Inspection) -> Model:
        """Check the model and prepare everything public; return the prior model that is to be sampled.

        Raises `UnsupportedModelError` with every problem at once. Reads no private value.
        """

    @abstractmethod
    def price(self, funding: Funding) -> Event:
        """Choose temperature or noise for a budget and return what all steps of all chains cost: never above it.

        Reads no private value. May be called again, with another number of steps.
        """

    @abstractmethod
    def load(self) -> None:
        """Read the rows, once; the budget was charged."""

    def forget(self) -> None:
        """Let go of the rows, once no chain will begin any more."""

    def start_chain(self) -> None:
        """Forget whatever one chain may not tell another; the generator of the chain is in place.

        Begins nothing by hand, whatever a subclass does in it: a chain takes a token, in `setup_chain`.
        """

    @abstractmethod
    def advance(self, point: Point) -> Point:
        """Make one step from a point of the prior model (value variables) to another, with `self.generator`.

        Must return the keys of `point` in their order, as arrays of their dtypes.
        """

    @abstractmethod
    def describe(self) -> SamplerRecord:
        """Say what was done, in public terms, for the trace."""

    def temper(self, power: float) -> Event:
        """Lower the power of the likelihood and return what all steps cost then, which is no more."""
        raise ArgumentError(f"{type(self).__name__} cannot be tempered; this is an error of pymc_dp.")

    def lower(self, power: float) -> None:
        """Lower the power of the likelihood, if it is greater."""
        if self.power > power:
            self._set_price(self.funding, self.temper(power))

    def lengths(self) -> tuple[int, int]:
        """Return how many draws, and how many of tuning, a chain has by default."""
        return self.default_draws, self.default_tune

    def assumed(self) -> tuple[str, ...]:
        """Say what the step takes as public beside what the inspection lists."""
        return ()

    # --- life of a step -----------------------------------------------------------------------------------------------

    def bound(self, inspection: Inspection, budget: Budget, *, chains: int, steps: int) -> tuple[Self, Event]:
        """Return a copy of a specification, bound to a model and priced; reads no private value, spends nothing."""
        if self.is_bound:
            raise ArgumentError(
                f"{type(self).__name__} has a budget of its own already. Pass dp.{type(self).__name__}() without "
                "epsilon to dp.sample, or use the funded step in pm.sample."
            )
        step = copy.copy(self)
        step.settings = dict(self.settings)
        step._bind(inspection, None, budget, chains)
        step._fund(steps)
        if not step.previewing:
            step.priced.curve  # noqa: B018 (before the step is copied into other processes)
        return step, step.event

    def at(self, budget: Budget | None = None, *, chains: int | None = None, steps: int | None = None) -> Self:
        """Return a copy that is priced for another budget, or other numbers; reads no private value, spends nothing."""
        binding, funding = self.binding, self.funding
        step = copy.copy(self)
        step._binding = replace(binding, budget=budget or binding.budget, chains=chains or binding.chains)
        step._fund(steps or funding.steps)
        return step

    def preview(self, model: Model, domain: Domain | None, budget: Budget, *, chains: int = 1) -> Preview:
        """Say what this specification would do, or what is in the way; reads no private value, spends nothing."""
        return previewed(self, inspect(model, domain, per_unit=self.knows_metric), budget, chains)

    @override
    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        leave_to_parent()
        super().setup_chain(rng, tune, draws)
        if self.companions is not None:
            self.companions.check(self)
        self.price_together(tune + draws)
        paid, wanted = self.funding.steps, (tune + draws) * self.steps_per_draw
        if paid != wanted:
            raise PrivacyError(
                f"This step was paid for {paid} steps a chain, but {wanted} are wanted. Make a new step."
            )
        token = self.binding.claims.take(tune, draws, secure=insecure() is None)
        with token.begins():
            self.begin_chain(token.number, tune)

    def price_chains(self, draws: int) -> None:
        """Price chains of so many draws, those of tuning included, if they are not priced yet."""
        if not self.is_priced:
            self._fund(draws * self.steps_per_draw)

    def price_together(self, draws: int) -> None:
        """Price chains, those of companions too, at one temperature."""
        self.price_chains(draws)
        if self.companions is not None:
            self.companions.temper(self, draws)

    @final
    @by_token
    def begin_chain(self, stream: int, tune: int) -> None:
        """Begin a chain by its token, with randomness of its own: `stream` numbers those that run side by side."""
        self.count, self.tuning_steps, self.stream = 0, tune * self.steps_per_draw, stream
        self.generator = secure_generator(stream)
        self.start_chain()

    @override
    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        self.generator  # noqa: B018 (raises where no chain has begun)
        self.require_paid()
        if self.companions is not None:
            self.companions.require_pace(self)
        with opened_gate():  # some states are read beside rows anew, in whatever process runs the chain
            for _ in range(self.steps_per_draw):
                point = self.advance(point)
                self.count += 1
        return point, self.statistics()

    def require_paid(self) -> None:
        """Raise if every step that was paid for has been made."""
        if self.is_priced and self.count + self.steps_per_draw > self.funding.steps:
            raise BudgetExceeded(
                f"All {self.funding.steps} steps of this chain that were paid for have been made. Make a new step, "
                "with a budget of its own."
            )

    def statistics(self) -> list[dict[str, Any]]:
        """Return what PyMC records beside a state; scrub keeps of it what may leave."""
        identity = self.binding.claims.identity if self.is_bound else 0
        return [{SPENT: self.spent(), ACTIVE: self.active(), IDENTITY: identity}]

    @property
    def arithmetic(self) -> str:
        """Whether the last bits of what is drawn are covered: "hardened", or "float64"."""
        return "float64"

    @property
    def claimed(self) -> Guarantee:
        """Class of guarantee of what was planned; a subclass may plan in several ways."""
        return self.guarantee

    def _bind(self, inspection: Inspection, source: Model | None, budget: Budget, chains: int) -> None:
        inspection.require()
        self.check_unit(inspection.domain, budget)
        self._binding = Binding.of(inspection, budget, chains)
        self.prior_model = self.plan(inspection)
        sampled = self.prior_model if source is None else source
        self.vars = [sampled.rvs_to_values[rv] for rv in sampled.free_RVs if self.moves(str(rv.name))]
        self.var_names = tuple(str(var.name) for var in self.vars)

    def _fund(self, steps: int) -> None:
        funding = Funding(budget=self.binding.budget, chains=self.binding.chains, steps=steps)
        self._set_price(funding, self.price(funding))

    def moves(self, name: str) -> bool:
        """Whether a free variable is among those of this step."""
        return self.names is None or name in self.names

    @property
    def own(self) -> Names:
        """Free variables that the step moves."""
        return tuple(str(rv.name) for rv in self.prior_model.free_RVs if self.moves(str(rv.name)))

    def names_in(self, model: Model) -> Names | None:
        """Return the names of the step's variables in a model; None where they are all."""
        found = None if self.names is None else free_names(self.names, model)
        found = None if found is None or len(found) == len(model.free_RVs) else found
        if found is not None and not self.moves_some:
            raise ArgumentError(
                f"vars names {list(found)}, but {type(self).__name__} moves all free variables at once, and PyMC's own "
                "samplers of the others would see the raw rows. Leave vars out."
            )
        return found

    def record(self) -> ReleaseRecord:
        """Return what the trace says: budget, guarantee, assumptions, and the sampler's own words."""
        binding = self.binding
        begun = binding.claims.taken()
        if begun:  # in other processes perhaps, where they were priced
            self.price_together(begun[0]["tune"] + begun[0]["draws"])
        seeded = insecure() is not None or not all(chain["secure"] for chain in begun)
        described = self.describe()
        return ReleaseRecord(
            epsilon=self.row_epsilon,
            delta=binding.budget.delta,
            asked=binding.budget.epsilon,
            rest=self.use_of_rest(begun[0]["tune"] if begun else 0),
            guarantee="none" if seeded else self.claimed,
            arithmetic=self.arithmetic,
            neighbours=binding.domain.neighbours,
            noise=described.noise,
            noise_aware=True,
            event=self.event.to_dict(),
            tables=(),
            sampler=replace(described, power=min(described.power, self.power)),
            assumptions=tuple(dict.fromkeys((*binding.assumptions, *self.assumed()))),
            left_out=binding.left_out,
            metric=self.metric_record(),
        )


__all__ = ["Guarantee", "Point", "PrivateStep", "PrivateStepState"]
