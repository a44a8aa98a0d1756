"""Annealed importance sampling bound to a model: planned and priced before the rows are read, then run once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pymc import Model

from pymc_dp.accounting import Budget, Event, PureEvent, total_epsilon
from pymc_dp.before_kernel import secure_generator
from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.inspect import refuse_metric
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.draw import slack
from pymc_dp.release.record import ALL_OF_IT, PartRecord, SamplerRecord
from pymc_dp.samplers.gibbs import GibbsRows
from pymc_dp.samplers.gibbs_sums import ROUNDED
from pymc_dp.samplers.row_paths import RowPaths, WeighedRows
from pymc_dp.samplers.sum_paths import Noised, SumPaths, WeighedSums
from pymc_dp.step_methods.annealing.particles import on_the_simplex, prior_draws, prior_problems
from pymc_dp.step_methods.annealing.price import Costs, largest_beta
from pymc_dp.step_methods.funding import steps_within
from pymc_dp.step_methods.gibbs.likelihoods import likelihoods_of
from pymc_dp.step_methods.gibbs.paying import Payment, PricedDraw
from pymc_dp.step_methods.gibbs.plan import plan_scan

Resampling = Literal["range", "laplace"]
NAME = "AnnealedImportanceSampling"
UP = 1 + 1e-12
"""By how much noise is above what is needed, for the rounding of its loss."""
TAKEN = ("chain", "draw", "particle")
"""Dimensions of the trace."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a user asks for.

    Attributes
    ----------
    draws, particles : int
    path : tuple of float
        Inverse temperatures relative to the last.
    resampling : {"range", "laplace"}
    evidence : bool
    weights_share, evidence_share : float
        Of ε, for the noise on weights and on the log evidence; 0 where there is none.
    grid : int or None
    """

    draws: int
    particles: int
    path: tuple[float, ...]
    resampling: Resampling
    evidence: bool
    weights_share: float
    evidence_share: float
    grid: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Annealed:
    """Everything that is released.

    Attributes
    ----------
    particles : dict of str to (n_particles, ...) array
        Last states.
    chosen : (n_draws,) array
        Which of them each draw is.
    weights : Noised or None
        On the simplex.
    evidence : Noised or None
    """

    particles: dict[str, Array]
    chosen: Array
    weights: Noised | None
    evidence: Noised | None


class Annealing:
    """One run, for one model and one budget.

    Parameters
    ----------
    inspection : Inspection
        As ``TemperedGibbs().inspect`` returns it.
    settings : Settings

    Raises
    ------
    UnsupportedModelError
        With every problem found. Nothing private is read before `load`.
    """

    def __init__(self, inspection: Inspection, settings: Settings) -> None:
        inspection.require()
        refuse_metric(inspection.domain)  # what Gibbs sampling inspects may have one
        self.settings, self.neighbours = settings, inspection.domain.neighbours
        self.likelihoods = likelihoods_of(inspection, evidence=settings.evidence)
        if self.likelihoods.latents:
            raise UnsupportedModelError([_latents(latent.name) for latent in self.likelihoods.latents])
        held = self.likelihoods.held
        if isinstance(held, GibbsRows) and settings.resampling == "laplace":
            raise UnsupportedModelError([BY_ROWS])
        self.prior_model, self.clamped = self.likelihoods.prior_model, clamped(inspection.model)
        if problems := [*_names(self.prior_model), *prior_problems(self.prior_model)]:
            raise UnsupportedModelError(problems)
        self.scan = plan_scan(self.likelihoods, grid=settings.grid)
        held.compile()
        states = self.scan.plan.states
        self.paths: RowPaths | SumPaths
        if isinstance(held, GibbsRows):
            self.paths = RowPaths(held, np.array([held.state(values) for values in states]))
            self.paths.compile(settings.particles, len(settings.path), evidence=settings.evidence)
        else:
            call = self.scan.functions.slopes_here(self.likelihoods.tables)
            bases = [table.family.base or 0.0 for table in self.likelihoods.tables]
            self.paths = SumPaths(held, lambda values: np.concatenate(call(values)), states, bases)
        self.beta = self.epsilon = np.nan
        self.payments: list[Payment] = []

    def price(self, budget: Budget) -> Event:
        """Choose the last inverse temperature for a budget, and return what everything costs: never above it."""
        settings = self.settings
        self.budget = budget
        self.costs = Costs(
            path=settings.path,
            updates=self.scan.ranges,
            particles=settings.particles,
            range=self.paths.range,
            indices=settings.draws if settings.resampling == "range" else 0,
            weights=settings.weights_share * budget.epsilon,
            evidence=settings.evidence_share * budget.epsilon,
            slacks=self.scan.slacks,
            slack=float(slack(settings.particles)) + ROUNDED,
            ends=(self.paths.low, self.paths.high) if isinstance(self.paths, RowPaths) else None,
        )
        self.beta = largest_beta(self.costs, budget)
        event = self.costs.event(self.beta)
        self.epsilon = total_epsilon(event, budget.delta).epsilon
        if self.epsilon > budget.epsilon:
            raise PrivacyError(f"The run would cost {self.epsilon}, not {budget}; this is an error of pymc_dp.")
        return event

    @property
    def path(self) -> Array:
        """Inverse temperatures, without the prior's 0."""
        return np.array([self.beta * step for step in self.settings.path])

    def load(self) -> None:
        """Read the rows, once. Reads private data: the budget must have been charged."""
        self.likelihoods.held.load()

    def starts(self, public: np.random.Generator) -> dict[str, Array]:
        """Draw where particles start, from the prior: (n_particles, ...) arrays. Reads nothing private."""
        points, names = self.scan.points, [str(var.name) for var in self.prior_model.free_RVs]
        ends = {name: (points.low[name], points.high[name]) for name in names}
        drawn = prior_draws(self.prior_model, ends, self.settings.particles, public)
        return {name: points.inside(name, held) for name, held in drawn.items()}

    def run(self, starts: Mapping[str, Array], public: np.random.Generator, progress: Callable[[], None]) -> Annealed:
        """Anneal all particles, weigh them, and release what is paid for.

        Parameters
        ----------
        starts : mapping of str to array
            What `starts` returned.
        public : numpy.random.Generator
            For what sees no row: draws by released weights.
        progress : callable
            Called after every transition.
        """
        held, settings = self.likelihoods.held, self.settings
        self.payments = [Payment(self.scan.plan.priced, float(beta), settings.particles, None) for beta in self.path]
        most = self.beta * self.costs.range
        index = PricedDraw(most=most, slack=self.costs.slack).event(1.0)
        parts: list[Event] = [event for payment in self.payments for event in payment.paid]
        parts += [repeated(index, settings.draws)] * (settings.resampling == "range")
        parts += [PureEvent(epsilon=loss) for loss in (self.costs.weights, self.costs.evidence) if loss]
        kernel = held.begin(parts)
        for payment in self.payments:
            payment.begin(kernel)
        states = self.anneal(secure_generator(), starts, progress)
        weigh = self._by_rows(states) if isinstance(held, GibbsRows) else self._by_sums(states)
        weights = None
        if settings.resampling == "laplace":
            found = weigh.weights(1 / self.costs.weights * UP)
            weights = Noised(on_the_simplex(found.value), found.scale)
            shares = weights.value / weights.value.sum()
            places = public.choice(settings.particles, size=settings.draws, p=shares)
        else:
            pay = kernel.grant(index, settings.draws)
            places = np.array([weigh.choose(most, pay) for _ in range(settings.draws)])
        evidence = weigh.soft_max(1 / self.costs.evidence * UP) if settings.evidence else None
        held.forget()
        particles = {name: one[:, -1] for name, one in states.items()}
        return Annealed(particles=particles, chosen=places, weights=weights, evidence=evidence)

    def _by_rows(self, states: dict[str, Array]) -> WeighedRows:
        held, paths = self.likelihoods.held, self.paths
        assert isinstance(held, GibbsRows) and isinstance(paths, RowPaths)
        points = [[held.state(one) for one in path] for path in self._paths(states)]
        return WeighedRows(paths, held.kernel, np.array(points), self._shares(), self.costs.interval(self.beta))

    def _by_sums(self, states: dict[str, Array]) -> WeighedSums:
        assert isinstance(self.paths, SumPaths)
        shares = self._shares()
        return WeighedSums(self.paths, np.stack([shares @ self.paths.at(path) for path in self._paths(states)]))

    def _paths(self, states: dict[str, Array]) -> list[list[dict[str, Array]]]:
        """Return the states of each particle before each transition."""
        count, steps = self.settings.particles, len(self.settings.path)
        return [
            [{name: held[particle, step] for name, held in states.items()} for step in range(steps)]
            for particle in range(count)
        ]

    def _shares(self) -> Array:
        return np.diff(self.path, prepend=0.0)

    def anneal(
        self, rng: np.random.Generator, starts: Mapping[str, Array], progress: Callable[[], None] = lambda: None
    ) -> dict[str, Array]:
        """Return all states of all particles, the prior's first: (n_particles, n_temperatures + 1, ...) arrays."""
        shape = self.settings.particles, len(self.settings.path) + 1
        states = {name: np.empty((*shape, *held.shape[1:]), dtype=held.dtype) for name, held in starts.items()}
        for particle in range(self.settings.particles):
            values = {name: held[particle] for name, held in starts.items()}
            for step in range(len(self.path) + 1):
                if step:
                    self.scan.payments[:] = self.payments[step - 1 : step]
                    self._scan(rng, values)
                    progress()
                for name, held in states.items():
                    held[particle, step] = values[name]
        return states

    def _scan(self, rng: np.random.Generator, values: dict[str, Array]) -> None:
        """Update every variable in place: a transition that leaves prior times likelihood^beta as it is."""
        points = self.scan.points
        for update in self.scan.updates:
            name = update.name
            drawn = np.clip(update.draw(rng, values), points.low[name], points.high[name])
            values[name] = points.inside(name, np.asarray(drawn, dtype=values[name].dtype))

    # --- in words -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        size = f"{self.settings.particles} particles, {len(self.settings.path)} temperatures"
        return f"{type(self).__name__}({size}, beta={self.beta:.6g})"

    def describe(self) -> SamplerRecord:
        """Say what was done, in public terms, for the trace."""
        settings, path = self.settings, self.path
        facts = [
            ("beta", f"{self.beta:.6g}" + ("" if self.beta < 1 else ": the posterior")),
            ("path", f"{len(path)} inverse temperatures from {path[0]:.3g} to {path[-1]:.6g}, all states paid for"),
        ]
        facts += [update.fact for update in self.scan.updates]
        facts += [("weights", self._weights()), *self._of_evidence(), ("ε of each part alone", self._losses())]
        facts += [
            (f"target of {name}", f"log-likelihood of a row clipped to ({low:g}, {high:g}): a pseudo-posterior")
            for name, (low, high) in self.clamped.items()
        ]
        return SamplerRecord(
            name=NAME,
            noise=f"annealed to beta = {self.beta:.6g}",
            variables=tuple(str(var.name) for var in self.prior_model.free_RVs),
            chains=settings.particles,
            steps=len(path),
            facts=tuple(facts),
            parts=tuple(self._parts()),
            power=self.beta,
        )

    def _parts(self) -> Iterator[PartRecord]:
        """Everything that is charged, each by itself."""
        settings = self.settings
        uses = {
            "path": f"{settings.particles} particle{'s' * (settings.particles != 1)} of {len(settings.path)} steps",
            "draws": f"{settings.draws} ind{'ices' if settings.draws > 1 else 'ex'}",
            "weights": "once",
            "log evidence": "once",
        }
        noise = {
            "path": f"annealed to beta = {self.beta:.6g}",
            "draws": f"exponential mechanism, beta R = {self.beta * self.costs.range:.6g}",
        }
        for name, event in self.costs.parts(self.beta):
            yield PartRecord(
                name=f"{NAME}, {name}",
                variables=tuple(str(var.name) for var in self.prior_model.free_RVs),
                uses=uses[name],
                noise=noise.get(name, "discrete Laplace"),
                epsilon=total_epsilon(event, self.budget.delta).epsilon,
            )

    def use_of_rest(self) -> str:
        """Say what would use the rest of the budget, where the path ends at the posterior and costs less."""
        if self.beta < 1 or self.epsilon > ALL_OF_IT * self.budget.epsilon:
            return ""

        def cost_of(particles: int) -> float:
            costs = replace(self.costs, particles=particles)
            return total_epsilon(costs.event(1.0), self.budget.delta).epsilon

        found = steps_within(cost_of, self.budget.epsilon, self.settings.particles)
        return "" if found is None else f"particles={found[0]} would cost ε = {found[1]:.4g}"

    def _weights(self) -> str:
        eta = self.beta * self.costs.range
        moved = f"range beta R = {eta:.6g}, R = {self.costs.range:.6g} over all parameters: {self.reason}"
        if self.settings.resampling == "range":
            return f"{self.settings.draws} indices drawn by them, each an exponential mechanism of {moved}"
        return (
            "released with discrete Laplace noise, of a scale over what one row moves all together of "
            f"{1 / self.costs.weights:.4g}, then projected to the simplex; {moved}"
        )

    def _of_evidence(self) -> list[tuple[str, str]]:
        if not self.settings.evidence:
            return []
        of = (
            "of the model" if self.beta == 1 else "of the tempered model, prior times likelihood^beta, not of the model"
        )
        text = (
            f"{of}; discrete Laplace noise, of a scale over what one row moves it by of {1 / self.costs.evidence:.4g}"
        )
        return [("log evidence", text)]

    @property
    def reason(self) -> str:
        """Where R comes from."""
        states = f"the largest at {len(self.scan.plan.states)} states"
        if isinstance(self.paths, RowPaths):
            return f"{states}, of public rows; enforced on the number of every row, and rows beyond it are cut"
        return f"{states}, of any two rows that there may be; where it is larger, weights have so much lower a power"

    def _losses(self) -> str:
        found = [(name, total_epsilon(event, self.budget.delta).epsilon) for name, event in self.costs.parts(self.beta)]
        return ", ".join(f"{name} {loss:.4g}" for name, loss in found)


def _names(prior_model: Model) -> list[Problem]:
    """Say which names the trace cannot hold, before anything is paid for it."""
    found = [str(var.name) for var in [*prior_model.free_RVs, *prior_model.deterministics]]
    dims = {str(dim) for name in found for dim in prior_model.named_vars_to_dims.get(name) or ()}
    taken = [(name, "variable") for name in found if name in TAKEN] + [("particle", "dimension")] * ("particle" in dims)
    return [
        Problem(
            where=name, what=f"a dimension of the trace has the name of this {kind}", remedy="Give it another name."
        )
        for name, kind in taken
    ]


BY_ROWS = Problem(
    where="resampling",
    what="weights are released with noise where exact sums are enough for all rows, and here they are not",
    remedy="Use resampling='range': every draw is then an index chosen by exact weights.",
)


def _latents(name: str) -> Problem:
    return Problem(
        where=name,
        what="it has one entry per row, in which particles differ: how far one row moves their weights is not proved "
        "here",
        remedy="Sum it out of the likelihood, or use dp.TemperedGibbs().",
    )


__all__ = ["Annealed", "Annealing", "Resampling", "Settings"]
