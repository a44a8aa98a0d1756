"""The most probable of finitely many candidates, by the exponential mechanism.

How far one row can move the log-likelihoods of candidates against each other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model

from pymc_dp.accounting import ComposedEvent, Event, SelfComposedEvent
from pymc_dp.domain import Domain
from pymc_dp.draws.finite_choice import choose, settled
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.metrics import Metric
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.release.record import GUARANTEES, PartRecord, ReleaseRecord, SamplerRecord
from pymc_dp.samplers.row_scores import RowScores
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.mode.candidates import Draws, Given, kept, lay_out
from pymc_dp.step_methods.ops.grid import by_name, log_prior
from pymc_dp.step_methods.ops.price import sharpest
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.own_variables import Names
from pymc_dp.step_methods.row_functions import NodeBound, Nodes
from pymc_dp.step_methods.row_functions.node_bounds import MOST_NUMBERS, Numbers, centred, node_values
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.prior_model import prior_model as prior_model_of


def candidate_slope(nodes: Nodes, density: RowDensity, points: Array) -> RowRange:
    """Return the range over candidates per unit of a metric: the largest of all differences of numbers of the nodes.

    Raises
    ------
    UnsupportedModelError
        If there are too many numbers, if one of them is none, or if rows tell nothing about which candidate is best.
    """
    if nodes.count * len(points) > MOST_NUMBERS:
        what = f"{len(points)} candidates are too many for the {nodes.count} nodes of rows under a metric"
        remedy = f"Give {MOST_NUMBERS // nodes.count} at most."
        raise UnsupportedModelError([Problem(where="candidates", what=what, remedy=remedy)])
    values, _ = centred(node_values(lambda at, rows: density.each(at, rows)[1], points, nodes))
    if not np.isfinite(values).all():
        what = "the log-likelihood of some possible rows is NaN at some candidates, but not at others"
        remedy = "Give narrower bounds for the values of rows (dp.Domain), or other candidates."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
    value = Numbers.of(nodes, values).steepest
    if not value > 0:
        what = "no row can tell anything about which candidate is best"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other candidates.")])
    reason = f"per unit of ρ = {nodes.metric}, the largest of all differences at {nodes}"
    return RowRange(value=value, sensitivity=math.inf, reason=reason)


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
    whole numbers that it sums (`Kernel.choose`): rows beyond it are cut. Arithmetic hardened; float64 under a metric.
    With `Draws` the losses of their trace are added. Under a metric rows count for public nodes (`Nodes`), and R is per
    unit of it: the largest that the numbers of the nodes have at the candidates.
    """

    name = "mode"
    guarantee: ClassVar[Guarantee] = "exact"
    knows_metric: ClassVar[bool] = True
    nodes: Nodes | None = None
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
        self.scores: RowScores | None = None
        if inspection.domain.metric is None:
            self.scores = RowScores(inspection, prior_model, self.points)
            self.range = RowRange(value=self.scores.range, sensitivity=math.inf, reason=self.scores.reason)
            if not self.previewing:
                self.scores.compile()
        else:
            self.density = RowDensity(inspection, prior_model, self.priors)
            self._plan_nodes(inspection, inspection.domain.metric)
        self.values, self.place = Values(prior_model), 0
        return prior_model

    def _plan_nodes(self, inspection: RowInspection, metric: Metric) -> None:
        """Read off the numbers of all candidates what a row moves per unit of ρ, and count rows at public nodes."""
        self.nodes = nodes = Nodes.of(inspection.columns, metric, inspection.n_rows)
        self.measure(inspection.columns, metric, [nodes])
        self.range = candidate_slope(nodes, self.density, self.points)
        self.row_bound = NodeBound(nodes=nodes, most=self.range.value)

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
        added = 0.0 if self.scores is None else self.scores.slack
        found = sharpest(self.range.value, funding.budget, funding.uses, added)
        self.sharpness, self._use = found.inverse, found.event
        return SelfComposedEvent(event=self._use, count=funding.uses)

    @override
    def load(self) -> None:
        if self.scores is None:
            self.held = self.density.read(self.nodes)
        else:
            self.scores.load()

    @override
    def forget(self) -> None:
        self.__dict__.pop("held", None)  # which is not there if they could not be read
        if self.scores is not None:
            self.scores.forget()

    @override
    def start_chain(self) -> None:
        if self.scores is not None:
            self.scores.begin(self._use, self.funding.steps)

    @override
    def advance(self, point: Point) -> Point:
        if self.scores is not None:
            self.place = self.scores.choose(self.sharpness, self.sharpness * self.prior)
        else:
            self.place = int(choose(self.generator, self._log_weights()))
        return self.values.move(point, by_name(self.priors, self.points[self.place]))

    def _log_weights(self) -> Array:
        """Return the log weight of every candidate, where ε is per unit of a metric. **Private**."""
        prior, likelihood = self.density.held_sums(self.points, self.held, self.row_bound)
        return np.asarray(self.sharpness * (settled(prior) + likelihood))

    @override
    def statistics(self) -> list[dict[str, Any]]:
        (found,) = super().statistics()
        return [{**found, CANDIDATE: int(self.numbers[self.place])}]

    @property
    @override
    def arithmetic(self) -> str:
        given = isinstance(self.settings["given"], Draws)
        return "float64" if given or self.scores is None else "hardened"

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


__all__ = ["CandidateMode", "candidate_slope"]
