"""One posterior sample: every draw is an exact draw from a tempered posterior, and is paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Event, GDPEvent, SelfComposedEvent
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.certificates import certify
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import Proof
from pymc_dp.release.record import ReleaseRecord, SamplerRecord, described_domain
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from pymc_dp.step_methods.ops.from_rows import LogConcavePosterior, RowGridPosterior
from pymc_dp.step_methods.ops.from_sums import Posterior, TablePosterior, has_conjugate_form, table_posterior
from pymc_dp.step_methods.ops.hidden_states import StatesPosterior
from pymc_dp.step_methods.ops.in_ball import RegressionPosterior
from pymc_dp.step_methods.ops.price import Temperature, by_papers, coolest_first, worth
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.ops.row_proofs import Fit, Trial, enforced, prove_rows
from pymc_dp.step_methods.values import Values
from pymc_dp.transforms.likelihood import TableLikelihood, sums_problems, table_likelihoods
from pymc_dp.transforms.prior_model import prior_model as prior_model_of
from pymc_dp.transforms.prior_model import shared_prior_model

Way = RowGridPosterior | LogConcavePosterior | ConvergedPosterior | StatesPosterior
HARDLY = 1e-2
"""What an inverse temperature may lose for a grid, of which everything is enforced, against an exact rejection."""


class OPS(PrivateStep):
    """One posterior sample: draws from the posterior at a temperature, each of them released and paid for.

    ``p(θ | X)`` is drawn exactly from ``prior(θ) exp(Σ l(x, θ) / T)``, with the least temperature T >= 1 that the
    budget allows. Fewer draws have a lower temperature: the default is one. Models with sums of rows are drawn from
    conjugate distributions (those of `TemperedGibbs`, where a row tells of one variable in each likelihood) or from a
    grid, at a cost independent of the number of rows. A normal regression with known noise and coefficients in a ball
    is drawn by the kernel, from sums of products; other models that factorise over rows are drawn from a grid (one
    or two bounded parameters), or by rejection where the posterior is proved log-concave, also for a vector in a ball.

    Parameters
    ----------
    papers : bool
        False (default): T from the bounded range R of the likelihood, T = max(1, R / η), the prior untouched. True: the
        papers' rule T = max(1, 2 Δl / ε) for each draw, with the prior tempered as well; for comparison. By rejection
        neither is charged as proved, see **Guarantee**: T is up to four times as high.
    grid : int, optional
        Cells per axis where a model of one or two bounded parameters has no conjugate form; 16384 or 512 by default,
        4096 or 256 where rows are held one by one.
    assume_converged : bool
        Where no exact draw is known, take the last state of a NUTS chain on the tempered posterior, of a length judged
        on data simulated from the prior; of a Gibbs chain for a hidden Markov model of `MarkovStates` whose profiles
        are truncated Dirichlet. The guarantee is then asymptotic: it holds only if every chain has converged.
    scans : int, optional
        Length of such a Gibbs chain, instead of one that is judged on simulated data.
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
    **What a draw is worth.** Where rows are many, the mean of k draws lies about the truth with 1 + T / k times the
    variance of the posterior. ``dp.from_draws.draw_intervals`` knows it; a plot of draws does not.

    **Released.** Every draw of every chain, warm-up included, and nothing else: no density, no number of tries.

    **Networks** of discrete variables, whose shares are indexed by one another (``p[a]``, ``p[a, b]``, stacked or
    switched), are drawn exactly from a truncated beta or Dirichlet for each configuration of parents. R is the sum over
    nodes, each of which may move to another configuration: it is that of a row, while lemma 24 of Dimitrakakis et al.
    is for one changed entry of it.

    **Guarantee.** One draw is the exponential mechanism with score ``Σ l(x, θ)`` and bounded range ``η = R / T``, so
    η-DP and η²/8-zCDP; k draws are kη-DP, or ``k η²/8``-zCDP where δ > 0. R is the closed form of
    ``proofs.closed_form_ranges``, or what ``dp.sensitivity`` proves, over the support of the priors, under
    ``domain.neighbours``; where rows are held one by one it is enforced on the numbers that are summed, so that no
    float of a compiled density exceeds what is charged. Where δ > 0, the likelihood is proved concave in all parameters
    together, the prior proved m-strongly log-concave, and G bounds the gradient of a difference of two rows, one draw
    is also μ-GDP with ``μ = G / (T √m)``, with or without bounds on θ (not where it is drawn from a grid, which does
    not keep a density log-concave); the rule with the least temperature is used. Class exact: draws are independent and
    exact, no convergence is needed; arithmetic float64: sums over rows are of whole numbers, the last bits of the draw
    itself are not covered, nor are those of a draw that is paid for by its shape (μ). With ``papers=True`` each draw is
    2 Δl / T-DP and losses add. **By rejection** the R or Δl that is enforced, and charged, is four times what is proved
    under ``replace``, and twice under ``add_remove``. From sums what is charged is what is proved. On a grid it may be
    more, where rows need it. The report says how often. On a grid, a cell is drawn with its density at the middle and θ
    uniformly within it. With ``assume_converged=True`` the class may be asymptotic; the trace says which. Run times
    depend on the rows and are not covered.

    Under ``Domain(metric=ρ)``, ε is per unit of ρ and R too: the proved largest range of ``l(x, θ) - l(y, θ)`` over
    ``ρ(x, y)``, between tables that differ by ``Σ ρ(x_i, y_i)`` in all; with ``papers=True`` Δl is L_ρ, so that a draw
    is ``2 L_ρ / T``-private per unit. δ is 0. The trace says what ε is for a whole row, where values have bounds. Per
    unit it rests on the proof, which is about real numbers: rows are neither rounded nor held within anything, so that
    of two rows as near as the last digits of a log-likelihood floats may show more. `TemperedGibbs`, `BarkerMetropolis`
    and `find_map` enforce what they charge per unit, for rows of few columns.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 1; Foulds, Geumlek, Welling, Chaudhuri (2016), theorem 2; Dimitrakakis,
    Nelson, Zhang, Mitrokotsa, Rubinstein (2017), theorem 8.1; range accounting: Dong, Durfee, Rogers (2020), Cesar,
    Rogers (2021); log-concave posteriors: Gopi, Lee, Liu (2022), theorem 4.

    Examples
    --------
    >>> OPS(papers=True)
    OPS(papers=True)
    """

    name = "ops"
    guarantee = "exact"
    knows_metric: ClassVar[bool] = True
    default_draws: ClassVar[int] = 1

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
        if sums_problems(sums) and (self.settings["papers"] or not has_conjugate_form(sums)):
            return found.rows  # of other sums only conjugate forms have a range, and none has a Δl
        return sums

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.neighbours = inspection.domain.neighbours
        self.n_rows = inspection.n_rows if self.neighbours == "replace" else None
        self.clamped = clamped(inspection.model)
        self.ways: list[Way] = []
        self.proofs: tuple[Proof, ...] = ()
        if isinstance(inspection, RowInspection):
            return self._plan_regression(inspection) or self._plan_rows(inspection, "")
        prior_model, tables = table_likelihoods(inspection)
        found = table_posterior(prior_model, tables, self.settings.get("grid"), self.neighbours)
        if isinstance(found, TablePosterior):
            self.posterior: Posterior = found
            self.range, self.gaussian = found.range, self._shape(inspection)
        elif (
            self.settings.get("assume_converged")
            and (states := self._of_states(inspection, prior_model, tables)) is not None
        ):
            self.posterior, self.range, self.gaussian, self.ways = states, states.range, math.inf, [states]
            self.proved = states.range
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
        self.posterior, self.range, self.gaussian = found, found.range, math.inf
        self.values = Values(prior_model, quick=self.previewing)
        return prior_model

    def _shape(self, inspection: Inspection) -> float:
        """Return G / √m, which also pays for a conjugate form where rows alone would be held for want of a Δl."""
        rows = inspection.inspected.rows if sums_problems(inspection) else None
        if rows is None or rows.problems:
            return math.inf
        prior_model = shared_prior_model(rows)
        self.certificates = certify(*row_likelihoods(rows, prior_model), self.neighbours, prior_model)
        return self.certificates.gaussian()

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
            return self._plan_rows(rows, reasons)
        except UnsupportedModelError as error:
            raise UnsupportedModelError(curable or [*error.problems, self._no_draws(reasons)]) from None

    def _plan_rows(self, inspection: RowInspection, reasons: str) -> Model:
        """Prove a range or log-concavity, and find a way to draw."""
        prior_model = shared_prior_model(inspection)
        proved = prove_rows(inspection, prior_model, papers=self.settings["papers"])
        self.range, self.gaussian, self.certificates = proved.range, proved.gaussian, proved.certificates
        self.proofs, self.diameter, self.proved = proved.proofs, proved.diameter, proved.range
        density = RowDensity(inspection, prior_model, proved.priors)
        count = inspection.most_rows
        trial = Trial(density)
        moved = min(proved.gaussian, proved.range.value, proved.range.sensitivity)
        moved *= proved.diameter if math.isfinite(proved.diameter) else 1.0
        if (problem := trial.problem(count, moved)) is not None:
            raise UnsupportedModelError([problem])
        fit = self._fit(inspection, density, trial)
        self.enforced = fit is not None
        ways = self._found(inspection, density, fit)
        derived = any(not isinstance(way, str | RowGridPosterior) for way in ways) and not self.previewing
        if derived and (steep := trial.steep()):
            ways = [way if isinstance(way, RowGridPosterior) else steep for way in ways[:2]]
        self.ways = [way for way in ways if not isinstance(way, str)]
        refused = "; ".join([reasons] * bool(reasons) + [way for way in ways if isinstance(way, str)])
        if not self.ways:
            raise UnsupportedModelError([self._no_draws(refused)])
        self.posterior = self.ways[0]
        self.values = Values(prior_model, quick=self.previewing)
        return prior_model

    def _found(self, inspection: RowInspection, density: RowDensity, fit: Fit | None) -> list[Way | str]:
        """Find ways to draw, the grid first; in place of one that there is not, why."""
        count = inspection.most_rows
        ways: list[Way | str] = [
            RowGridPosterior.of(density, self.settings.get("grid"), fit),
            LogConcavePosterior.of(density, self.certificates, count),
        ]
        if fit is not None and isinstance(ways[1], LogConcavePosterior):
            ways.insert(1, ways[1].within(fit))
        if self.settings.get("assume_converged"):
            chain = ConvergedPosterior.of(
                inspection, density, prior_model_of(inspection), temper_prior=self.temper_prior
            )
            ways.append(chain)
        return ways

    def _fit(self, inspection: RowInspection, density: RowDensity, trial: Trial) -> Fit | None:
        """Return what bounds that are enforced are fitted to; None where no range is proved, or ε is per unit."""
        range_ = 2 * self.range.sensitivity if self.settings["papers"] else self.range.value
        if not math.isfinite(range_) or inspection.domain.metric is not None:
            return None
        count = inspection.most_rows
        return Fit(density=density, rows=trial.table, range=range_, neighbours=self.neighbours, n_rows=count)

    @override
    def price(self, funding: Funding) -> Event:
        self._choose(funding)
        return SelfComposedEvent(event=self.temperature.event, count=funding.uses)

    @property
    def temper_prior(self) -> bool:
        """Whether the prior is taken to the power of the inverse temperature too."""
        return bool(self.settings["papers"])

    def _temperatures(self, funding: Funding, range_: RowRange) -> list[Temperature]:
        if self.settings["papers"]:
            return [by_papers(range_.sensitivity, funding.budget, funding.uses)]
        return coolest_first(range_.value, self.gaussian, funding.budget, funding.uses)

    def _choose(self, funding: Funding) -> None:
        """Take the first temperature, and the first way to draw at it that ends in time, whatever the data.

        Exact ways come before others, and a grid, of which everything is enforced, before what is hardly cooler. What
        is cut into the cells of a grid is not log-concave, nor is what a bound is enforced on; where the range pays, it
        is enforced.
        """
        if not self.ways:
            self.temperature = self._temperatures(funding, self.range)[0]
            return
        found = [
            (temperature, way, range_)
            for way in self.ways
            for range_ in [enforced(self.proved, getattr(way, "bound", None))]
            for temperature in self._temperatures(funding, range_)
            if self._pays(way, temperature)
        ]
        obstacles = list[str]()
        for temperature, way, range_ in sorted(found, key=_rank):
            looked = way.exact or not self.previewing
            obstacle = way.obstacle(temperature.inverse, temperature.prior) if looked else ""
            if not obstacle:
                self.temperature, self.posterior, self.range = temperature, way, range_
                return
            obstacles.append(obstacle)
        reasons = obstacles or ["a grid does not keep a density log-concave"]
        raise UnsupportedModelError([self._no_draws("; ".join(reasons), "assume_converged" in self.settings)])

    def _pays(self, way: Way, temperature: Temperature) -> bool:
        """Whether a rule holds of what a way to draw does: a range where it is enforced, a shape where it is kept."""
        by_shape = isinstance(temperature.event, GDPEvent)
        if isinstance(way, RowGridPosterior):
            return not by_shape
        return not (isinstance(way, LogConcavePosterior) and self.enforced) or by_shape is (way.bound is None)

    @property
    @override
    def claimed(self) -> Guarantee:
        return "exact" if self.posterior.exact else "asymptotic"

    @override
    def load(self) -> None:
        self.sums = self.posterior.read()

    @override
    def start_chain(self) -> None:
        if isinstance(self.posterior, RegressionPosterior):
            self.posterior.begin(self.sums, self.temperature.event, self.funding.steps)

    @override
    def advance(self, point: Point) -> Point:
        return self.values.move(point, self.draw(self.generator))

    def draw(self, rng: np.random.Generator) -> dict[str, Array]:
        """Draw all free variables. Every call is one use of what was priced: what comes out is released."""
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
        if isinstance(self.temperature.event, GDPEvent):
            found = self.certificates
            return (
                f"G = {found.difference.value:.6g} (gradient of a difference of rows), prior m = {found.modulus:.6g}: "
                f"μ = G / (T √m) = {self.temperature.event.mu:.6g}, likelihood proved concave"
            )
        return f"R = {self.range.value:.6g}: {self.range.reason}"

    def _no_draws(self, reasons: str, assumed: bool = False) -> Problem:
        others = "dp.TemperedGibbs(), dp.BarkerMetropolis() or dp.SGLD()"
        if self.binding.domain.metric is not None:
            others = "dp.TemperedGibbs() or dp.BarkerMetropolis()"
        remedy = f"Bound or truncate the parameters, use {others}, which need no exact draws"
        last = (
            ", or accept the last state of a NUTS chain, whose guarantee is asymptotic: dp.OPS(assume_converged=True)"
        )
        return Problem(
            where="model",
            what=f"its posterior cannot be drawn exactly ({reasons})",
            remedy=f"{remedy}{'' if assumed else last}.",
        )


def _rank(item: tuple[Temperature, Way, RowRange]) -> tuple[bool, float]:
    temperature, way, _ = item
    return not way.exact, -temperature.inverse * (1 + HARDLY * isinstance(way, RowGridPosterior))
