"""Rows that are held, in memory or on disk, and compiled loops that walk by noised gradients of batches of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp._progress import reading
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.gate import read
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.spool import Scratch, SpooledRows, row_bytes, spooled
from pymc_dp.rows.stored import StoredRows
from pymc_dp.simulation.columns import dummy_rows
from pymc_dp.step_methods.base import Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.langevin.batches import Batches, Course, Sampling, batch_size
from pymc_dp.step_methods.langevin.gradients import RowGradients, compiled, row_gradients
from pymc_dp.step_methods.row_functions.builder import whole_chunk
from pymc_dp.step_methods.row_functions.cached_loop import closed_over
from pymc_dp.step_methods.row_functions.limits import Clip, clip_to
from pymc_dp.transforms.prior_model import shared_prior_model

if TYPE_CHECKING:
    from pymc_dp.step_methods.langevin.kernels import Plan, Table

Precision = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")
MOST_ROWS = 1024
"""Rows that are differentiated at a time."""


@dataclass_state
class GradientWalkState(PrivateStepState):
    """Sampling state: of the contract, and what the dynamics remembers, which is a function of released gradients."""

    memory: np.ndarray


class GradientWalk(PrivateStep):
    """Base: where rows are held, and how a chain walks; what noise it takes, and its price, are for a subclass.

    A step walks by ``∇log prior(θ) + N/b Σ clipped gradients of a batch + N(0, σ²)``. Nothing else of a row is read.
    The norm of what a row adds is enforced on the whole numbers that are summed, and their sum is exact (`Clip`).
    """

    _state_class = GradientWalkState
    course: Course
    multiplied: ClassVar[bool] = False
    """Whether products of the entries of each row's gradient are summed beside these."""

    def __init__(self, vars: Any, *, stored: StoredRows | None, **settings: Any) -> None:
        self._functions: tuple[Any, Any] | None = None
        self._rows: tuple[Array, ...] | None = None
        self._table: Table | None = None
        self._stored = stored
        self._passes: Passes | None = None
        self.memory = np.zeros(0)
        super().__init__(vars, **settings)

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def update(self) -> tuple[str, str]:
        """Names of the functions of `dynamics` that move a chain before and after the gradient is taken."""

    @property
    @abstractmethod
    def constants(self) -> tuple[float, ...]:
        """Numbers that the update takes."""

    @abstractmethod
    def remembered(self, size: int) -> Array:
        """Return what a chain of `size` parameters remembers at its start."""

    def stretches(self, memory: Array, sizes: Array) -> Iterator[Array]:
        """Yield step sizes, all in their order; what is yielded at once is followed without a word from here."""
        yield sizes

    @property
    @abstractmethod
    def clip_norm(self) -> float:
        """C: the greatest norm of a row's gradient."""

    @property
    @abstractmethod
    def _sampling(self) -> Sampling:
        """How batches are drawn."""

    @abstractmethod
    def begin(self, point: Point, generator: np.random.Generator) -> Point:
        """Return the point from which a chain walks, instead of this one."""

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        return found.rows if self._stored is None else with_stored(found.rows, self._stored)

    @override
    def plan(self, inspection: Inspection) -> Model:
        found = cast(RowInspection, inspection)
        new = shared_prior_model(found)
        self.neighbours = found.domain.neighbours
        population = found.n_rows if found.domain.n_max is None else found.domain.n_max
        self.batches = Batches(
            size=batch_size(self.settings["batch_size"], population),
            population=population,
            sampling=self._sampling,
            neighbours=self.neighbours,
            sampler=type(self).__name__,
        )
        self.gradients: RowGradients = row_gradients(found, new)
        self._columns = found.columns
        self._clamped_rows = clamped(found.model)
        self._dummies = tuple(dummy_rows(found.columns, 3, np.random.default_rng(0)))
        self._plan_storage(found)
        return new

    @property
    def population(self) -> int:
        """N: the number of rows, or ``n_max`` where that is private."""
        return self.batches.population

    def _plan_storage(self, found: RowInspection) -> None:
        """Find what stored rows need, before anything is spent: names, and room for their clamped copy."""
        if self._stored is None:
            return
        self._passes = Passes.of(found, self._stored)
        self._scratch.require(found, row_bytes(self._passes, self._held))

    def _compile(self) -> None:
        """Compile everything on dummy rows: nothing is spent if this fails."""
        if self._functions is None:
            self._functions = compiled(self.gradients)
            size = self.gradients.size
            table = self._room(tuple(map(self._held, self._dummies)), self._loop_plan(3))
            rng = np.random.default_rng(0)
            self._walk(np.zeros(size), self.remembered(size), np.zeros(1), False, rng, self._loop_plan(3), table)

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        if self._passes is None:
            self._rows = tuple(self._held(read(column)) for column in self._columns)
        else:
            with reading(self.shown, self._passes.n_rows, self.neighbours, "rows copied") as advance:
                self._rows = spooled(self._passes, scratch=self._scratch, held_as=self._held, passed=advance)
        self._columns, self._stored, self._passes = (), None, None

    @override
    def forget(self) -> None:
        if isinstance(self._rows, SpooledRows):
            self._rows.spool.remove()
        self._rows = self._table = None

    def row_norms(self, position: Array, rows: tuple[Array, ...]) -> Array:
        """Return the norms of the gradients of rows, at one position: (n_rows,). **Private** if the rows are."""
        self._compile()
        assert self._functions is not None
        from pymc_dp.step_methods.langevin.unnoised import row_norms

        return row_norms(self._functions[0], position, rows, self._dtypes)

    @property
    def _summed(self) -> int:
        """Numbers that are summed over rows: a gradient, and the matrix of its products."""
        size = self.gradients.size
        return size + self.multiplied * size * size

    @property
    def _scratch(self) -> Scratch:
        """Where stored rows are copied."""
        return Scratch(folder=self.settings["scratch"], call=f"dp.{type(self).__name__}")

    @property
    def _dtypes(self) -> list[Any]:
        """Dtypes of columns in the model, in which all is computed."""
        return [dummy.dtype for dummy in self._dummies]

    def _room(self, rows: tuple[Array, ...], plan: Plan) -> Table:
        """Return rows with room for a batch of them, in the dtypes of the model."""
        table: Table = _kernels().make_table(rows, plan, self._dtypes)
        return table

    def _held(self, values: Array) -> Array:
        """Return a column as it is held: floats may be rounded, also to infinity, without a warning."""
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
            products=self.course.products * self.clip_norm**2 / self.batches.size,
            centred=self.course.centred,
            constants=self.constants,
            clip=self._clip,
            poisson=self.batches.sampling == "poisson",
            batch_size=batch,
            waiting=-math.log1p(-rate) if rate < 1 else math.inf,
            chunk=whole_chunk(sum(column[0].size for column in self._dummies), MOST_ROWS),
        )
        return plan

    @property
    def _clip(self) -> Clip:
        """How rows are clipped: a batch of random size may hold all of them."""
        poisson = self.batches.sampling == "poisson"
        return clip_to(
            self.clip_norm,
            size=self.gradients.size,
            n_rows=self.population if poisson else self.batches.size,
            products=self.multiplied,
        )

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
        kernels, starts = _kernels(), self.gradients.starts
        updates = (getattr(_dynamics(), name) for name in self.update)
        loop = closed_over(kernels.walk, *self._functions, *updates)
        for part in self.stretches(memory, sizes):
            loop(position, memory, part, tuning, rng, plan, starts, table, self._summed)

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
        assert self._table is not None
        if self.count == 0:
            point = self.begin(point, self.generator)
        position = self.gradients.flat(point)
        sizes = self.course.sizes[self.count : self.count + steps]
        tuning = self.count < self.tuning_steps
        self._walk(position, self.memory, sizes, tuning, self.generator, self._loop, self._table)
        return self.gradients.point(position, point)

    def __copy__(self) -> Self:
        """Return a copy for this process, which shares what was compiled."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__getstate__())
        other._functions = self._functions
        return other

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions and scratch space behind: a worker makes its own."""
        return {**super().__getstate__(), "_functions": None, "_table": None}


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.step_methods.langevin import kernels

    return kernels


def _dynamics() -> ModuleType:
    from pymc_dp.step_methods.langevin import dynamics

    return dynamics


__all__ = ["PRECISIONS", "GradientWalk", "Precision"]
