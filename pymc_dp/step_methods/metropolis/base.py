"""The Metropolis family: public proposals between released states, and a bit that the rows have a say in."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp.accounting import Event, PureEvent, ZCDPEvent
from pymc_dp.errors import BudgetExceeded, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.payer import Payer
from pymc_dp.release.record import SamplerRecord
from pymc_dp.samplers.row_ratio import RowRatio, Rule
from pymc_dp.samplers.sums import ModelSums, SumsRatio
from pymc_dp.step_methods.base import Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.metropolis.arguments import Block, checked, laid_out, planned, shape_of_block, spread
from pymc_dp.step_methods.metropolis.coefficients import Place, coefficients_of
from pymc_dp.step_methods.metropolis.proposals import AdaptiveProposal, FixedProposal, Proposal
from pymc_dp.step_methods.metropolis.spending import UP, Price
from pymc_dp.transforms.likelihood import sums_problems, table_likelihoods
from pymc_dp.transforms.prior_model import shared_prior_model


@dataclass_state
class MetropolisState(PrivateStepState):
    """Sampling state: of the contract, and what the chain has spent and learnt about its proposals."""

    walk: dict[str, Any]


class PrivateMetropolis(PrivateStep):
    """A chain of proposals and accept bits; a subclass says by which rule a bit is drawn, and what it costs.

    Attributes
    ----------
    rule : str
        What is released, in words.
    spending : Price
        The account of the chain; `price` makes it.
    blocks : tuple of Block
        Values that move together; one step is a scan over all of them.
    """

    guarantee = "stepwise"
    moves_some: ClassVar[bool] = True
    default_draws: ClassVar[int] = 4000
    default_tune: ClassVar[int] = 1000
    rule: ClassVar[str]
    spending: Price
    _state_class = MetropolisState

    def __init__(
        self,
        vars: Any = None,
        *,
        clamp: float | None = None,
        scale: float | Mapping[str, Any] | None = None,
        covariance: Any = None,
        blocks: Any = None,
        steps_per_draw: int = 1,
        **funding: Any,
    ) -> None:
        given = {"clamp": clamp, "scale": scale, "covariance": covariance, "blocks": blocks}
        settings = checked(given)
        if _validate.many("steps_per_draw", steps_per_draw) != 1:
            settings["steps_per_draw"] = steps_per_draw
        self.ended = False
        self.proposals: tuple[Proposal, ...] = ()
        self._here: Place | None = None
        self._bits = 0
        super().__init__(vars, settings=settings, **funding)

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @abstractmethod
    def _accepts(self, here: Place, there: Place, reach: float) -> bool:
        """Draw the bit: the only thing that the rows have a say in; its loss was charged."""

    @abstractmethod
    def _paid_for_chain(self) -> Event:
        """Return what one chain costs, which was charged with all others."""

    @abstractmethod
    def _pay(self, kernel: Payer) -> Grant | Pool:
        """Return what pays for the bits of a chain that has begun."""

    @abstractmethod
    def _acceptance(self, dimension: int) -> float:
        """Return the share of proposals that is accepted where the rule mixes best."""

    @abstractmethod
    def _filter(self) -> str:
        """Say how the losses of steps add up, and what ends a chain."""

    # --- model --------------------------------------------------------------------------------------------------------

    @property
    def clamp(self) -> float | None:
        """Clamp of a row's log-likelihood ratio, per unit of distance; None where its range is known or proved."""
        clamp: float | None = self.settings.get("clamp")
        return clamp

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        """Look for sums of rows; where there are none, for rows that are kept apart."""
        if self.clamp is not None:
            return found.rows
        return found.rows if found.sums.problems or sums_problems(found.sums) else found.sums

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.neighbours = inspection.domain.neighbours
        self._clamped_rows = clamped(inspection.model)
        prior_model, tables = (
            (shared_prior_model(inspection), ())
            if isinstance(inspection, RowInspection)
            else table_likelihoods(inspection)
        )
        moved = [var for var in prior_model.free_RVs if self.moves(str(var.name))]
        discrete = [str(var.name) for var in moved if not var.type.dtype.startswith("float")]
        if discrete:
            raise UnsupportedModelError([_discrete(name) for name in discrete])
        self.coefficients = coefficients_of(prior_model, tables, quick=self.previewing)
        if not self.coefficients.start.possible:
            raise UnsupportedModelError([IMPOSSIBLE])
        names = {name: value for name, value in self.coefficients.value_names.items() if self.moves(name)}
        self.blocks = planned(self.settings.get("blocks"), names, self.coefficients)
        self._shapes = self._laid_out(prior_model)
        self._spread = spread(self.settings.get("scale"), names, self.coefficients)
        self.ratio: RowRatio | SumsRatio = (
            RowRatio(inspection, prior_model, self.clamp)
            if isinstance(inspection, RowInspection)
            else SumsRatio(ModelSums(tables, inspection))
        )
        if not self.previewing:
            self.ratio.compile()
        return prior_model

    def _laid_out(self, prior_model: Model) -> tuple[Array | None, ...]:
        """Return the public shape of each block's proposals; None where it is to be learnt."""
        given = self.settings.get("covariance")
        if given is None:
            return (None,) * len(self.blocks)
        matrix = laid_out(given, prior_model, self.coefficients)
        return tuple(shape_of_block(matrix, block) for block in self.blocks)

    @override
    def temper(self, power: float) -> Event:
        self.power = min(power, self.power)
        return self.event

    @override
    def load(self) -> None:
        self.ratio.load()

    # --- chain --------------------------------------------------------------------------------------------------------

    @override
    def start_chain(self) -> None:
        self.spending.restart()
        self.ended, self._here, self._begun, self._bits = False, None, False, 0
        self.ratio.begin([self._paid_for_chain()], self._pay)
        self.proposals = tuple(map(self._proposal, self.blocks, self._shapes))
        for proposal in self.proposals:
            proposal.together = self.proposals

    def _proposal(self, block: Block, shape: Array | None) -> Proposal:
        if self._spread is not None:
            widths = self._spread[block.places]
            return FixedProposal(np.diag(widths) if shape is None else widths[0] * shape)
        return AdaptiveProposal(
            block.dimension,
            tune=self.tuning_steps,
            steps=self.funding.steps,
            acceptance=self._acceptance(block.dimension),
            shape=shape,
        )

    @override
    def advance(self, point: Point) -> Point:
        if self.ended:
            return point
        here = self._place(point)
        if not self._begun:
            self._begin(here)
        for block, proposal in zip(self.blocks, self.proposals, strict=True):
            self._move(block, proposal)
            if self.ended:
                break
        after = self._here
        return point if after is None or after is here else self.coefficients.point(after.values, point)

    def _begin(self, here: Place) -> None:
        """Let every proposal look around, at public numbers."""
        for block, proposal in zip(self.blocks, self.proposals, strict=True):
            reach = partial(self._reach, block)
            proposal.begin(here.values[block.places], reach, self.spending, self.generator)
        self._begun = True

    def _move(self, block: Block, proposal: Proposal) -> None:
        """Propose another state for one block, charge the bit, and draw it."""
        assert self._here is not None
        here = self._here
        there = self.coefficients.at(block.moved(here.values, proposal.draw(here.values[block.places], self.generator)))
        reach = self._between(here, there)
        loss, accepted = self.spending.loss(reach), False
        if loss <= min(proposal.cap, self.spending.most) and reach < math.inf:
            if not self.spending.affords(reach):
                self.ended = True
                return
            try:
                accepted = self._accepts(here, there, reach)
            except BudgetExceeded:  # of the kernel, before it reads: its bits cost a hair more than they are planned at
                self.ended = True
                return
            self._bits += 1
        self._here = there if accepted else here
        proposal.learn(self._here.values[block.places], accepted, loss)

    def _drawn(self, rule: Rule, here: Place, there: Place, **given: float) -> bool:
        """Draw a bit by a rule, in the kernel."""
        return self.ratio.draw(rule, here, there, self.power, **given)

    def _between(self, here: Place, there: Place) -> float:
        """Range of g, to the power of the target, between two states: public. Infinite where a chain may not go."""
        return self._untempered(here, there) * self.power * (1.0 if self.power == 1 else UP)

    def _untempered(self, here: Place, there: Place) -> float:
        """Range of g between two states: public. Infinite where a chain may not go."""
        return self.ratio.reach(here, there) if math.isfinite(there.prior) else math.inf

    def _reach(self, block: Block, own: Array) -> float:
        assert self._here is not None
        return self._between(self._here, self.coefficients.at(block.moved(self._here.values, own)))

    def _place(self, point: Point) -> Place:
        """Coefficients at a point, remembered from the step before."""
        values = self.coefficients.flatten(point)
        if self._here is None or not np.array_equal(values, self._here.values):
            self._here = self.coefficients.at(values)
        return self._here

    @override
    def spent_so_far(self) -> float:
        return self.spending.epsilon

    @override
    def active(self) -> bool:
        return not self.ended

    @property
    def walk(self) -> dict[str, Any]:
        """What one chain has spent and learnt, for its sampling state."""
        if not self.proposals:
            return {}
        learnt = [proposal.state() for proposal in self.proposals]
        return {"ended": self.ended, "bits": self._bits, "spending": self.spending.state(), "proposals": learnt}

    @walk.setter
    def walk(self, state: Mapping[str, Any]) -> None:
        self._here = None
        if not state:
            self.proposals, self.ended = (), False
            return
        if not self.proposals:
            raise PrivacyError("A state can only be restored in a chain that has begun: call setup_chain first.")
        self.ended, self._begun = state["ended"], False
        self.spending.resume(state["spending"])
        self._bits = state["bits"]
        self._take_again()
        for proposal, learnt in zip(self.proposals, state["proposals"], strict=True):
            proposal.restore(learnt)

    def _take_again(self) -> None:
        """Take from what pays for this chain what it had used where its state was saved."""
        pays = self.ratio.pays
        if isinstance(pays, Grant):
            for _ in range(self._bits):
                pays.take(pays.event)
        elif pays is not None and self._bits:
            spent = self.spending.state()["spent"]
            pays.take(PureEvent(epsilon=spent) if self.spending.power == 1 else ZCDPEvent(rho=spent))

    # --- words --------------------------------------------------------------------------------------------------------

    @override
    def describe(self) -> SamplerRecord:
        relation = "sup g - inf g" if self.neighbours == "replace" else "sup |g|"
        return SamplerRecord(
            name=type(self).__name__,
            noise=self.rule,
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("target", self._target()),
                *clamped_facts(self._clamped_rows),
                (
                    "one row moves",
                    f"R = {relation} of the log-likelihood ratio g of two released states, {self.ratio.proof}",
                ),
                ("filter", self._filter()),
                ("proposal", self._proposed()),
            ),
        )

    def _target(self) -> str:
        """Say what the chain samples, and what is tempered."""
        power = "not tempered" if self.power == 1 else f"its likelihood to the power {self.power:g}"
        return self.ratio.target.replace("not tempered", power)

    def _proposed(self) -> str:
        """Say how a state is proposed."""
        kind = "fixed" if self._spread is not None else "tuned on released states, then fixed"
        shape = ", of a public covariance" if "covariance" in self.settings else ""
        return f"normal on the unconstrained scale{shape}, {kind}{self._scanned()}"

    def _scanned(self) -> str:
        """Say what a step is where it is more than one move."""
        if len(self.blocks) == 1:
            return ""
        names = ", ".join(" and ".join(block.names) for block in self.blocks)
        return f"; one step is a scan over {len(self.blocks)} blocks, each charged its own range: {names}"


IMPOSSIBLE = Problem(
    where="model",
    what="at its initial point the prior or a likelihood has density 0, so that no chain can start",
    remedy="Give initval= in the model: a public point inside all supports.",
)


def _discrete(name: str) -> Problem:
    return Problem(
        where=name,
        what="it is discrete, and a normal proposal needs real numbers",
        remedy="Marginalise it out of the model.",
    )


__all__ = ["IMPOSSIBLE", "PrivateMetropolis"]
