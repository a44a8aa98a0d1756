"""One posterior sample: every draw is an exact draw from a tempered posterior, and is paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, override

from pymc import Model
from pytensor.graph.traversal import ancestors

from pymc_dp import _validate
from pymc_dp.accounting import BoundedRangeEvent, Event, PureEvent, SelfComposedEvent
from pymc_dp.accounting._exact import decimal, float_down
from pymc_dp.accounting.calibrate import range_per_use
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import SamplerRecord
from pymc_dp.sensitivity.ranges import RowRange, row_range, total_range
from pymc_dp.step_methods.base import Funding, Point, PrivateStep
from pymc_dp.step_methods.conjugate import ConjugatePosterior
from pymc_dp.step_methods.grid import GridPosterior
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.likelihood import TableLikelihood, table_likelihoods

INSIDE = 1 - 1e-12
"""A temperature is raised by so much, for the rounding of the few operations that lead to it."""


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """How a posterior is tempered: the likelihood to the power `inverse`, the prior too where `prior` is set."""

    inverse: float
    prior: bool


class OPS(PrivateStep):
    """One posterior sample: draws from the posterior at a temperature, each of them released and paid for.

    ``p(θ | X)`` is drawn exactly from ``prior(θ) exp(Σ l(x, θ) / T)``, with the least temperature T >= 1 that the
    budget allows. Fewer draws are cooler: the default is one.

    Parameters
    ----------
    papers : bool
        False (default): T from the bounded range R of the likelihood, T = max(1, R / η), the prior untouched. True: the
        papers' rule T = max(1, 2 Δl / ε) for each draw, with the prior tempered as well; for comparison.
    grid : int, optional
        Cells per axis where a model of one or two bounded parameters has no conjugate form; 16384 or 512 by default.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``: the budget of all its chains together, what is public about a row, and
        the model. Without `epsilon` this is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        If the posterior cannot be drawn exactly, or a parameter has no bounds, so that a row can move the likelihood by
        any amount; with the truncation that would do.
    ArgumentError

    Notes
    -----
    **Released.** Every draw of every chain, warm-up included, and nothing else: no density, no number of tries.

    **Guarantee.** One draw is the exponential mechanism with score ``Σ l(x, θ)`` and bounded range ``η = R / T``, so
    η-DP and η²/8-zCDP; k draws are kη-DP, or ``k η²/8``-zCDP where δ > 0. R is the closed form of
    ``sensitivity.ranges`` over the bounded support of the priors, under ``domain.neighbours``. Class exact: draws are
    independent and exact, no convergence is needed; arithmetic float64 (ideal real numbers). With ``papers=True`` each
    draw is 2 Δl / T-DP and losses add. On a grid, a cell is drawn with its density at the middle and θ uniformly
    within it.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 1; Foulds, Geumlek, Welling, Chaudhuri (2016), theorem 2; Dimitrakakis,
    Nelson, Zhang, Mitrokotsa, Rubinstein (2017), theorem 8.1; range accounting: Dong, Durfee, Rogers (2020), Cesar,
    Rogers (2021).

    Examples
    --------
    >>> OPS(papers=True)
    OPS(papers=True)
    """

    name = "ops"
    guarantee = "exact"
    default_draws: ClassVar[int] = 1

    def __init__(self, vars: Any = None, *, papers: bool = False, grid: int | None = None, **funding: Any) -> None:
        if not isinstance(papers, bool):
            raise ArgumentError(f"papers must be True or False, got {papers!r}.")
        settings: dict[str, Any] = {"papers": papers}
        if grid is not None:
            settings["grid"] = _validate.integer("grid", grid, 2, 2**20)
        super().__init__(vars, settings=settings, **funding)

    @override
    def plan(self, inspection: Inspection) -> Model:
        husk, tables = table_likelihoods(inspection)
        priors = priors_of(husk)
        found = ConjugatePosterior.of(husk, priors, tables)
        if isinstance(found, list):
            on_grid = GridPosterior.of(husk, priors, tables, self.settings.get("grid"))
            if isinstance(on_grid, str):
                reasons = "; ".join(f"{problem.where}: {problem.what}" for problem in found)
                remedy = f"{on_grid} Or use dp.TemperedGibbs(), or dp.sample(epsilon=...), which needs no exact draws."
                what = f"its posterior has no form that can be drawn exactly ({reasons})"
                raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
            self.posterior: ConjugatePosterior | GridPosterior = on_grid
        else:
            self.posterior = found
        neighbours = inspection.domain.neighbours
        exact = isinstance(found, ConjugatePosterior)
        self.range = total_range(
            [table_range(table, self.posterior.boxes(table), neighbours, normalised=exact) for table in tables]
        )
        if not self.range.value > 0:
            what = "its likelihoods hang on no free variable that a row could tell anything about"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give it a free variable.")])
        if not math.isfinite(self.range.value):
            raise UnsupportedModelError(_unbounded(tables, self.posterior, priors, neighbours))
        self.tables = tables
        self.values = Values(husk)
        return husk

    @override
    def price(self, funding: Funding) -> Event:
        epsilon, delta = funding.budget.epsilon, funding.budget.delta
        one: Event
        if self.settings["papers"]:
            if delta:
                raise ArgumentError(
                    f"delta={delta:g} would buy nothing: the papers' rule adds pure losses. Use delta=0."
                )
            share = float_down(decimal(epsilon) / funding.uses)
            inverse = self._inverse(share, 2 * self.range.sensitivity)
            one = PureEvent(epsilon=share if inverse < 1 else 2 * self.range.sensitivity)
        else:
            eta = range_per_use(epsilon, delta, uses=funding.uses)
            inverse = self._inverse(eta, self.range.value)
            one = BoundedRangeEvent(eta=eta if inverse < 1 else self.range.value)
        self.temperature = Temperature(inverse=inverse, prior=self.settings["papers"])
        return SelfComposedEvent(event=one, count=funding.uses)

    @staticmethod
    def _inverse(allowed: float, needed: float) -> float:
        return 1.0 if needed <= allowed else allowed / needed * INSIDE

    @override
    def load(self) -> None:
        self.sums = [table.read() for table in self.tables]

    @override
    def advance(self, point: Point) -> Point:
        assert self.generator is not None
        drawn = self.posterior.draw(self.generator, self.sums, self.temperature.inverse, self.temperature.prior)
        return self.values.move(point, drawn)

    @override
    def describe(self) -> SamplerRecord:
        assert self.funding is not None
        warmth = 1 / self.temperature.inverse
        rule = "2 Δl / ε, prior tempered (the papers')" if self.settings["papers"] else "bounded range"
        size = f"Δl = {self.range.sensitivity:.6g}" if self.settings["papers"] else f"R = {self.range.value:.6g}"
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"temperature {warmth:.4g}",
            variables=tuple(str(var.name) for var in self.husk.free_RVs),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("temperature", f"T = {warmth:.6g}, by {rule}" + ("" if warmth > 1 else ": the posterior itself")),
                ("one row moves", f"{size}: {self.range.reason}"),
                ("draws", self.posterior.words),
            ),
        )


def table_range(
    table: TableLikelihood, boxes: list[tuple[Array, Array]], neighbours: str, *, normalised: bool = False
) -> RowRange:
    """Range of one observed variable's rows over boxes of its parameters."""
    moves = any(not column.public for column in table.cells.columns)
    return row_range(
        table.observed.distribution,
        table.statistic,
        boxes,
        neighbours=neighbours,
        moves=moves or neighbours != "replace",
        normalised=normalised,
    )


def _unbounded(
    tables: tuple[TableLikelihood, ...],
    posterior: ConjugatePosterior | GridPosterior,
    priors: tuple[Prior, ...],
    neighbours: str,
) -> list[Problem]:
    problems = []
    for table in tables:
        if math.isfinite(table_range(table, posterior.boxes(table), neighbours).value):
            continue
        upstream = set(ancestors(table.parameters))
        priors = tuple(prior for prior in priors if prior.variable in upstream)
        names = [prior.name for prior in priors if not prior.bounded or prior.distribution in ("beta", "dirichlet")]
        bounds = {"beta": "(0.01, 0.99)", "uniform": "(0.01, 0.99)", "dirichlet": "(0.01, None)"}
        truncations = ", ".join(
            f"{prior.name!r}: {bounds.get(prior.distribution, '(low, high)')}"
            for prior in priors
            if prior.name in names or not names
        )
        problems.append(
            Problem(
                where=table.name,
                what="one row can move its log-likelihood by any amount, because its parameters have no bounds that "
                "keep every value possible",
                remedy=f"Truncate the prior, by public bounds: dp.truncate(model, {{{truncations}}}).",
            )
        )
    return problems
