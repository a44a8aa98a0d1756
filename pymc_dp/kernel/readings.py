"""How rows are read, straight from columns as they are stored, as what a certified shape is made of.

A release of sums goes over rows once, and compiles nothing: loops of the kernel clamp and round each row by itself.
Whatever a row holds, what it adds is held within the shape as whole numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from types import ModuleType
from typing import Any, Literal, NamedTuple, final, override

import numpy as np

from pymc_dp.kernel.arguments import finite, finite_all, flag, keep, positive, whole, word
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.shapes import GRID, LONGEST, Array, Circle, Curve, Interval, MHot, OneHot, OneOf, Products, Shape

ONE_AT_A_TIME = Lock()
"""A compiled function works in memory of its own."""
STRIPES = 4
"""Copies of a table of counts: neighbouring rows of one cell then do not wait for each other."""
FUNCTIONS = {
    "identity": 0,
    "log": 1,
    "log_rest": 2,
    "reciprocal": 3,
    "power": 4,
    "distance": 5,
    "cos": 6,
    "sin": 7,
    "square": 8,
    "log_square": 9,
}
"""Of a number x, and an argument a where it has one: x, log x, log(1 - x), 1/x, x^a, |x - a|, cos, sin, (x - a)²,
(log x - a)²."""


def loops() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.kernel import reading_loops

    return reading_loops


def plain(values: Array) -> Array:
    """View booleans as bytes, and widen what numba does not know; it needs no other help."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    return values.view(np.int8) if values.dtype == np.bool_ else values


class Sums(NamedTuple):
    """Numbers of rows by cells, (STRIPES, n_cells) or (STRIPES, 0), and sums of whole numbers. **Private**.

    `sized` says whether the first are asked for.
    """

    rows: Array
    whole: Array
    sized: bool = False


class Reading(ABC):
    """How one row is read from some arrays of a table.

    Attributes
    ----------
    widths : tuple of int
        Entries of a row in each array.
    codes : int
        How many codes there are for each cell.
    """

    widths: tuple[int, ...] = (1,)
    codes = 1

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """What a row adds at most."""

    @property
    def size(self) -> int:
        """How many whole numbers are added up for each cell."""
        return self.shape.facts.size

    def released(self, total: Array) -> Array:
        """Return what gets noise, made of sums over all rows. **Private**."""
        return total

    @abstractmethod
    def whole(self, arrays: Sequence[Array]) -> Array:
        """Return what rows add, (n_rows, size) whole numbers of the shape. **Private**."""

    def begin(self, cells: int, *, sized: bool) -> Sums:
        """Return sums of no rows; with `sized`, and the number of rows of each cell."""
        sizes = np.zeros((STRIPES, cells * sized), dtype=np.int64)
        return Sums(sizes, np.zeros((cells, self.shape.facts.size), dtype=np.int64), sized)

    def add(self, code: Array, arrays: Sequence[Array], sums: Sums) -> None:
        """Add a chunk of rows to the sums of their cells. **Private**.

        Parameters
        ----------
        code : (n_rows,) integer array
            The cell of each row; a number of no cell adds nothing. It is overwritten.
        arrays : sequence of (n_rows, ...) arrays
        """
        if sums.rows.size:
            loops().tally(code, len(code), sums.rows)
        loops().add_whole(code, self.whole(arrays), sums.whole)

    def end(self, sums: Sums) -> Array:
        """Return sums, (n_cells, size), with the number of rows in front where it was asked for. **Private**."""
        return np.concatenate([sums.rows.sum(axis=0)[:, None], sums.whole], axis=1) if sums.sized else sums.whole


