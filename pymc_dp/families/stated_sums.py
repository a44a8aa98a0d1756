"""What a row adds where its density states its statistics: any bounded numbers, as whole steps of a grid."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from itertools import product
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.printing import pprint

from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.stated import Statement
from pymc_dp.kernel.readings import Listed, OneByOne, Reading
from pymc_dp.kernel.shapes import GRID, Interval, OneOf

MOST_STATES = 2**16
"""Possible rows that are enumerated."""

HELD = ("table", "statement")
"""What is too long for a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StatedSums:
    """A row adds ``k = clip(rint((f(x) - centre) / unit), -GRID, GRID)`` per statistic f, 0 where f is not a number.

    Whatever the arithmetic of f does, no row is ever further from 0. What a row adds depends on this row alone, to the
    last bit: where the possible rows are enumerated it is looked up, else every row is evaluated by itself, in the same
    memory.

    Attributes
    ----------
    width : int
        Entries of a row.
    names : tuple of str
        Of the statistics.
    bounds : tuple of (float, float)
        Of each statistic.
    values : (int, int) or None
        Least and greatest of the whole numbers that an entry can be.
    magnitude, magnitude_squared : int
        Upper bounds of the L1 norm and of the squared L2 norm of what one row adds, in grid steps.
    spread, spread_squared : int
        The same of the distance between what two rows add.
    table : (n_rows, n_statistics) array or None
        What each possible row adds, the first entry counting slowest, where they are enumerated.
    """

    width: int
    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    values: tuple[int, int] | None
    magnitude: int
    magnitude_squared: int
    spread: int
    spread_squared: int
    table: Array | None
    statement: Statement
    kind: Literal["stated"] = "stated"

    @classmethod
    def of(cls, statement: Statement) -> StatedSums:
        """Lay out the grid, and prove how far rows can be apart."""
        bounds, table = tuple((float(low), float(high)) for low, high in statement.bounds), None
        if statement.values is not None:
            table = _table(statement, statement.values)
        count = statement.count
        shape = Interval((-GRID,) * count, (GRID,) * count) if table is None else OneOf(table)
        (one, two) = shape.facts.magnitude, shape.facts.spread
        return cls(
            width=statement.width,
            names=statement.names,
            bounds=bounds,
            values=statement.values,
            magnitude=one[0],
            magnitude_squared=one[1],
            spread=two[0],
            spread_squared=two[1],
            table=table,
            statement=statement,
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What is public of it and fits a file: densities with other statistics have other facts."""
        facts = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in HELD}
        written = pprint(self.statement.statistics).encode() if self.table is None else self.table.tobytes()
        return facts | {"digest": sha256(written).hexdigest()}

    @property
    def advice(self) -> str:
        """What would make its noise smaller, in words."""
        if self.table is not None:
            return "noise is for the two possible rows whose statistics are furthest apart; fewer statistics need less."
        return (
            "noise is proportional to the width of the stated bounds, of all statistics together; tighter ones that "
            "are public knowledge help, and what lies beyond is clamped."
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per statistic."""
        return tuple(
            f"sum {name}" if centre == 0 else f"sum ({name} - {centre:g})".replace("- -", "+ ")
            for name, centre in zip(self.names, self.shifts, strict=True)
        )

    @property
    def scales(self) -> tuple[float, ...]:
        """Largest distance of each statistic from its centre, in its own units."""
        return tuple((high - low) / 2 for low, high in self.bounds)

    @property
    def steps(self) -> tuple[float, ...]:
        """Grid step of each statistic, in its own units."""
        return tuple(half / GRID for half in self.scales)

    @property
    def shifts(self) -> tuple[float, ...]:
        """What is subtracted from each statistic of a row: the middle of its bounds."""
        return tuple(low + (high - low) / 2 for low, high in self.bounds)

    def projected(self, sums: Array, n: Array, noise: Array) -> Array:
        """Return the sums of `n` rows nearest to given ones, one by one, per cell: no further than every row can be."""
        most = np.outer(n, self.scales)
        return np.clip(sums, -most, most)

    def reading(self, *, second: bool = False) -> Reading:
        """Return how the kernel reads a row."""
        if self.table is None or self.values is None:
            return OneByOne(self.width, self._function, self.bounds, self.values)
        return Listed(self.width, *self.values, self._points)

    @cached_property
    def _points(self) -> OneOf:
        assert self.table is not None
        return OneOf(self.table)

    def simulated_mean(self, rng: np.random.Generator, count: int) -> Array:
        """Mean statistic of made-up rows, nothing subtracted: (n_statistics,) array."""
        if self.table is None:
            return np.array(self.shifts) + np.array(self.scales) * rng.uniform(-0.5, 0.5, size=len(self.bounds))
        drawn = self.table[rng.integers(len(self.table), size=count)].mean(axis=0)
        return np.array(self.shifts) + drawn * np.array(self.steps)

    @cached_property
    def _function(self) -> Any:
        return plain_function([self.statement.row], self.statement.statistics)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_function", "_points")}


def _table(statement: Statement, values: tuple[int, int]) -> Array | None:
    """Evaluate the statistics of all possible rows; None if there are too many."""
    levels = range(values[0], values[1] + 1)
    if len(levels) ** statement.width > MOST_STATES:
        return None
    states = np.array(list(product(levels, repeat=statement.width)), dtype=np.float64)
    try:
        with np.errstate(all="ignore"):
            found = plain_function([], statement.of_rows(pt.constant(states)))()
    except Exception as error:
        raise ArgumentError(
            f"statistics cannot be computed for every row that values={values} allow: {error} Write them with floats."
        ) from error
    return _steps(np.broadcast_to(found, (len(states), statement.count)), statement.bounds).astype(np.int32)


def _steps(found: Array, bounds: Array) -> Array:
    """Clamp and round statistics, (..., n_statistics), to whole steps about the middle of their bounds."""
    half = (bounds[:, 1] - bounds[:, 0]) / 2
    scaled = (np.clip(found, bounds[:, 0], bounds[:, 1]) - (bounds[:, 0] + half)) * (GRID / half)
    whole = np.clip(np.rint(np.nan_to_num(scaled, nan=0.0)), -GRID, GRID)
    return whole.astype(np.int64)


__all__ = ["StatedSums"]
