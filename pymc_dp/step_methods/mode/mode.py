"""The most probable of finitely many candidates, by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model

from pymc_dp.accounting import ComposedEvent, Event, SelfComposedEvent
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.release.record import GUARANTEES, PartRecord, ReleaseRecord, SamplerRecord
from pymc_dp.samplers.per_unit import PerUnitScores
from pymc_dp.samplers.row_scores import RowScores
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.mode.candidates import Draws, Given, kept, lay_out
from pymc_dp.step_methods.ops.grid import by_name, log_prior
from pymc_dp.step_methods.ops.price import per_unit, sharpest
from pymc_dp.step_methods.own_variables import Names
from pymc_dp.step_methods.row_range import RowRange
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.prior_model import prior_model as prior_model_of

CANDIDATE = "candidate"
LIKELY = 0.95
"""Probability with which the report says how near the choice is to the best candidate."""


class CandidateMode(PrivateStep):
    """Choose among candidates with probability ∝ ``exp(β (log prior + Σ l(x, θ)))``, β as large as the budget allows.

    Parameters
    ----------
    given : Given
        The candidates.

    Notes
    -----
    **Guarantee.** The exponential mechanism of bounded range ``η = β R``, R the range of one row over the candidates:
    η-DP and η²/8-zCDP; class exact. R is the largest that is found on public rows, and enforced by the kernel on the
    whole numbers that it sums (`Kernel.choose`): rows beyond it are cut. Arithmetic hardened. With `Draws` the losses
    of their trace are added. Under a metric rows count for public nodes, and ε is per unit of it (`choose_per_unit`).
    """

    name = "mode"
    guarantee: ClassVar[Guarantee] = "exact"
    knows_metric: ClassVar[bool] = True
    default_draws: ClassVar[int] = 1
    public_stats: ClassVar[tuple[str, ...]] = (CANDIDATE,)
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {**PrivateStep.stats_dtypes_shapes, CANDIDATE: (np.int64, [])}

    def __init__(self, given: Given, **funding: Any) -> None:
        super().__init__(None, settings={"given": given}, **funding)

    @override
    def of_inspected(self, found: Inspected) -> RowInspection:
        """Look for rows that can be held one by one."""
        return found.rows

    @override
    def plan(self, inspection: Inspection) -> Model:
        assert isinstance(inspection, RowInspection)
        self._require_relation(inspection.domain)
        prior_model = prior_model_of(inspection)
        self.clamped = clamped(inspection.model)
        self.points, self.numbers = lay_out(self.settings["given"], priors_of(prior_model))
        self.priors = priors_of(prior_model)
        self.prior = log_prior(prior_model, self.priors, self.points)
        self._require_possible()
        self._require_kept(prior_model)
        self.scores: RowScores | PerUnitScores
        if inspection.domain.metric is None:
            self.scores = RowScores(inspection, prior_model, self.points)
        else:
            self.scores = found = PerUnitScores(inspection, prior_model, self.points)
            self.diameter, self.grids = found.diameter, found.grids
        self.range = RowRange(value=self.scores.range, sensitivity=math.inf, reason=self.scores.reason)
        if not self.previewing:
            self.scores.compile()
        self.values, self.place = Values(prior_model), 0
        return prior_model

    @override
    def assumed(self) -> tuple[str, ...]:
        given: Given = self.settings["given"]
        return tuple(given.assumptions)

    def _require_relation(self, domain: Domain) -> None:
        given = self.settings["given"]
        if isinstance(given, Draws) and domain.metric is not None:
            raise ArgumentError(
                "candidates are draws of a trace, whose loss is one of whole rows, but the domain has a metric: losses "
                "per row and per unit of distance do not add. Leave the metric out, or give public candidates."
            )
        if isinstance(given, Draws) and given.neighbours != domain.neighbours:
            raise ArgumentError(
                f"candidates are draws of a trace under {given.neighbours}, but the domain says {domain.neighbours}: "
                "losses under two relations do not add. Give a domain of the same relation, or public candidates."
            )

    def _require_possible(self) -> None:
        """Refuse candidates without prior density, which is public."""
        lost = int((~np.isfinite(self.prior)).sum())
        if lost:
            raise ArgumentError(
                f"{lost} of {len(self.prior)} candidates have no finite prior density. Leave them out: they can never "
                "be chosen, or would always be."
            )

    def _require_kept(self, prior_model: Model) -> None:
        """Refuse candidates that PyMC cannot hold: a choice of one would be shown as another point, or as NaN.

        A density says nothing about that: the one of a Dirichlet is a number beside the simplex too.
        """
        lost = ~kept(prior_model, self.priors, self.points)
        if lost.any():
            names = [str(rv.name) for rv in prior_model.free_RVs if prior_model.rvs_to_transforms[rv] is not None]
            raise ArgumentError(
                f"{int(lost.sum())} of {len(lost)} candidates are not among the values that {', '.join(names)} can "
                "have: probabilities add up to 1 and are above 0, ordered entries ascend. Leave them out."
            )

    @override
    def price(self, funding: Funding) -> Event:
        asked = self.range.value, funding.budget, funding.uses, self.scores.slack
        found = per_unit(*asked, sharp=True) if isinstance(self.scores, PerUnitScores) else sharpest(*asked)
        self.sharpness, self._use = found.inverse, found.event
        return SelfComposedEvent(event=self._use, count=funding.uses)

    @override
    def load(self) -> None:
        self.scores.load()

    @override
    def forget(self) -> None:
        self.scores.forget()

    @override
    def start_chain(self) -> None:
        self.scores.begin(self._use, self.funding.steps)

    @override
    def advance(self, point: Point) -> Point:
        self.place = self.scores.choose(self.sharpness, self.sharpness * self.prior)
        return self.values.move(point, by_name(self.priors, self.points[self.place]))

    @override
    def statistics(self) -> list[dict[str, Any]]:
        (found,) = super().statistics()
        return [{**found, CANDIDATE: int(self.numbers[self.place])}]

    @property
    @override
    def arithmetic(self) -> str:
        return "float64" if isinstance(self.settings["given"], Draws) else "hardened"

    @override
    def describe(self) -> SamplerRecord:
        near = math.log(len(self.points) / (1 - LIKELY)) / self.sharpness
        facts = [
            ("candidates", f"{len(self.points)}, {self.settings['given'].words}"),
            ("score", f"β (log prior + log-likelihood), β = {self.sharpness:.6g}"),
            ("one row moves", f"R = {self.range.value:.6g}: {self.range.reason}"),
            ("nearness", f"log joint density within {near:.4g} of the best candidate's with probability {LIKELY}"),
            *self._paid_before(),
            *clamped_facts(self.clamped),
        ]
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"exponential mechanism, β = {self.sharpness:.4g}",
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=tuple(facts),
        )

    def _paid_before(self) -> list[tuple[str, str]]:
        given = self.settings["given"]
        if not isinstance(given, Draws):
            return []
        return [
            (
                "losses",
                f"ε = {self.budget.epsilon:g}, δ = {self.budget.delta:g} of this choice, and ε = {given.epsilon:g}, "
                f"δ = {given.delta:g} of the trace that the candidates are from, paid for before",
            )
        ]

    @override
    def record(self) -> ReleaseRecord:
        """Return the record of the choice; what the candidates cost is added, since the choice shows one of them."""
        found, given = super().record(), self.settings["given"]
        if not isinstance(given, Draws):
            return found
        paid = [self.event] if given.event is None else [given.event, self.event]
        assert found.sampler is not None
        parts = _before(given, self.own), found.sampler.as_part(self.row_epsilon)
        return replace(
            found,
            sampler=replace(found.sampler, parts=parts),
            event=ComposedEvent(events=tuple(paid)).to_dict(),
            epsilon=float_up(decimal(found.epsilon) + decimal(given.epsilon)),
            delta=float_up(decimal(found.delta) + decimal(given.delta)),
            guarantee=min(found.guarantee, given.guarantee, key=GUARANTEES.index),
        )


def _before(given: Draws, names: Names) -> PartRecord:
    return PartRecord(
        name="trace of the candidates, paid for before",
        variables=names,
        uses=f"{len(next(iter(given.values.values())))} draws",
        noise="see that trace",
        epsilon=given.epsilon,
    )


__all__ = ["CandidateMode"]
