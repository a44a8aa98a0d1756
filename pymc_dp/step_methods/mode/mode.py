"""The most probable of finitely many candidates, by the exponential mechanism.

How far one row can move the log-likelihoods of candidates against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model

from pymc_dp.accounting import BoundedRangeEvent, ComposedEvent, Event, SelfComposedEvent
from pymc_dp.domain import Domain, Neighbours
from pymc_dp.draws.finite_choice import choose, settled
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array, Column, shape_of
from pymc_dp.kernel.accounting.budget import decimal, float_up
from pymc_dp.kernel.accounting.calibrate import range_per_use
from pymc_dp.metrics import Metric
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.remedies import problems_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import SLACK, prove_range
from pymc_dp.release.record import GUARANTEES, PartRecord, ReleaseRecord, SamplerRecord
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.mode.candidates import Draws, Given, kept, lay_out
from pymc_dp.step_methods.ops.grid import by_name
from pymc_dp.step_methods.ops.price import INSIDE
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.ops.row_proofs import Fit, Trial, enforced
from pymc_dp.step_methods.own_variables import Names
from pymc_dp.step_methods.row_functions import Bound, NodeBound, Nodes
from pymc_dp.step_methods.row_functions.node_bounds import MOST_NUMBERS, Numbers, centred, node_values
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.prior_model import prior_model as prior_model_of

MOST_ROWS, MOST_WORK = 1024, 4e8
"""Values that a row may have, and differences of them at candidates, up to which all are looked at."""
ROUNDING = 1e-11
"""Of the largest log-likelihood: what differences of four, computed in floats, may be off by."""


def candidate_range(inspection: RowInspection, prior_model: Model, density: RowDensity, points: Array) -> RowRange:
    """Bound the range of one row over candidates: sup over x, x' of max_θ d - min_θ d, d = l(x, θ) - l(x', θ).

    It is proved over the box about all candidates; where rows can have few values, whole numbers all, it is the largest
    of all differences at the candidates themselves, if that is less.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    density : RowDensity
    points : (n_candidates, n_scalars) array

    Raises
    ------
    UnsupportedModelError
        If nothing bounds it, or if rows tell nothing about which candidate is best.
    """
    neighbours = inspection.domain.neighbours
    rows, _ = row_likelihoods(inspection, prior_model, about(density.priors, points))
    prove = partial(prove_range, neighbours=neighbours)
    proofs = [prove(row) for row in rows]
    total = sum(proof.value for proof in proofs)
    listed = largest_of_all(density, points, neighbours)
    if not math.isfinite(min(total, listed)):
        raise UnsupportedModelError(problems_of(rows, proofs, prove))
    if not min(total, listed) > 0:
        what = "no row can tell anything about which candidate is best"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give other candidates.")])
    reason = "over the box about the candidates, proved from the graph by interval arithmetic and branch and bound"
    if listed < total:
        reason = "the largest of all differences, of every value that a row can have, at every candidate"
    return RowRange(value=min(total, listed), sensitivity=math.inf, reason=reason)


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


def about(priors: Sequence[Prior], points: Array) -> tuple[Prior, ...]:
    """Return priors whose supports are the least box about candidates."""
    found, start = [], 0
    for prior in priors:
        part = points[:, start : start + prior.size].reshape(-1, *prior.shape)
        found.append(replace(prior, low=part.min(axis=0), high=part.max(axis=0)))
        start += prior.size
    return tuple(found)


def largest_of_all(density: RowDensity, points: Array, neighbours: Neighbours) -> float:
    """Return the range over candidates of any two rows that there can be; inf where these cannot be listed."""
    rows = _every_row(density.columns)
    if rows is None:
        return math.inf
    count = len(rows[0])
    if count * (1 if neighbours == "add_remove" else count) * len(points) > MOST_WORK:
        return math.inf
    held = (([column[place : place + 1] for column in rows], np.ones(1)) for place in range(count))
    values = (density.at(points, row)[1] for row in held)
    found = _alone(values) if neighbours == "add_remove" else _in_pairs(np.stack(list(values)))
    if not np.isfinite(found).all():
        return math.inf
    largest, size = found
    return (largest + ROUNDING * size) * SLACK if largest > 0 else 0.0


def _alone(values: Iterable[Array]) -> tuple[float, float]:
    """Return the largest range and the largest size of what rows add, of which no two are held at once."""
    with np.errstate(invalid="ignore"):
        return tuple(np.max([(np.ptp(one), np.abs(one).max()) for one in values], axis=0))


def _in_pairs(values: Array) -> tuple[float, float]:
    """Return the largest range of a difference of two rows, and the largest size of one."""
    with np.errstate(invalid="ignore"):
        largest = np.max([np.ptp(values - other, axis=1).max() for other in values])
    return float(largest), float(np.abs(values).max())


def _every_row(columns: Sequence[Column]) -> list[Array] | None:
    """Return every row that there can be, one array per column; None where they are too many."""
    axes = []
    for column in columns:
        kind = np.dtype(column.leaf.type.dtype).kind
        if column.public or shape_of(column.leaf)[1:] or not column.integer or (column.bounds is None and kind != "b"):
            return None
        low, high = (0, 1) if kind == "b" else (int(end) for end in column.bounds or ())
        axes.append(range(low, high + 1))
    if not axes or math.prod(map(len, axes)) > MOST_ROWS:
        return None
    table = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return [column.clamped(table[:, place]) for place, column in enumerate(columns)]


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
    η-DP and η²/8-zCDP; class exact, arithmetic float64. R is enforced on the numbers that are summed, which are whole
    multiples of a power of 2; not covered are the last bits of the choice itself. With `Draws` the losses of their
    trace are added. Under a metric rows count for public nodes (`Nodes`), and R is per unit of it: the largest that the
    numbers of the nodes have at the candidates.
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
        self.density = RowDensity(inspection, prior_model, priors_of(prior_model))
        self._require_possible()
        self._require_kept(prior_model)
        if inspection.domain.metric is None:
            self._plan_rows(inspection, prior_model)
        else:
            self._plan_nodes(inspection, inspection.domain.metric)
        self.values, self.place = Values(prior_model), 0
        return prior_model

    def _plan_rows(self, inspection: RowInspection, prior_model: Model) -> None:
        """Prove what one row moves, and hold the rows one by one."""
        proved = candidate_range(inspection, prior_model, self.density, self.points)
        count, trial = inspection.most_rows, Trial(self.density, self.points)
        if (problem := trial.problem(count, proved.value)) is not None:
            raise UnsupportedModelError([problem])
        neighbours = inspection.domain.neighbours
        fit = Fit(density=self.density, rows=trial.table, range=proved.value, neighbours=neighbours, n_rows=count)
        self.row_bound: Bound = fit.over(self.points)
        self.range = enforced(proved, self.row_bound)

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
        prior, _ = self.density.at(self.points, self.density.nothing())
        if not np.isfinite(prior).all():
            lost = int((~np.isfinite(prior)).sum())
            raise ArgumentError(
                f"{lost} of {len(prior)} candidates have no finite prior density. Leave them out: they can never be "
                "chosen, or would always be."
            )

    def _require_kept(self, prior_model: Model) -> None:
        """Refuse candidates that PyMC cannot hold: a choice of one would be shown as another point, or as NaN.

        A density says nothing about that: the one of a Dirichlet is a number beside the simplex too.
        """
        lost = ~kept(prior_model, self.density.priors, self.points)
        if lost.any():
            names = [str(rv.name) for rv in prior_model.free_RVs if prior_model.rvs_to_transforms[rv] is not None]
            raise ArgumentError(
                f"{int(lost.sum())} of {len(lost)} candidates are not among the values that {', '.join(names)} can "
                "have: probabilities add up to 1 and are above 0, ordered entries ascend. Leave them out."
            )

    @override
    def price(self, funding: Funding) -> Event:
        eta = range_per_use(funding.budget.epsilon, funding.budget.delta, uses=funding.uses)
        self.sharpness = eta / self.range.value * INSIDE
        return SelfComposedEvent(event=BoundedRangeEvent(eta=eta), count=funding.uses)

    @override
    def load(self) -> None:
        self.held = self.density.read(self.nodes)

    @override
    def forget(self) -> None:
        self.__dict__.pop("held", None)  # which is not there if they could not be read

    def log_weights(self) -> Array:
        """Return the log weight of every candidate. **Private**."""
        prior, likelihood = self.density.held_sums(self.points, self.held, self.row_bound)
        return np.asarray(self.sharpness * (settled(prior) + likelihood))

    @override
    def advance(self, point: Point) -> Point:
        self.place = int(choose(self.generator, self.log_weights()))
        return self.values.move(point, by_name(self.density.priors, self.points[self.place]))

    @override
    def statistics(self) -> list[dict[str, Any]]:
        (found,) = super().statistics()
        return [{**found, CANDIDATE: int(self.numbers[self.place])}]

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


__all__ = ["CandidateMode", "about", "candidate_range", "candidate_slope", "largest_of_all"]
