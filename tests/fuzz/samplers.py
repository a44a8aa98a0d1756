"""Samplers bound to a model, whose draws can be repeated on other tables: each by its own way through the package."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.accounting import BoundedRangeEvent, Budget, ComposedEvent, Event, SelfComposedEvent
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Column
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.annealing import Annealing, Settings
from pymc_dp.step_methods.annealing.price import path_of
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.mode import CandidateMode, Grid
from pymc_dp.step_methods.ops import OPS
from tests.fuzz.seen import Seen, Watched

ENOUGH = 1e9
"""An ε at which nothing is tempered."""
POINTS = 32
"""Of grids of one variable given the rest."""
CELLS = {1: 1024, 2: 32}
"""Per axis of grids over all: the middles of the outermost ones are near the ends."""
SCANS, PARTICLES, TEMPERATURES, STEPS = 3, 2, 2, 12


class Subject(ABC):
    """One sampler of one model.

    Attributes
    ----------
    columns : sequence of Column
        Of the table that it reads.
    """

    columns: Sequence[Column]

    @abstractmethod
    def run(self, seen: Seen, seed: int) -> None:
        """Read the rows, and draw: through the same states for the same seed, whatever the rows are."""


def booked(event: Event) -> list[float]:
    """η of every mechanism, in the order in which they run."""
    match event:
        case SelfComposedEvent():
            return booked(event.event) * event.count
        case ComposedEvent():
            return [eta for part in event.events for eta in booked(part)]
        case BoundedRangeEvent():
            return [event.eta]
    raise AssertionError(f"{event} is not a choice")


class _Step(Subject):
    """A step that is bound to a model as ``dp.sample`` does it."""

    uses = 1

    def __init__(self, specification: Any, model: pm.Model, domain: dp.Domain, epsilon: float) -> None:
        inspection = specification.inspect(model, domain)
        self.step, self.event = specification.bound(inspection, Budget(epsilon), chains=1, steps=self.uses)
        self.columns = _columns(inspection, model, domain)
        self.start = {name: np.asarray(value) for name, value in self.step.prior_model.initial_point().items()}

    def run(self, seen: Seen, seed: int) -> None:
        seen.restart(booked(self.event), seed)
        self.step.generator = np.random.default_rng(seed)
        with opened_gate():
            self.step.load()
        point = self.start
        for _ in range(self.uses):
            point = self.step.advance(point)


class OneSample(_Step):
    """`OPS` from a grid."""

    def __init__(self, model: pm.Model, domain: dp.Domain, epsilon: float = ENOUGH, **settings: Any) -> None:
        scalars = sum(int(np.prod(var.shape.eval())) for var in model.free_RVs)
        super().__init__(OPS(**{"grid": CELLS.get(scalars), **settings}), model, domain, epsilon)


class Gibbs(_Step):
    """`TemperedGibbs`, on grids of its own; draws from closed forms are left out."""

    uses = SCANS

    def __init__(
        self, model: pm.Model, domain: dp.Domain, epsilon: float = ENOUGH, uses: int = SCANS, **settings: Any
    ) -> None:
        self.uses = uses
        super().__init__(TemperedGibbs(**{"grid": POINTS, **settings}), model, domain, epsilon)
        self.scan = self.step.scan

    def run(self, seen: Seen, seed: int) -> None:
        self.step.scan = replace(self.scan, updates=tuple(Watched(update, seen) for update in self.scan.updates))
        super().run(seen, seed)


class Mode(_Step):
    """`find_map` among candidates on a grid."""

    def __init__(self, model: pm.Model, domain: dp.Domain, epsilon: float = 1.0) -> None:
        super().__init__(CandidateMode(Grid(cells=None, axes={})), model, domain, epsilon)


class Annealed(Subject):
    """`sample_ais`: every transition, and the indices that are drawn by the weights."""

    def __init__(self, model: pm.Model, domain: dp.Domain, epsilon: float = ENOUGH, **settings: Any) -> None:
        given = {
            "draws": 1,
            "particles": PARTICLES,
            "path": path_of(TEMPERATURES),
            "resampling": "range",
            "evidence": False,
            "weights_share": 0.0,
            "evidence_share": 0.0,
            "grid": POINTS,
            **settings,
        }
        inspection = TemperedGibbs().inspect(model, domain)
        self.sampler = Annealing(inspection, Settings(**given))
        self.event = self.sampler.price(Budget(epsilon))
        self.columns = _columns(inspection, model, domain)
        self.scan, self.starts = self.sampler.scan, self.sampler.starts(np.random.default_rng(0))

    def run(self, seen: Seen, seed: int) -> None:
        seen.restart(booked(self.event), seed)
        self.sampler.scan = replace(self.scan, updates=tuple(Watched(update, seen) for update in self.scan.updates))
        with opened_gate():
            self.sampler.load()
        weigh = self.sampler.weigh

        def weighed(states: Any) -> Any:
            seen.expect((np.inf,))
            return weigh(states)

        self.sampler.weigh = weighed  # type: ignore[method-assign]
        try:
            with dp.testing.insecure_randomness(seed):
                self.sampler.run(self.starts, np.random.default_rng(seed), lambda: None)
        finally:
            self.sampler.weigh = weigh  # type: ignore[method-assign]


class Metropolis(_Step):
    """`BarkerMetropolis`: the log odds of two states, booked at the range that is proved of them."""

    def __init__(self, model: pm.Model, domain: dp.Domain, epsilon: float = ENOUGH, **settings: Any) -> None:
        super().__init__(BarkerMetropolis(**settings), model, domain, epsilon)

    def run(self, seen: Seen, seed: int) -> None:
        seen.restart([], seed)
        with opened_gate():
            self.step.load()
        for here, there, reach in self._moves(seed):
            seen.note(np.array([0.0, self.step.ratio.moved(here, there)]), reach)

    @cache  # noqa: B019  # proofs take long, and are the same for all tables
    def _moves(self, seed: int) -> list[tuple[Any, Any, float]]:
        """Walk from the start by public numbers, with steps of any length, where a chain may go."""
        rng, at = np.random.default_rng(seed), self.step.coefficients.at
        here, found = at(self.step.coefficients.start.values), []
        for scale in np.geomspace(1e-3, 10, STEPS):
            there = at(here.values + scale * rng.standard_normal(len(here.values)))
            if (reach := self.step._between(here, there)) < np.inf:
                found.append((here, there, reach))
                here = there if rng.random() < 0.5 else here
        return found


SAMPLERS: dict[str, Callable[[pm.Model, dp.Domain], Subject]] = {
    "OPS": OneSample,
    "TemperedGibbs": Gibbs,
    "sample_ais": Annealed,
    "find_map": Mode,
    "BarkerMetropolis": Metropolis,
}


def _columns(inspection: Any, model: pm.Model, domain: dp.Domain) -> Sequence[Column]:
    from pymc_dp.inspection.inspect import inspect

    rows = inspection if isinstance(inspection, RowInspection) else inspect(model, domain).rows
    return rows.columns


__all__ = ["SAMPLERS", "Annealed", "Gibbs", "Metropolis", "Mode", "OneSample", "Subject", "booked"]
