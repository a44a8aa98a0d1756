"""One posterior sample: every draw is an exact draw from a tempered posterior, and is paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Event, SelfComposedEvent
from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant
from pymc_dp.release.record import ReleaseRecord, SamplerRecord, described_domain
from pymc_dp.samplers.chain_account import NOT_BEGUN
from pymc_dp.samplers.found_range import FoundRange, found_range
from pymc_dp.samplers.near_rows import require_informative
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from pymc_dp.step_methods.ops.from_rows import MOST_SCALARS, PerUnitGrid, ScoredGrid, grid_problem
from pymc_dp.step_methods.ops.from_sums import BySums, Posterior, SummedGrid, table_posterior
from pymc_dp.step_methods.ops.held_density import HeldDensity
from pymc_dp.step_methods.ops.hidden_states import StatesPosterior
from pymc_dp.step_methods.ops.in_ball import RegressionPosterior
from pymc_dp.step_methods.ops.price import Temperature, by_papers, by_range, per_unit, worth
from pymc_dp.step_methods.row_range import RowRange
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.likelihood import TableLikelihood, sums_problems, table_likelihoods
from pymc_dp.transforms.prior_model import prior_model as prior_model_of
from pymc_dp.transforms.prior_model import shared_prior_model

OF_KERNEL = (ScoredGrid, BySums, PerUnitGrid, RegressionPosterior)
"""Posteriors that the kernel draws from: a chain begins and ends with them."""


class OPS(PrivateStep):
    """One posterior sample: draws from the posterior at a temperature, each of them released and paid for.

    ``p(θ | X)`` is drawn exactly from ``prior(θ) exp(Σ l(x, θ) / T)``, with the least temperature T >= 1 that the
    budget allows. Fewer draws have a lower temperature: the default is one. Models with sums of rows are drawn from
    conjugate distributions (those of `TemperedGibbs`, where a row tells of one variable in each likelihood) or from a
    grid, at a cost independent of the number of rows. A normal regression with known noise and coefficients in a ball
    is drawn by the kernel, from sums of products; other models that factorise over rows are drawn from a grid, if they
    have one or two bounded parameters. All others are refused, unless you take the last state of a chain.

    Parameters
    ----------
    papers : bool
        False (default): T from the bounded range R of the likelihood, T = max(1, R / η), the prior untouched. True: the
        papers' rule T = max(1, 2 Δl / ε) for each draw, with the prior tempered as well; for comparison.
    grid : int, optional
        Cells per axis where a model of one or two bounded parameters has no conjugate form; 16384 or 256 by default,
        4096 or 256 where it passes over single rows.
    assume_converged : bool
        Where no exact draw is known, take the last state of a NUTS chain on the tempered posterior, of a length judged
        on data simulated from the prior. Parameters need bounds, coefficients by ``dp.truncate(norms=)``. A hidden
        Markov model of `MarkovStates` with truncated Dirichlet profiles has a Gibbs chain instead. The guarantee is
        then asymptotic: it holds only if every chain has converged.
    scans : int, optional
        Length of such a Gibbs chain, instead of one that is judged on simulated data.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``: the budget of all its chains together, what is public about a row, and
        the model. Without `epsilon` this is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        If the posterior cannot be drawn exactly, or a parameter has no bounds, so that a row can move the likelihood by
        any amount. The text names the truncation and the samplers that would do.
    ArgumentError

    Notes
    -----
    **What a draw is worth.** Where rows are many, the mean of k draws lies about the truth with 1 + T / k times the
    variance of the posterior. ``dp.from_draws.draw_intervals`` knows it; a plot of draws does not.

    **Released.** Every draw of every chain, warm-up included, and nothing else: no density, no number of tries.

    **Networks** of discrete variables, whose shares are indexed by one another (``p[a]``, ``p[a, b]``, stacked or
    switched), are drawn exactly from a truncated beta or Dirichlet for each configuration of parents. R is the sum over
    nodes, each of which may move to another configuration: it is that of a row, while lemma 24 of Dimitrakakis et al.
    is for one changed entry of it.

    **Guarantee.** One draw is the exponential mechanism with score ``Σ l(x, θ)`` and bounded range ``η = R / T``,
    so η-DP and η²/8-zCDP; k draws are kη-DP, or ``k η²/8``-zCDP where δ > 0. From sums, and in a ball, R is the
    largest range over the support of the priors, or over the grid, of what two rows may differ by, under
    ``domain.neighbours``. Where a grid passes over single rows, R is the largest range that is found on simulated
    rows. It is enforced on the number of every row: rows beyond it are cut, and privacy does not depend on how well it
    was found. Class exact: draws are independent and exact, no convergence is needed. Arithmetic hardened for a grid;
    else float64, and the last bits of the draw are not covered. With ``papers=True`` each draw is 2 Δl / T-DP and
    losses add. On a grid, a cell is drawn with its density at the middle and θ uniformly within it. With
    ``assume_converged=True`` the class may be asymptotic; the trace says which. Run times depend on the rows and are
    not covered.

    A chain that is assumed to have converged pays for an interval that its density enforces. The number of a row at
    θ is ``l(x, θ) - c(θ) - a(x)``; c is public, the mean of some simulated rows under ``"replace"``, and a(x) is a
    sum of the row's own numbers at a few public points. It is held within one public interval (low, high) for all
    rows and θ: R = 2 (high - low) under ``"replace"``, and high - low under ``"add_remove"``. The interval is what
    is found on simulated rows and points of the parameters, so that it cuts hardly anything; what it cuts is a
    bias. The trace prints it.

    Under ``Domain(metric=ρ)``, ρ of ``dp.metrics.L1``, ε is per unit of ρ, and δ is 0. Rows then have at most three
    private columns of numbers with bounds. They count for the nodes of a public grid in whole shares, and in
    between the log-likelihood is linear. R is how steep the numbers of the nodes are, per unit of ρ; the kernel
    computes it from the whole numbers that it adds up. It is drawn from a grid of one or two bounded parameters.
    Real numbers are rounded to 64 places between two nodes, and ρ is that of rounded rows. The trace says what ε is
    for a whole row.

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
    knows_metric: ClassVar[bool] = True
    default_draws: ClassVar[int] = 1
    _paid: Grant | None = None

    def __init__(
        self,
        vars: Any = None,
        *,
        papers: bool = False,
        grid: int | None = None,
        assume_converged: bool = False,
        scans: int | None = None,
        **funding: Any,
    ) -> None:
        for name, value in (("papers", papers), ("assume_converged", assume_converged)):
            _validate.flag(name, value)
        settings: dict[str, Any] = {"papers": papers}
        if assume_converged:
            settings["assume_converged"] = True
        if scans is not None:
            settings["scans"] = _validate.many("scans", scans)
        if grid is not None:
            settings["grid"] = _validate.integer("grid", grid, 2, 2**20)
        super().__init__(vars, settings=settings, **funding)

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        """Look for sums of rows; where there are none, for rows that can be held one by one.

        Under a metric rows are held: sums are of rounded values, which no small distance bounds.
        """
        sums = found.sums
        if found.domain.metric is not None or sums.problems:
            return found.rows
        return found.rows if sums_problems(sums, evidence=self.settings["papers"]) else sums

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.neighbours = inspection.domain.neighbours
        self.n_rows = inspection.n_rows if self.neighbours == "replace" else None
        self.clamped = clamped(inspection.model)
        self.found: FoundRange | None = None
        if isinstance(inspection, RowInspection):
            return self._plan_regression(inspection) or self._plan_rows(inspection, "")
        prior_model, tables = table_likelihoods(inspection)
        found = table_posterior(
            prior_model, tables, inspection, self.settings.get("grid"), papers=self.settings["papers"]
        )
        if not isinstance(found, list):
            self.posterior: Posterior = found
            self.range = found.range
        elif (
            self.settings.get("assume_converged")
            and (states := self._of_states(inspection, prior_model, tables)) is not None
        ):
            self.posterior, self.range = states, states.range
        else:
            return self._plan_held(inspection.inspected.rows, found)
        self.values = Values(prior_model, quick=self.previewing)
        return prior_model

    def _plan_regression(self, inspection: RowInspection) -> Model | None:
        """Take the kernel's own draws for a normal regression with coefficients in a ball; None for other models."""
        prior_model = shared_prior_model(inspection)
        found = RegressionPosterior.of(inspection, prior_model)
        if found is None:
            return None
        if not self.previewing:
            found.compile()
        self.posterior, self.range = found, found.range
        self.values = Values(prior_model, quick=self.previewing)
        return prior_model

    def _of_states(
        self, inspection: Inspection, prior_model: Model, tables: Sequence[TableLikelihood]
    ) -> StatesPosterior | None:
        """Find a Gibbs chain for a hidden Markov model; None where the model is none, or has no finite range."""
        n_rows, scans = inspection.most_rows, self.settings.get("scans")
        return StatesPosterior.of(prior_model, tables, neighbours=self.neighbours, n_rows=n_rows, scans=scans)

    def _plan_held(self, rows: RowInspection, found: list[Problem]) -> Model:
        """Hold rows one by one where sums will not do, for reasons that are `found`."""
        reasons = "; ".join(f"{problem.where}: {problem.what}" for problem in found)
        curable = [problem for problem in found if problem.remedy]
        try:
            rows.require()
        except UnsupportedModelError as error:
            raise UnsupportedModelError(curable or [*error.problems, self._no_draws(reasons)]) from None
        try:
            return self._plan_rows(rows, reasons)
        except UnsupportedModelError as error:
            raise UnsupportedModelError(curable or error.problems) from None

    def _plan_rows(self, inspection: RowInspection, reasons: str) -> Model:
        """Lay a grid, of which the kernel chooses a cell; else take a chain, if the caller assumes it converged."""
        prior_model = shared_prior_model(inspection)
        priors = priors_of(prior_model)
        problem = grid_problem(priors)
        self.values = Values(prior_model, quick=self.previewing)
        if inspection.domain.metric is not None:
            self._plan_per_unit(inspection, prior_model, problem)
        elif not problem:
            self._plan_grid(inspection, prior_model, reasons)
        elif self.settings.get("assume_converged"):
            self._plan_chain(inspection, prior_model, reasons or problem)
        else:
            bounds = [*([] if self.clamped else _loose(inspection)), *_bounds_first(priors)]
            other = [] if bounds and not reasons else [self._no_draws(_joined(reasons, problem))]
            raise UnsupportedModelError([*bounds, *other])
        return prior_model

    def _plan_per_unit(self, inspection: RowInspection, prior_model: Model, problem: str) -> None:
        """Lay a grid on which ε is per unit of a metric."""
        priors = priors_of(prior_model)
        if not problem and self.settings["papers"]:
            problem = "the papers' rule is for whole rows"
        if problem:
            raise UnsupportedModelError([*_bounds_first(priors), self._no_draws(problem)])
        grid = PerUnitGrid(inspection, prior_model, priors, self.settings.get("grid"))
        self.posterior, self.diameter, self.grids = grid, grid.scores.diameter, grid.scores.grids
        self.range = RowRange(value=grid.scores.range, sensitivity=math.inf, reason=grid.scores.reason)

    def _plan_grid(self, inspection: RowInspection, prior_model: Model, reasons: str) -> None:
        """Lay a grid, and find how far one row moves its cells."""
        try:
            grid = ScoredGrid(
                inspection,
                prior_model,
                priors_of(prior_model),
                self.settings.get("grid"),
                papers=self.settings["papers"],
            )
        except UnsupportedModelError as error:
            other = [self._no_draws(reasons)] if reasons else []
            raise UnsupportedModelError([*error.problems, *other]) from None
        found = grid.scores
        size = found.size if self.settings["papers"] else math.inf
        self.range = RowRange(value=found.range, sensitivity=size, reason=found.reason)
        self.posterior = grid
        if not self.previewing:
            found.compile()

    def _plan_chain(self, inspection: RowInspection, prior_model: Model, reasons: str) -> None:
        """Take the last state of a chain, whose density holds the number of every row within what is found."""
        self.found = found = found_range(inspection, prior_model)
        require_informative(found.value)
        density = HeldDensity(inspection, found)
        self.range = RowRange(value=density.range, sensitivity=max(found.size, density.range / 2), reason=density.words)
        if not self.previewing and not found.has_gradients():
            problem = "computed in floats, the gradient of its log-likelihood is NaN for some rows and parameters"
            raise UnsupportedModelError([self._no_draws(_joined(reasons, problem))])
        way = ConvergedPosterior.of(inspection, density, prior_model_of(inspection), temper_prior=self.temper_prior)
        if isinstance(way, str):
            raise UnsupportedModelError([self._no_draws(_joined(reasons, way))])
        self.posterior = way

    @override
    def price(self, funding: Funding) -> Event:
        found = self._temperature(funding)
        if isinstance(self.posterior, BySums):
            found = self.posterior.covered(found)
        self.temperature = found
        if isinstance(self.posterior, RegressionPosterior):
            self.posterior.check(found.inverse)
        if isinstance(self.posterior, ConvergedPosterior | StatesPosterior) and not self.previewing:
            obstacle = self.posterior.obstacle(found.inverse, found.prior)
            if obstacle:
                raise UnsupportedModelError([self._no_draws(obstacle, assumed=True)])
        return SelfComposedEvent(event=found.event, count=funding.uses)

    @property
    def temper_prior(self) -> bool:
        """Whether the prior is taken to the power of the inverse temperature too."""
        return bool(self.settings["papers"])

    def _temperature(self, funding: Funding) -> Temperature:
        if isinstance(self.posterior, PerUnitGrid):
            return per_unit(self.range.value, funding.budget, funding.uses, self.added)
        if self.settings["papers"]:
            return by_papers(self.range.sensitivity, funding.budget, funding.uses, self.added)
        return by_range(self.range.value, funding.budget, funding.uses, self.added)

    @property
    def added(self) -> float:
        """What a draw costs above its range: the slack of the whole weights of a choice."""
        if isinstance(self.posterior, BySums):
            return self.posterior.added
        return self.posterior.scores.slack if isinstance(self.posterior, ScoredGrid | PerUnitGrid) else 0.0

    @property
    @override
    def claimed(self) -> Guarantee:
        return "exact" if self.posterior.exact else "asymptotic"

    @property
    @override
    def arithmetic(self) -> str:
        kernel = ScoredGrid | SummedGrid | PerUnitGrid
        return "hardened" if isinstance(self.posterior, kernel) else "float64"

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what pays: a copy in another process begins its own chain."""
        return {**super().__getstate__(), "_paid": None}

    @override
    def load(self) -> None:
        self.sums = self.posterior.read()

    @override
    def forget(self) -> None:
        self.__dict__.pop("sums", None)  # which are not there if they could not be read
        if isinstance(self.posterior, OF_KERNEL):
            self.posterior.forget()

    @override
    def start_chain(self) -> None:
        if isinstance(self.posterior, BySums):
            self.posterior.stream = getattr(self, "stream", None)  # none where it is the start of a chain of others
        if isinstance(self.posterior, OF_KERNEL):
            self.posterior.begin(self.sums, self.temperature.event, self.funding.steps)
        else:
            self._paid = Grant(self.temperature.event, self.funding.steps)

    @override
    def advance(self, point: Point) -> Point:
        return self.values.move(point, self.draw(self.generator))

    def draw(self, rng: np.random.Generator) -> dict[str, Array]:
        """Draw all free variables. Every call is one use of what was priced: what comes out is released."""
        if not isinstance(self.posterior, OF_KERNEL):
            if self._paid is None:
                raise PrivacyError(NOT_BEGUN)
            self._paid.take(self.temperature.event)
        return self.posterior.draw(rng, self.sums, self.temperature.inverse, self.temperature.prior)

    @override
    def describe(self) -> SamplerRecord:
        facts = [
            self._target(),
            ("one row moves", self._sensitivity()),
            ("draws", self.posterior.words),
            *self._worth(),
            *clamped_facts(self.clamped),
        ]
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"temperature {1 / self.temperature.inverse:.4g}",
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=tuple(facts),
            power=self.temperature.inverse,
        )

    @override
    def record(self) -> ReleaseRecord:
        return replace(super().record(), domain=described_domain(self.binding.domain))

    def _target(self) -> tuple[str, str]:
        """Say what is drawn from."""
        warmth = 1 / self.temperature.inverse
        return "temperature", f"T = {warmth:.6g}, by {self.temperature.rule}{'' if warmth > 1 else ': the posterior'}"

    def _worth(self) -> list[tuple[str, str]]:
        """Say what draws are worth for intervals."""
        return [("worth", worth(1 / self.temperature.inverse, self.funding.uses))]

    def _sensitivity(self) -> str:
        if self.settings["papers"]:
            return f"Δl = {self.range.sensitivity:.6g}: {self.range.reason}"
        return f"R = {self.range.value:.6g}: {self.range.reason}"

    def _no_draws(self, reasons: str, assumed: bool = False) -> Problem:
        if self.binding.domain.metric is not None:
            return Problem(
                where="model",
                what=f"its posterior cannot be drawn per unit of a metric ({reasons})",
                remedy="Use one or two bounded parameters, dp.find_map with candidates, or leave the metric out.",
            )
        remedy = "Use dp.TemperedGibbs(), dp.BarkerMetropolis() or dp.SGLD(), which need no exact draws."
        last = (
            " Or take the last state of a NUTS chain, whose guarantee is asymptotic: dp.OPS(assume_converged=True). It "
            "needs bounded parameters, coefficients by dp.truncate(norms=)."
        )
        return Problem(
            where="model",
            what=f"its posterior cannot be drawn exactly ({reasons})",
            remedy=f"{remedy}{'' if assumed else last}",
        )


def _joined(*reasons: str) -> str:
    return "; ".join(reason for reason in reasons if reason)


def _loose(inspection: RowInspection) -> list[Problem]:
    """Name the columns whose values have no bounds, so that a row may move its likelihood by any amount."""
    return [
        Problem(
            where=column.name,
            what="its values have no bounds, and a row may move its likelihood by any amount",
            remedy=f"Give public bounds, dp.Domain(bounds={{{column.name!r}: (low, high)}}).",
        )
        for column in inspection.columns
        if not column.public and column.bounds is None and column.norm is None
    ]


def _bounds_first(priors: Sequence[Prior]) -> list[Problem]:
    """Name the bounds with which a grid could be laid, where these are all that is missing."""
    if sum(prior.size for prior in priors) > MOST_SCALARS:
        return []
    return [
        Problem(
            where=prior.name,
            what="it has no bounds between which a grid could be laid",
            remedy=f"Truncate it: dp.truncate(model, {{{prior.name!r}: (low, high)}}).",
        )
        for prior in priors
        if not prior.bounded and prior.distribution != "dirichlet"
    ]
