"""Private rows: clamped once, when they are loaded; handed out in blocks, to operations that were paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.arguments import finite, flag, whole, word
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.limits import MOST_OF_A_PERSON, MOST_ROWS
from pymc_dp.kernel.persons import GOLDEN, mixed
from pymc_dp.kernel.randomness import secure_keys
from pymc_dp.kernel.relations import PER_PERSON

Array = npt.NDArray[Any]
Block = tuple[list[Array], Array, Array]
"""Columns of some rows, where units start among them and end, and how often each unit counts."""
WEIGHT_BITS = 20
WEIGHT = 2**WEIGHT_BITS
"""A weight is a whole number of 2^-20 of the largest that counts."""
MOST_KINDS = 2**20


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its values are private unless it is `public`, its bounds are public.

    Parameters
    ----------
    values : (n_rows,) or (n_rows, k) array of numbers
        Booleans and whole numbers count as int64, others as float64.
    low, high : float, optional
        Finite bounds; a private column needs them. What lies outside is moved to the nearer end, NaN to the low one.
    public : bool

    Raises
    ------
    ArgumentError
        For bounds or a kind of values that do not serve; no text shows a value.
    """

    values: Array
    low: float | None = None
    high: float | None = None
    public: bool = False

    def __post_init__(self) -> None:
        flag("public", self.public)
        if np.ndim(self.values) not in (1, 2) or np.asarray(self.values).dtype.kind not in "biuf":
            raise ArgumentError("A column must be an array of numbers with one or two axes.")
        if self.public:
            return
        if self.low is None or self.high is None:
            raise ArgumentError("A private column needs finite low <= high, got none.")
        for name in ("low", "high"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        if not self.low <= self.high:
            raise ArgumentError(f"A private column needs finite low <= high, got ({self.low!r}, {self.high!r}).")
        if self.whole and not all(float(end).is_integer() and abs(end) <= 2**53 for end in (self.low, self.high)):
            raise ArgumentError("Bounds of whole numbers must be whole numbers within ±2^53.")

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        return np.asarray(self.values).dtype.kind in "biu"

    @property
    def dtype(self) -> str:
        """Of its numbers as row maps see them."""
        return "int64" if self.whole else "float64"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        return tuple(np.shape(self.values)[1:])

    def clamped(self) -> Column:
        """Return it with values that lie within the bounds, each row's by itself."""
        held = np.asarray(self.values)
        if not self.public:
            if self.whole:
                wide = held.astype(np.int64) if held.dtype.kind != "u" else np.minimum(held, np.uint64(2**62))
                held = np.clip(wide.astype(np.int64), int(self.low or 0), int(self.high or 0))
            else:
                with np.errstate(all="ignore"):
                    wide = held.astype(np.float64)  # first: bounds in fewer digits would be others, or infinite
                low, high = float(self.low or 0), float(self.high or 0)
                held = np.asarray(np.where(np.isnan(wide), low, np.clip(wide, low, high))) + 0.0
        return Column(np.array(held, dtype=self.dtype, order="C"), self.low, self.high, self.public)


class Table:
    """Columns of one table, and what is public about it. Values are clamped when it is made; nothing else is read.

    Parameters
    ----------
    columns : mapping of str to Column
    neighbours : {"replace", "add_remove"}
        Tables are neighbours if they differ in the private values of one row (their number and public columns are
        public), or if one has a row more (nothing of a row is public).
    person : (n_rows,) array, optional
        Whose row each is, by any numbers or texts: private. Neighbours are then tables of which one has a person more,
        with any number of rows: add_remove alone. A number below 0 is nobody's, and its row is left out.
    max_rows : int
        So many rows of a person count at most, chosen at random; see `_kept`.
    weights : (n_rows,) array, optional
        From 0 to 1, private: a row's numbers count so many times, in steps of 2^-20. Limits hold after weighting.
    unit : str
        What the id is called, where a ledger counts persons by it.

    Raises
    ------
    ArgumentError
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        neighbours: str = "replace",
        person: Array | None = None,
        max_rows: int = 1,
        weights: Array | None = None,
        unit: str = "person",
    ) -> None:
        max_rows = whole("max_rows", max_rows, 1, MOST_OF_A_PERSON)
        neighbours = word("neighbours", neighbours, ("replace", "add_remove"))
        if not columns or any(type(column) is not Column for column in columns.values()):
            raise ArgumentError("A table needs a column, and each one must be a Column.")
        beside = [np.asarray(each) for each in (person, weights) if each is not None]
        lengths = {len(each) for each in (*(column.values for column in columns.values()), *beside)}
        kinds = [each.dtype.kind for each in beside]
        if not set(kinds) <= set("biufUS") or (weights is not None and kinds[-1] in "US"):
            raise ArgumentError("Weights must be numbers, and ids of persons numbers or texts, of no object dtype.")
        if len(lengths) != 1 or any(each.ndim != 1 for each in beside):
            raise ArgumentError("All columns must be of one length; persons and weights must be vectors of it.")
        if neighbours == "add_remove" and any(column.public for column in columns.values()):
            raise ArgumentError("Under add_remove no column can be public: it would show how many rows there are.")
        if max(lengths) > MOST_ROWS:
            raise ArgumentError(f"A table has up to {MOST_ROWS} rows.")
        if person is not None and neighbours != "add_remove":
            raise ArgumentError("A table of persons goes with neighbours='add_remove': persons come and go.")
        self.neighbours, self.max_rows = neighbours, max_rows if person is not None else 1
        self.relation = neighbours if person is None else f"{PER_PERSON}{unit}"
        self.columns = {name: column.clamped() for name, column in columns.items()}
        self._weights = None if weights is None else shares_of(weights)
        (self._n,) = lengths
        self._first = np.arange(self._n + 1)
        if person is not None:
            self._keep(np.asarray(person), max_rows)

    def _keep(self, person: Array, most: int) -> None:
        """Put rows of each person side by side, at most `most` of each. **Private**.

        **Guarantee.** A row's rank among those of its person is by a hash of a secret key, of the row, and of how many
        equal rows of the person come before it; equal rows are the same whichever is taken. So for each key what is
        kept of a person, and in which order, is a function of that person's rows alone: not of ids, of the order of
        rows, or of other persons. One person more changes nothing of the others; and the key owes nothing to the rows.
        """
        rows = np.flatnonzero(person >= 0) if person.dtype.kind in "if" else np.arange(len(person))
        _, who = np.unique(person[rows], return_inverse=True)
        key, values = secure_keys(2), [bits[rows] for bits in self._bits()]
        alike = np.full(len(rows), key[0])
        for bits in values:
            alike = mixed((alike + GOLDEN) ^ bits)
        order = np.lexsort((*values, alike, who.ravel()))  # equal rows of a person lie side by side
        new = np.ones(len(rows), dtype=bool)
        for held in (who.ravel(), *values):
            new[1:] &= held[order][1:] == held[order][:-1]
        new[1:] = ~new[1:]
        place = np.arange(len(rows))
        times = np.empty(len(rows), dtype=np.uint64)
        times[order] = (place - np.maximum.accumulate(np.where(new, place, 0))).astype(np.uint64)
        rank = mixed(mixed(alike + GOLDEN * times) ^ key[1])
        order = np.lexsort((*values, times, rank, who.ravel()))
        own = who.ravel()[order]
        starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]][: len(own)])
        within = place - np.repeat(starts, np.diff(np.r_[starts, len(own)]))
        kept, own = rows[order[within < most]], own[within < most]
        self._first = np.r_[np.flatnonzero(np.r_[True, own[1:] != own[:-1]][: len(own)]), len(own)]
        self.columns = {
            name: Column(column.values[kept], column.low, column.high) for name, column in self.columns.items()
        }
        self._weights, self._n = None if self._weights is None else self._weights[kept], len(kept)

    def _bits(self) -> Iterator[Array]:
        """Yield 64 bits of every number of the rows, the weight among them. **Private**."""
        weights = [] if self._weights is None else [self._weights]
        for held in [*(column.values for column in self.columns.values()), *weights]:
            for part in _parts(held).T:
                yield np.ascontiguousarray(part).view(np.uint64)

    @property
    def persons(self) -> bool:
        """Whether units are persons."""
        return self.relation.startswith(PER_PERSON)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self._weights is not None

    @property
    def n_rows(self) -> int:
        """Number of rows; public under replace alone."""
        if self.neighbours != "replace":
            raise PrivacyError("The number of rows is private under add_remove.")
        return self._n

    def _blocks(self, most: int) -> Iterator[Block]:
        """Yield columns of about `most` rows, whole units at a time. **Private**."""
        first, unit = self._first, 0
        while unit < len(first) - 1:
            last = max(unit + 1, int(np.searchsorted(first, first[unit] + most, side="right")) - 1)
            start, stop = int(first[unit]), int(first[last])
            rows = [column.values[start:stop] for column in self.columns.values()]
            yield rows, first[unit : last + 1] - start, np.ones(last - unit, dtype=np.int64)
            unit = last


class ByKind(Table):
    """Rows counted by public kinds, each row by itself moved to the nearest: a pass is one over the kinds.

    Whole numbers between their bounds are kinds; of real numbers there are `nodes`, evenly spaced.
    """

    def __init__(self, table: Table, nodes: int = 257) -> None:
        nodes = whole("nodes", nodes)
        if type(table) is not Table or table.persons or table.weighted:
            raise ArgumentError("Only rows that are units, without weights, are counted by kind.")
        if any(column.public or column.shape for column in table.columns.values()):
            raise ArgumentError("Only private columns of one number are counted by kind.")
        self.neighbours, self.relation, self.max_rows = table.neighbours, table.relation, 1
        self._weights, self._source, self._n = None, table, table._n
        self.axes = []
        for column in table.columns.values():
            low, high = float(column.low or 0), float(column.high or 0)
            if not math.isfinite(high - low):
                raise ArgumentError("Bounds of a column that is counted by kind must have a finite difference.")
            count = int(high - low) + 1 if column.whole else nodes if high > low else 1
            if not 1 <= count <= MOST_KINDS:
                raise ArgumentError(f"There may be {MOST_KINDS} kinds at most, and 1 at least.")
            self.axes.append(low + (high - low) * np.arange(count) / max(count - 1, 1))
        if math.prod(len(axis) for axis in self.axes) > MOST_KINDS:
            raise ArgumentError(f"There are more than {MOST_KINDS} kinds of rows. Take fewer nodes.")
        grid = np.meshgrid(*self.axes, indexing="ij")
        self.columns = {
            name: Column(values.ravel().astype(column.dtype), column.low, column.high)
            for (name, column), values in zip(table.columns.items(), grid, strict=True)
        }
        self._first = np.arange(grid[0].size + 1)

    @cached_property
    def _counts(self) -> Array:
        """How many rows there are of each kind. **Private**."""
        counts = np.zeros(len(self._first) - 1, dtype=np.int64)
        for rows, _, _ in self._source._blocks(2**20):
            code = np.zeros(len(rows[0]), dtype=np.int64)
            for axis, held in zip(self.axes, rows, strict=True):
                code = code * len(axis) + np.clip(np.rint(places(axis, held)), 0, len(axis) - 1).astype(np.int64)
            counts += np.bincount(code, minlength=len(counts))
        return counts

    def _blocks(self, most: int) -> Iterator[Block]:
        counts = self._counts
        for start in range(0, len(counts), most):
            stop = min(start + most, len(counts))
            rows = [column.values[start:stop] for column in self.columns.values()]
            yield rows, self._first[: stop - start + 1], counts[start:stop]


def places(axis: Array, held: Array) -> Array:
    """Return where values lie on an evenly spaced axis, in steps from its low end."""
    step = (axis[-1] - axis[0]) / max(len(axis) - 1, 1)
    return np.asarray((held - axis[0]) / (step or 1.0))


def shares_of(weights: Array) -> Array:
    """Return weights as whole numbers from 0 to `WEIGHT`, whatever they hold. **Private**."""
    with np.errstate(all="ignore"):
        found = np.rint(np.asarray(weights, dtype=np.float64) * WEIGHT)
    return np.where(found >= 0, np.minimum(found, WEIGHT), 0).astype(np.int64)


def _parts(held: Array) -> Array:
    """Return numbers of rows with one axis for those of a row, also of no rows."""
    return held.reshape(len(held), math.prod(held.shape[1:]))