@final
@dataclass(frozen=True)
class Places(Reading):
    """A row counts at the place that its whole number names, from 0 on; any other number counts at the first place.

    With `edges` at that of the bin which its number lies in, ``edges[k - 1] < x <= edges[k]``; NaN in the middle one.
    `second` leaves out the first of two places: their sum is known.
    """

    count: int
    edges: tuple[float, ...] | None = None
    second: bool = False

    def __post_init__(self) -> None:
        edges = None if self.edges is None else finite_all("edges", self.edges)
        keep(self, count=whole("count", self.count), second=flag("second", self.second), edges=edges)
        if self.second and self.count != 2:
            raise ArgumentError(f"Only of two places one is left out, got {self.count}.")
        if edges is not None and (len(edges) != self.count - 1 or not (np.diff(edges) > 0).all()):
            raise ArgumentError("edges must increase, one less than there are places.")

    @property
    @override
    def codes(self) -> int:  # type: ignore[override]
        return self.count

    @property
    @override
    def shape(self) -> OneHot:
        return OneHot(1 if self.second else self.count)

    def fold(self, code: Array, values: Array) -> None:
        """Make the code of each row that of its cell and place. **Private**."""
        if self.edges is not None:
            held, values = np.ascontiguousarray(values, dtype=np.float64), np.empty(len(values), dtype=np.int64)
            loops().find_bins(held, np.array(self.edges), self.count // 2, values)
        loops().fold(code, plain(values), 0, self.count - 1, False, False)

    @override
    def begin(self, cells: int, *, sized: bool) -> Sums:
        if sized:
            raise ArgumentError("Counts of all places tell how many rows there are. Leave sized out.")
        return Sums(np.zeros((STRIPES, 0), dtype=np.int64), np.zeros((STRIPES, cells * self.count), dtype=np.int64))

    @override
    def add(self, code: Array, arrays: Sequence[Array], sums: Sums) -> None:
        self.fold(code, arrays[0])
        loops().tally(code, len(code), sums.whole)

    @override
    def end(self, sums: Sums) -> Array:
        found = sums.whole.sum(axis=0).reshape(-1, self.count)
        return found[:, 1:] if self.second else found

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        places = np.zeros(len(arrays[0]), dtype=np.int64)
        self.fold(places, arrays[0])
        found = np.zeros((len(places), self.count), dtype=np.int64)
        found[np.arange(len(places)), places] = 1
        return found[:, 1:] if self.second else found


@final
@dataclass(frozen=True)
class Counts(Reading):
    """A row of counts >= 0, `most` together at most: each takes what those before it have left.

    `rest` lets the last one take all that is left, so that each row adds `most`; `second` leaves out the first of two.
    """

    count: int
    most: int
    rest: bool = True
    second: bool = False

    def __post_init__(self) -> None:
        keep(self, count=whole("count", self.count), most=whole("most", self.most, 1, LONGEST))
        keep(self, rest=flag("rest", self.rest), second=flag("second", self.second))
        if self.second and (self.count != 2 or not self.rest):
            raise ArgumentError("Only of two counts, of which the last takes the rest, one is left out.")

    @property
    @override
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.count,)

    @property
    @override
    def shape(self) -> MHot:
        return MHot(1 if self.second else self.count, self.most)

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        found = np.array(plain(arrays[0]), dtype=np.float64).reshape(-1, self.count)
        if self.rest:
            found[:, -1] = np.inf
        held = np.zeros(found.shape, dtype=np.int64)
        MHot(self.count, self.most)._hold(found, held)
        return held[:, 1:] if self.second else held


@final
@dataclass(frozen=True)
class Successes(Reading):
    """Failures and successes of a row, from its successes and its total, which lies in [low, high]."""

    most: int
    low: float
    high: float
    widths = (1, 1)

    def __post_init__(self) -> None:
        keep(self, most=whole("most", self.most, 1, LONGEST), **_bounds(self.low, self.high))

    @property
    @override
    def shape(self) -> MHot:
        return MHot(2, self.most)

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        successes, totals = map(plain, arrays)
        found, held = np.empty((len(successes), 2)), np.zeros((len(successes), 2), dtype=np.int64)
        loops().read_trials(successes, totals, self.low, self.high, found)
        self.shape._hold(found, held)
        return held


