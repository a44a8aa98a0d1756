"""Gibbs sampling of a model that ``privatize`` made: rows are gone, so that no update costs anything."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from pymc import Model

from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.columns import WITHOUT, levels_of
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.base import Point
from pymc_dp.step_methods.gibbs.grid import WIDTH, slice_draw
from pymc_dp.transforms.privatize import record_of

Levels = dict[str, Array]


def private_model(model: Model | None) -> Model | None:
    """Return the given model, or that of the context, if ``privatize`` made it; else None."""
    try:
        found = pm.modelcontext(model)
    except TypeError:
        return None
    return found if record_of(found) is not None else None


ADAPTATION = (8, 32, 128)
"""Scans of a chain after which the widths of its slices are set anew."""
MOVES = 3.0
"""First interval of a slice, in mean moves: about as wide as the slice itself."""


class ReleasedScan:
    """A scan over the value variables of a private model: slices, and enumeration of finite discrete ones.

    The time of a scan does not depend on the number of rows: the model holds sums, and the first `ADAPTATION` scans of
    a chain fit the first interval of each slice to the size of the moves.

    Parameters
    ----------
    model : pymc.Model

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 4.2.
    """

    def __init__(self, model: Model) -> None:
        self.levels, problems = _levels_by_place(model)
        if problems:
            raise UnsupportedModelError(problems)
        values = list(model.value_vars)
        self.names = [str(value.name) for value in values]
        with model:  # its own settings of checks
            self._logp: Any = pm.compile(values, model.logp(), trust_input=True, on_unused_input="ignore")
        self.start_chain()

    def start_chain(self) -> None:
        """Forget the widths of another chain."""
        self.widths: dict[str, Array | float] = dict.fromkeys(self.names, WIDTH)
        self.moves: dict[str, Array] = {}
        self.count = self.seen = 0

    def _adapt(self, old: Point, new: Point) -> None:
        """Set widths to a few mean moves, at the ends of windows; afterwards they stay."""
        window = next((end for end in ADAPTATION if self.count < end), None)
        if window is None:
            return
        for name in self.names:
            moved = np.abs(np.asarray(new[name], dtype=float) - old[name])
            self.moves[name] = self.moves.get(name, 0.0) + moved
        self.count, self.seen = self.count + 1, self.seen + 1
        if self.count == window:
            self.widths = {name: np.maximum(MOVES * moved / self.seen, 1e-9) for name, moved in self.moves.items()}
            self.moves, self.seen = {}, 0

    def advance(self, rng: np.random.Generator, point: Point) -> Point:
        """Update every value variable once."""
        new = dict(point)
        for name in self.names:
            new[name] = self.update(rng, new, name)
        self._adapt(point, new)
        return {name: new[name] for name in point}

    def update(self, rng: np.random.Generator, point: Point, name: str) -> Array:
        """Return a new value of one value variable, given the others."""
        if name in self.levels:
            return self._enumerate(rng, point, name)
        drawn = slice_draw(rng, partial(self._at, point, name), point[name], self.widths[name])
        return np.asarray(drawn, dtype=point[name].dtype)

    def _enumerate(self, rng: np.random.Generator, point: Point, name: str) -> Array:
        value = np.array(point[name])
        flat = value.reshape(-1)
        for place in range(flat.size):
            scores = []
            for level in self.levels[name]:
                flat[place] = level
                scores.append(self._at(point, name, value))
            flat[place] = self.levels[name][int(choose(rng, scores))]
        return value

    def _at(self, point: Point, name: str, place: Array) -> float:
        moved = {**point, name: np.asarray(place, dtype=point[name].dtype)}
        return float(self._logp(*(moved[name] for name in self.names)))


def _levels_by_place(model: Model) -> tuple[Levels, list[Problem]]:
    """Return the levels of discrete value variables by name, and what is in the way where there are no finite ones."""
    found: Levels = {}
    problems = []
    for prior in priors_of(model):
        levels = levels_of(prior)
        if levels is not None:
            found[str(model.rvs_to_values[prior.variable].name)] = levels
        elif not prior.variable.type.dtype.startswith("float"):
            problems.append(
                Problem(
                    where=prior.name,
                    what=f"{prior.name!r} {WITHOUT}",
                    remedy="Sample it with pm.sample alone, which chooses a Metropolis step for it.",
                )
            )
    return found, problems


__all__ = ["ReleasedScan", "private_model"]
