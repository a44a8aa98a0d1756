"""What the draws of a sampler are made from, as it runs: seen where a choice is randomised.

The exponential mechanism is replaced by one that notes the log weights that it is handed, and then chooses by public
numbers. So two tables lead through the same states, and at each of them their log weights can be compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from pytensor.graph.basic import Variable

from pymc_dp.draws import finite_choice
from pymc_dp.inspection import rows
from pymc_dp.rows import gate
from pymc_dp.step_methods.gibbs.grid import Free, Grid

AT_AN_END = 0.7
"""Share of the choices that are the first or the last one: others stand in the corners of the parameter space."""


class Seen:
    """Notes log weights, beside what is booked for a choice by them.

    Attributes
    ----------
    calls : list of (weights, booked)
        (n_elements, n_choices) log weights, and the η that pays for all elements together.
    """

    def __init__(self) -> None:
        self.restart([], 0)

    def restart(self, booked: list[float], seed: int) -> None:
        self.calls: list[tuple[np.ndarray, float]] = []
        self._booked, self._rng, self._ranges = iter(booked), np.random.default_rng(seed), None

    def expect(self, ranges: tuple[float, ...]) -> None:
        """The choices that come are those of one update: one for each of its ranges."""
        self._ranges = iter(ranges)

    def skip(self) -> None:
        """An update whose draws are not choices: what is booked for it is used up."""
        for range_ in self._ranges or ():
            if range_ > 0:
                next(self._booked)

    def note(self, weights: np.ndarray, booked: float) -> None:
        self.calls.append((np.array(weights, dtype=float).reshape(-1, np.shape(weights)[-1]), booked))

    def choose(self, rng: np.random.Generator, log_weights: Any) -> np.ndarray:
        """Stand for the mechanism."""
        free = self._ranges is not None and not next(self._ranges, 0.0) > 0
        weights = np.asarray(log_weights, dtype=float)
        self.note(weights, 0.0 if free else next(self._booked))
        count, shape = weights.shape[-1], weights.shape[:-1]
        place = self._rng.integers(count, size=shape)
        end = np.where(self._rng.random(shape) < 0.5, 0, count - 1)
        return np.asarray(np.where(self._rng.random(shape) < AT_AN_END, end, place))


class Watched:
    """An update of a scan: its choices are noted; draws from closed forms are left out, the state stays."""

    def __init__(self, update: Any, seen: Seen) -> None:
        self._update, self._seen = update, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._update, name)

    def draw(self, rng: np.random.Generator, values: Any, sums: Any, beta: float) -> np.ndarray:
        self._seen.expect(self._update.ranges)
        if isinstance(self._update, Grid | Free):
            return self._update.draw(rng, values, sums, beta)
        self._seen.skip()
        return np.asarray(values[self._update.name])


@contextmanager
def watching(seen: Seen, table: Mapping[Variable, np.ndarray]) -> Iterator[None]:
    """Inside, samplers read the rows of `table`, which may change, and choose by `seen`."""
    public = rows.known_rows

    def private_values(leaf: Variable) -> np.ndarray:
        return table[leaf]

    def known_rows(column: rows.Column) -> np.ndarray:
        return table[column.leaf] if column.leaf in table else public(column)

    with pytest.MonkeyPatch.context() as patch:
        _everywhere(patch, "private_values", gate.private_values, private_values)
        _everywhere(patch, "known_rows", public, known_rows)
        _everywhere(patch, "choose", finite_choice.choose, seen.choose)
        yield


def _everywhere(patch: pytest.MonkeyPatch, name: str, old: Callable[..., Any], new: Callable[..., Any]) -> None:
    for module in [item for key, item in sys.modules.items() if key.startswith("pymc_dp")]:
        if getattr(module, name, None) is old:
            patch.setattr(module, name, new)


__all__ = ["Seen", "Watched", "watching"]
