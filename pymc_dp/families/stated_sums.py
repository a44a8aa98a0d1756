"""What a row adds where its density states its statistics: any bounded numbers, as whole steps of a grid."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from itertools import product
from threading import Lock
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.printing import pprint

from pymc_dp.errors import ArgumentError
from pymc_dp.families.statistic import GRID
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.stated import Statement

MOST_STATES = 2**16
"""Possible rows that are enumerated."""
MOST_PAIRED = 2**10
"""Possible rows all pairs of which are compared."""
BLOCK = 2**12
"""Rows looked at together."""
UNIT_BITS = 20
"""Squares of steps, up to 2**62, are added in this unit: sums of 2**20 of them fit 64 bits."""

HELD = ("table", "statement")
"""What is too long for a file."""
ONE_AT_A_TIME = Lock()
"""A compiled function works in memory of its own."""


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
        one, two = _norms(table, statement.count), _distances(table, statement.count)
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

    def row_steps(self, values: Array) -> Array:
        """Return what every row adds, (n_rows, n_statistics) int64 array. Reads private data."""
        if self.table is not None:
            return self.table[self._places(values)].astype(np.int64)
        found = np.empty((len(values), len(self.bounds)), dtype=np.int64)
        buffer = np.empty(self.width)
        with ONE_AT_A_TIME, np.errstate(all="ignore"):
            for place, row in enumerate(values):
                buffer[:] = row
                if self.values is not None:
                    buffer[:] = np.rint(np.clip(np.nan_to_num(buffer, nan=self.values[0]), *self.values))
                found[place] = _steps(self._one(buffer), self.statement.bounds)
        return found

    def _one(self, row: Array) -> Array:
        """Return the statistics of one row; NaN where they cannot be computed: no row decides whether others are."""
        try:
            return np.asarray(self._function(row))
        except Exception:  # NumPy raises for integers to a negative power
            return np.full(len(self.bounds), np.nan)

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
        return {name: value for name, value in self.__dict__.items() if name != "_function"}

    def _places(self, values: Array) -> Array:
        """Place of every row in the table; an entry beyond the least and greatest value counts as the nearest."""
        from pymc_dp.families.row_sum_kernels import fold

        assert self.values is not None
        code = np.zeros(len(values), dtype=np.int64)
        plain = values.view(np.int8) if values.dtype == np.bool_ else values
        for entry in range(self.width):
            fold(code, np.ascontiguousarray(plain[:, entry]), *self.values, True, entry == 0)
        return code


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


def _norms(table: Array | None, count: int) -> tuple[int, int]:
    """Largest L1 norm and squared L2 norm of what one row adds: over all rows, or by the bounds."""
    if table is None:
        return count * GRID, count * GRID**2
    return _largest(table)


def _distances(table: Array | None, count: int) -> tuple[int, int]:
    """Largest L1 and squared L2 distance of what two rows add.

    Where every statistic has two values, and an entry that changes takes it to the other one whatever the other entries
    are, or never does: two rows differ as some row differs from the first, so that one is compared with all. Else over
    all pairs of rows, or, of too many, by the range of every statistic.
    """
    if table is None:
        return 2 * count * GRID, 4 * count * GRID**2
    if _flips(table):
        return _largest(table, table[0])
    if len(table) <= MOST_PAIRED:
        found = [_largest(table[start:], row) for start, row in enumerate(table)]
        return max(one for one, _ in found), max(two for _, two in found)
    ranges = [int(item) for item in table.max(axis=0).astype(np.int64) - table.min(axis=0)]
    return sum(ranges), sum(item**2 for item in ranges)


def _largest(table: Array, origin: Array | int = 0) -> tuple[int, int]:
    """Largest L1 and squared L2 distance of rows from one; squares are rounded up to a multiple of 2**UNIT_BITS."""
    one, two = 0, 0
    for start in range(0, len(table), BLOCK):
        size = np.abs(table[start : start + BLOCK].astype(np.int64) - origin)
        one = max(one, int(size.sum(axis=1).max()))
        two = max(two, int((-(-(size**2) >> UNIT_BITS)).sum(axis=1).max()) << UNIT_BITS)
    return one, two


def _flips(table: Array) -> bool:
    """Whether all entries have two values, and every statistic is of two values that each entry flips, or never."""
    above = table > table.min(axis=0)
    if len(table) & (len(table) - 1) or not (table == np.where(above, table.max(axis=0), table.min(axis=0))).all():
        return False
    found = above[:1]
    while len(found) < len(table):
        found = np.concatenate([found, found ^ above[len(found)] ^ above[0]])
    return bool((found == above).all())


__all__ = ["StatedSums"]