@final
@dataclass(frozen=True)
class Powers(Reading):
    """``k = rint((x - centre) / unit)``, x held within [low, high], the middle for NaN; and its square ``k² / GRID``.

    Of `powers` 1 and 2, one or both; squares less `offset`. Where there are squares, |k| <= GRID.
    """

    low: float
    high: float
    centre: float
    unit: float
    powers: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        (unit,) = positive(unit=self.unit)
        keep(self, **_bounds(self.low, self.high), centre=finite("centre", self.centre), unit=unit)
        keep(self, powers=tuple(whole("powers", one) for one in self.powers), offset=whole("offset", self.offset, 0))
        if self.powers not in ((1,), (2,), (1, 2)) or self.offset not in (0, GRID // 2):
            raise ArgumentError("powers must be 1, 2 or both, and the offset of squares 0 or half of the grid.")
        if 2 in self.powers and max(map(abs, self.reach)) > GRID:
            raise ArgumentError("Numbers that are squared must lie within the grid.")

    @property
    def reach(self) -> tuple[int, int]:
        """Smallest and largest k, in the arithmetic of the loops."""
        per_unit = 1.0 / self.unit
        return round((self.low - self.centre) * per_unit), round((self.high - self.centre) * per_unit)

    @property
    def ends(self) -> tuple[int, int]:
        """Least and greatest of what a row adds to the sum of the last power."""
        low, high = self.reach
        if self.powers == (1,):
            return low, high
        nearest = 0 if low <= 0 <= high else min(abs(low), abs(high))
        return square(nearest) - self.offset, square(max(abs(low), abs(high))) - self.offset

    @property
    @override
    def shape(self) -> Shape:
        if self.powers == (1, 2):
            return Curve(GRID, centred=self.offset > 0)
        return Interval(*((end,) for end in self.ends))

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        both = np.zeros((len(arrays[0]), 2), dtype=np.int64)
        loops().add_moments(np.arange(len(both)), plain(arrays[0]), *self._numbers, both)
        both[:, 1] -= self.offset
        return both[:, [power - 1 for power in self.powers]]

    @override
    def begin(self, cells: int, *, sized: bool) -> Sums:
        sizes = np.zeros((STRIPES, cells * (sized or self.offset > 0)), dtype=np.int64)
        return Sums(sizes, np.zeros((cells, 2), dtype=np.int64), sized)

    @override
    def add(self, code: Array, arrays: Sequence[Array], sums: Sums) -> None:
        values = plain(arrays[0])
        if len(sums.whole) == 1 and not code.any():
            loops().total_moments(values, *self._numbers, sums.whole)
            if sums.rows.size:
                sums.rows[0, 0] += len(values)
            return
        loops().add_moments(code, values, *self._numbers, sums.whole)
        if sums.rows.size:
            loops().tally(code, len(code), sums.rows)

    @override
    def end(self, sums: Sums) -> Array:
        sizes = sums.rows.sum(axis=0)
        found = sums.whole - self.offset * np.outer(sizes, (0, 1)) if self.offset else sums.whole
        found = found[:, [power - 1 for power in self.powers]]
        return np.concatenate([sizes[:, None], found], axis=1) if sums.sized else found

    @property
    def _numbers(self) -> tuple[Any, ...]:
        reach = [float(end) for end in self.reach]
        return self.low, self.high, self.centre, 1.0 / self.unit, *reach, 2 in self.powers


@final
@dataclass(frozen=True)
class Numbers(Reading):
    """Functions f of entries of a row: ``k = rint((f(x) - centre) / unit)``, within ±`reach`, 0 where f is no number.

    Each entry x is held within [low, high], the middle for NaN. `together` says what the kernel makes of them: a point
    of a circle; a number and its square; numbers and all their products, whose units are GRID.

    Attributes
    ----------
    functions : tuple of (str, float, int)
        Name in `FUNCTIONS`, argument, and entry of a row.
    centres, units, reaches : tuple of numbers
        Of each function.
    """

    low: float
    high: float
    width: int
    functions: tuple[tuple[str, float, int], ...]
    centres: tuple[float, ...]
    units: tuple[float, ...]
    reaches: tuple[int, ...]
    together: Literal["apart", "circle", "curve", "products"] = "apart"

    def __post_init__(self) -> None:
        width = whole("width", self.width)
        functions = tuple(
            (word("functions", name, FUNCTIONS), finite("functions", argument), whole("functions", entry, 0, width - 1))
            for name, argument, entry in self.functions
        )
        units = tuple(positive(**{f"units[{place}]": unit for place, unit in enumerate(self.units)}))
        reaches = tuple(whole("reaches", reach, 1, GRID) for reach in self.reaches)
        centres = finite_all("centres", self.centres)
        keep(self, **_bounds(self.low, self.high), width=width, functions=functions, centres=centres, units=units)
        keep(self, reaches=reaches, together=word("together", self.together, ("apart", "circle", "curve", "products")))
        count = {"circle": 2, "curve": 1}.get(self.together, len(functions))
        if not functions or not len(functions) == len(centres) == len(units) == len(reaches) == count:
            raise ArgumentError("Each function needs a centre, a unit and a reach; a circle is two, a curve is one.")

    @property
    @override
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.width,)

    @cached_property
    @override
    def shape(self) -> Shape:
        if self.together == "circle":
            return Circle(GRID)
        if self.together == "curve":
            return Curve(GRID)
        if self.together == "products":
            return Products(len(self.functions), GRID)
        return Interval(tuple(-reach for reach in self.reaches), self.reaches)

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        found = np.empty((len(arrays[0]), len(self.functions)))
        values = plain(arrays[0]).reshape(len(found), self.width)
        kinds = np.array([FUNCTIONS[name] for name, _, _ in self.functions])
        arguments = np.array([argument for _, argument, _ in self.functions], dtype=np.float64)
        columns = np.array([entry for _, _, entry in self.functions])
        scales = np.array(self.centres, dtype=np.float64), 1.0 / np.array(self.units, dtype=np.float64)
        loops().read_functions(values, self.low, self.high, kinds, arguments, columns, *scales, found)
        held = np.zeros((len(found), self.shape.facts.size), dtype=np.int64)
        self.shape._hold(found, held)
        return held


