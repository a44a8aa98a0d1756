"""Rows that are held, in memory or on disk, and compiled loops that walk by noised gradients of batches of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self, cast, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp._progress import reading
from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.account import Account, Rehearsal
from pymc_dp.kernel.batch_walk import BatchWalk
from pymc_dp.rows.gate import read
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.spool import Scratch, SpooledRows, row_bytes, spooled
from pymc_dp.rows.stored import StoredRows
from pymc_dp.samplers.batch_gradients import BatchGradients
from pymc_dp.samplers.chain_account import NOT_BEGUN, ChainAccount
from pymc_dp.samplers.noised_steps import Dynamics, Followed, asking, taking
from pymc_dp.simulation.columns import dummy_rows
from pymc_dp.step_methods.base import Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.langevin.batches import Batches, Course, Sampling, batch_size
from pymc_dp.transforms.prior_model import shared_prior_model

Precision = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")


@dataclass_state
class GradientWalkState(PrivateStepState):
    """Sampling state: of the contract, and what the dynamics remembers, which is a function of released gradients."""

    memory: np.ndarray


class GradientWalk(PrivateStep):
    """Base: where rows are held, and how a chain walks; what noise it takes, and its price, are for a subclass.

    A step walks by ``∇log prior(θ) + N/b Σ clipped gradients of a batch + N(0, σ²)``. Nothing else of a row is read.
    That a row adds no more than its norm, and that steps cost what was paid, is for the kernel (`BatchWalk`).
    """

    _state_class = GradientWalkState
    course: Course
    multiplied: ClassVar[bool] = False
    """Whether products of the entries of each row's gradient are summed beside these."""

    def __init__(self, vars: Any, *, stored: StoredRows | None, **settings: Any) -> None:
        self._rows: tuple[Array, ...] | None = None
        self._batch_walk: BatchWalk | None = None
        self._stored = stored
        self._passes: Passes | None = None
        self.memory = np.zeros(0)
        super().__init__(vars, **settings)

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def dynamics(self) -> Dynamics:
        """How a chain follows noised gradients."""

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

    @property
    @abstractmethod
    def _paid(self) -> Event:
        """What was paid for the steps of one chain."""

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
        self.gradients = BatchGradients(found, new)
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
        rows = tuple(map(self._held, self._dummies))
        position = np.zeros(self.gradients.size)
        walk = self._walk_over(rows, Rehearsal(self.neighbours), 1)
        state = self._followed(walk, position, self.remembered(position.size), np.zeros(1), np.random.default_rng(0))
        walk.compile(*self._followers, tuple(state))

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
        self._rows = self._batch_walk = None

    def row_norms(self, position: Array, rows: tuple[Array, ...]) -> Array:
        """Return the norms of the gradients of rows, at one position: (n_rows,). **Private** if the rows are.

        Each row is mapped by itself.
        """
        with np.errstate(all="ignore"):
            parts = [np.sqrt((found**2).sum(axis=1)) for found in self.gradients.of_rows(rows, position)]
        return np.concatenate([np.zeros(0), *parts])

    @property
    def _scratch(self) -> Scratch:
        """Where stored rows are copied."""
        return Scratch(folder=self.settings["scratch"], call=f"dp.{type(self).__name__}")

    def _held(self, values: Array) -> Array:
        """Return a column as it is held: floats may be rounded, also to infinity, without a warning."""
        with np.errstate(all="ignore"):
            return values.astype(self.settings["dtype"], copy=False) if values.dtype == np.float64 else values

    @override
    def start_chain(self) -> None:
        self._start(ChainAccount(self.neighbours, self._paid))

    def _start(self, account: Account) -> None:
        assert self._rows is not None
        self._compile()
        self._batch_walk = self._walk_over(self._rows, account, self.funding.steps, self.stream)
        self.memory = self.remembered(self.gradients.size)

    def _walk_over(self, rows: tuple[Array, ...], account: Account, steps: int, stream: int | None = None) -> BatchWalk:
        """Return a walk over rows, charged to an account."""
        poisson, course = self.batches.sampling == "poisson", self.course
        return BatchWalk(
            self.gradients.named(rows),
            account,
            self.gradients.compiled.of_row,
            size=self.gradients.size,
            bound=self.clip_norm,
            scale=course.sigma / self.batches.deviation(1.0, self.clip_norm),
            steps=steps,
            rate=self.batches.rate if poisson else None,
            batch=None if poisson else min(self.batches.size, len(rows[0])),
            products=course.products if self.multiplied else None,
            centred=course.centred,
            label=type(self).__name__,
            stream=stream,
        )

    @property
    def _followers(self) -> tuple[Any, Any]:
        """Compiled functions that say where a gradient is taken, and follow it."""
        before, after = self.dynamics.update
        return asking(before), taking(after, self.gradients.compiled.of_prior)

    def _followed(
        self,
        walk: BatchWalk,
        position: Array,
        memory: Array,
        sizes: Array,
        rng: np.random.Generator,
        *,
        tuning: bool = False,
    ) -> Followed:
        """Return what steps of some sizes read and write."""
        return Followed(
            position=position,
            memory=memory,
            sizes=sizes,
            constants=self.dynamics.constants,
            sigma=self.course.sigma,
            scale=self.batches.scale,
            share=1.0 if self.course.centred else 1 / self.batches.size,
            tuning=tuning,
            slope=np.empty(walk.released),
            rng=rng,
        )

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
        walk = self._batch_walk
        if walk is None:
            raise PrivacyError(NOT_BEGUN)
        if self.count == 0:
            point = self.begin(point, self.generator)
        position, memory = self.gradients.flat(point), self.memory
        tuning, all_sizes = self.count < self.tuning_steps, self.course.sizes[self.count : self.count + steps]
        for sizes in self.stretches(memory, all_sizes):
            state = self._followed(walk, position, memory, sizes, self.generator, tuning=tuning)
            walk.walk(*self._followers, tuple(state), len(sizes))
        return self.gradients.point(position, point)

    def __copy__(self) -> Self:
        """Return a copy for this process, which shares what was compiled."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__getstate__())
        return other

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave the walk behind: a copy begins its own chain."""
        return {**super().__getstate__(), "_batch_walk": None}


__all__ = ["PRECISIONS", "GradientWalk", "Precision"]
