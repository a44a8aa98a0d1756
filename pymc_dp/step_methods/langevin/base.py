"""Stochastic-gradient samplers: noised sums of clipped gradients of random batches, and dynamics that follow them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import ComposedEvent, total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier
from pymc_dp.accounting.events import Event
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.clamped import clamped, clamped_facts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.one_row import dummy_rows
from pymc_dp.inspection.row_terms import RowInspection, inspect_rows
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import ReleaseRecord, SamplerRecord
from pymc_dp.step_methods.base import Funding, Guarantee, Point, PrivateStep, PrivateStepState, spending_curve
from pymc_dp.step_methods.langevin.batches import SAMPLINGS, Batches, Sampling
from pymc_dp.step_methods.langevin.compiled import compiled
from pymc_dp.step_methods.langevin.course import LARGEST_STABLE, Course, algorithm_two
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.gradients import RowGradients, row_gradients
from pymc_dp.step_methods.langevin.spool import SpooledRows, check_scratch, spooled
from pymc_dp.step_methods.langevin.start import HALF, GivenStart, Start, planned_start, start_settings
from pymc_dp.step_methods.langevin.step_sizes import Constant, Limits, StepSizes, positive, step_sizes
from pymc_dp.step_methods.langevin.stored import Description, StoredRows, by_column, stored_rows, with_stored
from pymc_dp.step_methods.ops import OPS
from pymc_dp.transforms.husk import husk

if TYPE_CHECKING:
    from pymc_dp.step_methods.langevin.kernels import Plan, Table

Rows = Mapping[str, Array] | StoredRows
Precision = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")
CHUNK_BYTES = 3 * 2**16


@dataclass_state
class StochasticGradientState(PrivateStepState):
    """Sampling state: of the contract, and what the dynamics remembers, which is a function of released gradients."""

    memory: np.ndarray


class StochasticGradient(PrivateStep):
    """Base: batches, clipping, noise and price; a subclass says what it does with noised gradients.

    A step estimates the gradient of the log-posterior by ``∇log prior(θ) + N/b Σ clipped gradients + N(0, σ²)``; the
    noise makes the sum a Gaussian mechanism of multiplier z = σ b / (N C) on a random batch, and all else is a function
    of released estimates and fresh randomness.
    """

    guarantee: ClassVar[Guarantee] = "stepwise"
    _state_class = StochasticGradientState

    def __init__(
        self,
        vars: Any = None,
        *,
        batch_size: int = 256,
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
        self._functions: tuple[Any, Any] | None = None
        self._rows: tuple[Array, ...] | None = None
        self._table: Table | None = None
        self._stored = self._checked_rows(rows, start)
        self.memory = np.zeros(0)
        self._norm: float | None = None
        self._norm_seeded = False
        self.start: Start = GivenStart()
        rule = step_sizes(step_size)
        settings = {
            "batch_size": _validate.integer("batch_size", batch_size),
            "clip_norm": known_norm(clip_norm, rule),
            "step_size": rule.size if isinstance(rule, Constant) else rule,
            "sampling": None if sampling is None else _validate.choice("sampling", sampling, SAMPLINGS),
            "papers": flag("papers", papers),
            "dtype": _validate.choice("dtype", dtype, PRECISIONS),
            "steps_per_draw": _validate.integer("steps_per_draw", steps_per_draw),
            **start_settings(start, start_share),
            "rows": None if self._stored is None else Description(repr(self._stored)),
            "scratch": None if scratch is None else fspath(scratch),
            **(more or {}),
        }
        super().__init__(vars, settings=settings, **funding)

    def _checked_rows(self, rows: Rows | None, start: OPS | None) -> StoredRows | None:
        if rows is not None and start is not None:
            raise ArgumentError(
                f"start={start!r} would draw from the posterior of the rows of the model, which are dummies where "
                "rows= holds the table. Give one of them."
            )
        return stored_rows(rows)

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def update(self) -> tuple[str, str]:
        """Names of the functions of `dynamics` that move a chain before and after the gradient is taken."""

    @abstractmethod
    def variance(self, step_size: float) -> float:
        """Return the variance of the noise that the dynamics asks for in a step; proportional to the step size.

        What protects the rows may be all of it.
        """

    @property
    @abstractmethod
    def constants(self) -> tuple[float, ...]:
        """Numbers that the update takes."""

    @abstractmethod
    def remembered(self, size: int) -> Array:
        """Return what a chain of `size` parameters remembers at its start."""

    @abstractmethod
    def _dynamics(self) -> tuple[tuple[str, str], ...]:
        """Say what is followed, as facts of the record."""

    def natural(self, sigma: float) -> float:
        """Return η at which noise `sigma` on gradients is what the dynamics asks for: (η σ)² = variance(η)."""
        return self.variance(1.0) / sigma**2

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def inspect(self, model: Model, domain: Domain | None) -> Inspection:
        found = inspect_rows(model, domain)
        return found if self._stored is None else with_stored(found, self._stored)

    @override
    def plan(self, inspection: Inspection) -> Model:
        found = cast(RowInspection, inspection)
        new = husk(found)
        self.neighbours = found.domain.neighbours
        self.population = found.n_rows if found.domain.n_max is None else found.domain.n_max
        self.batches = Batches(
            size=self.settings["batch_size"],
            population=self.population,
            sampling=self._sampling,
            neighbours=self.neighbours,
            sampler=type(self).__name__,
        )
        self.gradients: RowGradients = row_gradients(found, new)
        self._columns = found.columns
        self._clamped_rows = clamped(found.model)
        self._dummies = tuple(dummy_rows(found.columns, 3, np.random.default_rng(0)))
        self._plan_start(found, new)
        self._plan_storage(found)
        return new

    def _plan_start(self, inspection: Inspection, new: Model) -> None:
        assert self.budget is not None
        self.start = planned_start(
            self.settings, inspection, new, self.budget, chains=self.chains, previewing=self.previewing
        )
        neighbours, assumptions, left_out = self.inspection_record
        self.inspection_record = neighbours, tuple(dict.fromkeys((*assumptions, *self.start.assumptions))), left_out

    def _plan_storage(self, found: RowInspection) -> None:
        """Find what stored rows need, before anything is spent: names, and room for their clamped copy."""
        if self._stored is None:
            return
        self._names, self._stored_length = by_column(found, self._stored.layouts()), found.n_rows
        public = self.neighbours == "replace"
        check_scratch(self.settings["scratch"], self._row_bytes * found.n_rows if public else None)

    @property
    def _sampling(self) -> Sampling:
        return cast(Sampling, self.settings["sampling"] or "poisson")

    @override
    def price(self, funding: Funding) -> Event:
        budget = funding.budget
        if budget.delta == 0:
            raise ArgumentError(
                f"{type(self).__name__} adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far "
                "below 1 / number of rows."
            )
        self.start = self.start.priced(funding)
        if self._estimate is not None:
            self._estimate.check(budget, self.neighbours, self.population)
        paid = {"beside": self._beside(self.start.event), **self.batches.arguments}
        self._least = noise_multiplier(budget.epsilon, budget.delta, funding.uses, **paid) * (1 + 1e-9)
        self._settle(funding)
        if not self.previewing:
            self._compile()
        return self._whole(self.batches.event(self.multiplier, funding.uses))

    def _beside(self, start: Event | None) -> Event | None:
        """Return what is paid beside the steps, of starts this."""
        estimate, budget = self._estimate, self.budget
        found = [start] if start is not None else []
        if estimate is not None and budget is not None:
            found.append(estimate.event(budget))
        return ComposedEvent(events=tuple(found)) if len(found) > 1 else next(iter(found), None)

    def _whole(self, steps: Event) -> Event:
        """Return what steps cost together with all that comes before them."""
        beside = self._beside(self.start.event)
        return steps if beside is None else ComposedEvent(events=(beside, steps))

    @override
    def _spending(self) -> tuple[Any, Any]:
        assert self.funding is not None
        steps = self.batches.event(self.multiplier, self.funding.uses)
        return spending_curve(steps, self.funding, self.funding.budget.delta, first=self._beside(self.start.once))

    @property
    @override
    def claimed(self) -> Guarantee:
        return self.start.guarantee(self.guarantee)

    @property
    def _estimate(self) -> EstimatedNorm | None:
        given = self.settings["clip_norm"]
        return given if isinstance(given, EstimatedNorm) else None

    @property
    def clip_norm(self) -> float:
        """C; 1 until it is known, as the noise multiplier and all that is priced are the same for every C.

        An estimate is not known before the number of steps is fixed, so that this cannot be chosen with it in view.
        """
        if self._estimate is None:
            return float(self.settings["clip_norm"])
        return 1.0 if self._norm is None or self.funding is None else self._norm

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
            sigma = max(sigma, math.sqrt(self.variance(size)) / size)
        sizes = rule.sizes(funding.steps, Limits(natural=natural, stable=self._stable))
        return Course(sizes=sizes, sigma=sigma, heat=sizes / self.natural(sigma))

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
        sigma = math.sqrt(self.variance(wanted)) / wanted
        steps = self.batches.event(self.batches.multiplier(sigma, self.clip_norm), funding.uses)
        cost = total_epsilon(self._whole(steps), funding.budget.delta).epsilon
        return (
            f"step_size={wanted:g} has too little noise for {funding.uses} steps within {funding.budget}: they would "
            f"cost epsilon={cost:.4g}. The largest step size that would do is {largest:.4g}. Leave step_size out to "
            "have one chosen, make fewer steps, or clip to a smaller norm. dp.PolynomialDecay and dp.AlphaPhase start "
            "with larger steps, hotter than the target."
        )

    def _compile(self) -> None:
        """Compile everything on dummy rows: nothing is spent if this fails."""
        if self._functions is None:
            self._functions = compiled(self.gradients)
            size = self.gradients.size
            table = self._room(tuple(map(self._held, self._dummies)), self._loop_plan(3))
            rng = np.random.default_rng(0)
            dummy = np.zeros(size), self.remembered(size), np.zeros(1)
            self._walk(*dummy, False, rng, self._loop_plan(3), table)
            if self._estimate is not None:
                self.row_norms(dummy[0], tuple(map(self._held, self._dummies)))

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        if self._stored is None:
            self._rows = tuple(self._held(column.read()) for column in self._columns)
        else:
            self._rows = spooled(
                self._stored,
                self._names,
                self._columns,
                n_rows=self._stored_length,
                scratch=self.settings["scratch"],
                held_as=self._held,
            )
        self._columns, self._stored = (), None
        self.start.load()
        if self._estimate is not None:
            self._buy(self._estimate)

    @override
    def forget(self) -> None:
        if isinstance(self._rows, SpooledRows):
            self._rows.spool.remove()
        self._rows = self._table = None

    def _buy(self, estimate: EstimatedNorm) -> None:
        """Release a clip norm, once for all chains, and let noise and step sizes follow it."""
        assert self._rows is not None and self.budget is not None
        position = self.gradients.flat(self.husk.initial_point())
        norms, priced = self.row_norms(position, self._rows), self.multiplier
        self._norm, self._norm_seeded = estimate.estimate(norms, self.budget, self.neighbours), insecure() is not None
        if self.funding is not None:
            self._settle(self.funding)
            if self.multiplier < priced * (1 - 1e-9):
                raise PrivacyError("The noise would be below what was paid for; this is an error of pymc_dp.")

    def row_norms(self, position: Array, rows: tuple[Array, ...]) -> Array:
        """Return the norms of the gradients of rows, at one position: (n_rows,). **Private** if the rows are."""
        self._compile()
        assert self._functions is not None
        from pymc_dp.step_methods.langevin.norms import row_norms

        return row_norms(self._functions[0], position, rows, self._dtypes)

    @override
    def record(self) -> ReleaseRecord:
        found = super().record()
        return replace(found, guarantee="none") if self._norm_seeded else found

    @property
    def _row_bytes(self) -> int:
        """Bytes of a row in these."""
        return sum(column[0].nbytes for column in self._dummies)

    @property
    def _dtypes(self) -> list[Any]:
        """Dtypes of columns in the model, in which all is computed."""
        return [dummy.dtype for dummy in self._dummies]

    def _room(self, rows: tuple[Array, ...], plan: Plan) -> Table:
        """Return rows with room for a batch of them, in the dtypes of the model."""
        table: Table = _kernels().make_table(rows, plan, self._dtypes)
        return table

    def _held(self, values: Array) -> Array:
        """Return a column as it is held: floats may be rounded, to infinity too, of which nothing is told."""
        with np.errstate(all="ignore"):
            return values.astype(self.settings["dtype"], copy=False) if values.dtype == np.float64 else values

    @override
    def start_chain(self) -> None:
        assert self._rows is not None
        self._compile()
        self._loop = self._loop_plan(self.population)
        self._table = self._room(self._rows, self._loop)
        self.memory = self.remembered(self.gradients.size)

    def _loop_plan(self, population: int) -> Plan:
        batch, rate = min(self.batches.size, population), self.batches.rate
        plan: Plan = _kernels().Plan(
            scale=self.batches.scale,
            sigma=self.course.sigma,
            constants=self.constants,
            clip_norm=self.clip_norm,
            poisson=self.batches.sampling == "poisson",
            batch_size=batch,
            waiting=-math.log1p(-rate) if rate < 1 else math.inf,
            chunk=max(32, min(1024, CHUNK_BYTES // max(1, self._row_bytes))),
        )
        return plan

    def _walk(
        self,
        position: Array,
        memory: Array,
        sizes: Array,
        tuning: bool,
        rng: np.random.Generator,
        plan: Plan,
        table: Table,
    ) -> None:
        """Make a step of every size, in place."""
        assert self._functions is not None
        _kernels().walk(
            position,
            memory,
            sizes,
            tuning,
            rng,
            plan,
            *self._functions,
            *(getattr(_dynamics(), name) for name in self.update),
            self.gradients.starts,
            table,
        )

    def clipped_sum(self, position: Array, places: Array) -> Array:
        """Return the sum of the clipped gradients of some rows, without noise. **Private**; for tests and audits."""
        assert self._rows is not None
        self._compile()
        assert self._functions is not None
        table = self._room(self._rows, self._loop_plan(self.population))
        total = np.zeros(position.size)
        _kernels().add_clipped(
            self._functions[0],
            position,
            table.rows,
            np.asarray(places, dtype=np.int64),
            self.gradients.starts,
            self.clip_norm,
            table.buffers,
            table.squares,
            total,
        )
        return total

    # --- chain --------------------------------------------------------------------------------------------------------

    @override
    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        self.require_paid()
        point = self._moved(point, self.steps_per_draw)
        self.count += self.steps_per_draw
        return point, self.statistics()

    @override
    def advance(self, point: Point) -> Point:
        return self._moved(point, 1)

    def _moved(self, point: Point, steps: int) -> Point:
        assert self._table is not None and self.generator is not None
        if self.count == 0:
            point = self.start.point(point, self.generator)
        position = self.gradients.flat(point)
        sizes = self.course.sizes[self.count : self.count + steps]
        tuning = self.count < self.tuning_steps
        self._walk(position, self.memory, sizes, tuning, self.generator, self._loop, self._table)
        return self.gradients.point(position, point)

    @override
    def describe(self) -> SamplerRecord:
        assert self.funding is not None
        total = total_epsilon(self.event, self.funding.budget.delta)
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"{self._noise()}, multiplier {self.multiplier:.6g}",
            variables=tuple(str(var.name) for var in self.husk.free_RVs),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("batch", str(self.batches)),
                *self._clipping(),
                ("step size", self._sizes()),
                *self.start.facts,
                *self._dynamics(),
                *self.course.warmth,
                ("noise multiplier", f"{self.multiplier:.6g} (standard deviation over clip norm, per step)"),
                ("accountant", f"{total.accountant}: epsilon={total.epsilon:.6g}"),
                ("rows, public", f"{self.population}"),
                *clamped_facts(self._clamped_rows),
            ),
        )

    def _noise(self) -> str:
        return "Gaussian noise on every gradient"

    def _clipping(self) -> tuple[tuple[str, str], ...]:
        if self._estimate is None:
            return (("clip norm", f"{self.clip_norm:g} per row, over all parameters in unconstrained space"),)
        assert self.budget is not None
        return self._estimate.facts(self._norm, self.budget, self.neighbours)

    def _sizes(self) -> str:
        if self._estimate is not None and self._norm is None:
            return "chosen for the clip norm once it is known"
        return self.course.shown

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions and scratch space behind: a worker makes its own."""
        return {**super().__getstate__(), "_functions": None, "_table": None}


def known_norm(given: object, rule: StepSizes) -> float | EstimatedNorm:
    """Return a clip norm, or how it will be estimated; then no step size can be fixed before."""
    if not isinstance(given, EstimatedNorm):
        return positive("clip_norm", given)
    if isinstance(rule, Constant) and rule.size is not None:
        raise ArgumentError(
            f"step_size={rule.size:g} may be too large for a clip norm that is not known yet. Leave step_size out, "
            "give a rule such as dp.PolynomialDecay(), or give clip_norm as a number."
        )
    return given


def flag(name: str, value: object) -> bool:
    """Return a truth value, and nothing that only looks like one."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {value!r}.")
    return value


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.step_methods.langevin import kernels

    return kernels


def _dynamics() -> ModuleType:
    from pymc_dp.step_methods.langevin import dynamics

    return dynamics


__all__ = ["Precision", "Rows", "StochasticGradient", "flag"]