@final
@dataclass(frozen=True, eq=False)
class Listed(Reading):
    """What each possible row adds is listed: a row of whole numbers from `low` to `high`, the first counting slowest.

    An entry beyond them counts as the nearest.
    """

    width: int
    low: int
    high: int
    table: OneOf

    def __post_init__(self) -> None:
        keep(self, width=whole("width", self.width, 1, 64), low=whole("low", self.low, -(2**31), 2**31))
        keep(self, high=whole("high", self.high, self.low, 2**31))
        if type(self.table) is not OneOf:  # exactly: another class would state its own move
            raise ArgumentError("table must be a OneOf.")
        if (self.high - self.low + 1) ** self.width != len(self.table.points):
            raise ArgumentError("There must be a point for each row that is possible.")

    @property
    @override
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.width,)

    @property
    @override
    def shape(self) -> OneOf:
        return self.table

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        values, code = plain(arrays[0]).reshape(-1, self.width), np.zeros(len(arrays[0]), dtype=np.int64)
        for entry in range(self.width):
            loops().fold(code, np.ascontiguousarray(values[:, entry]), self.low, self.high, True, entry == 0)
        return self.table.points[code].astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class OneByOne(Reading):
    """A function of one row, (width,) floats, which is handed each row alone, in the same memory.

    It is trusted to be a function of its row, without a memory, and to keep no row. It returns one number for each
    statistic, in its own units, held within its `bounds`: ``k = rint((f - middle) GRID / half width)``, 0 for what is
    no number, and for all of a row for which it raises. With `values` entries are whole numbers from the first to the
    second, and the first for NaN.
    """

    width: int
    function: Any
    bounds: tuple[tuple[float, float], ...]
    values: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        ends = tuple(tuple(_bounds(*pair).values()) for pair in self.bounds)
        keep(self, width=whole("width", self.width), bounds=ends)
        if not ends or any(low == high for low, high in ends):
            raise ArgumentError("bounds must be one pair low < high for each statistic.")
        if self.values is not None:
            low = whole("values", self.values[0], -(2**53), 2**53)
            keep(self, values=(low, whole("values", self.values[1], low, 2**53)))

    @property
    @override
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.width,)

    @cached_property
    @override
    def shape(self) -> Interval:
        return Interval((-GRID,) * len(self.bounds), (GRID,) * len(self.bounds))

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        rows, count = plain(arrays[0]).reshape(-1, self.width), len(self.bounds)
        found, held = np.empty((len(rows), count)), np.zeros((len(rows), count), dtype=np.int64)
        buffer = np.empty(self.width)
        low, high = np.array(self.bounds, dtype=np.float64).T
        half = (high - low) / 2
        with ONE_AT_A_TIME, np.errstate(all="ignore"):
            for place, row in enumerate(rows):
                buffer[:] = row
                if self.values is not None:
                    buffer[:] = np.rint(np.clip(np.nan_to_num(buffer, nan=self.values[0]), *self.values))
                try:
                    own = np.broadcast_to(np.asarray(self.function(buffer), dtype=np.float64), (count,))
                except KeyboardInterrupt:
                    raise
                except BaseException:  # NumPy raises for integers to a negative power
                    own = np.full(count, np.nan)
                found[place] = (np.clip(own, low, high) - (low + half)) * (GRID / half)
            self.shape._hold(found, held)
        return held


def _bounds(low: object, high: object) -> dict[str, float]:
    """Return finite bounds low <= high as floats."""
    found = {"low": finite("low", low), "high": finite("high", high)}
    if not found["low"] <= found["high"]:
        raise ArgumentError(f"low must be at most high, got {found['low']:g} and {found['high']:g}.")
    return found


def square(k: int) -> int:
    """Rounded square, as the loops compute it (round half to even)."""
    return round(float(k) * float(k) / GRID)


READINGS: tuple[type[Reading], ...] = (Places, Counts, Successes, Powers, Numbers, Listed, OneByOne)
"""Exactly these; `gram_sums.Regressed` and `character_sums.Configurations` beside them."""
