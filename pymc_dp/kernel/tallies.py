"""Noised sums by cells of tables as they are stored: one charge for all, one pass over the rows, then the noise.

`SumRelease` computes what its sums cost from what a row can add. `charge` pays; what it returns reads the rows once.
Rows come from a source, which moves them and computes nothing. Or it adds them up where they are, as engines do; it is
trusted with these sums.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple, Protocol, final

import numpy as np

from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Account, Once
from pymc_dp.kernel.accounting.events import ComposedEvent, Event
from pymc_dp.kernel.arguments import flag, keep, positive, whole, word
from pymc_dp.kernel.character_sums import Configurations
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.gram_sums import Regressed
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.payer import read_rows
from pymc_dp.kernel.persons import kept_rows
from pymc_dp.kernel.process import processors
from pymc_dp.kernel.readings import READINGS, Places, Reading, loops, plain
from pymc_dp.kernel.relations import PER_PERSON, PER_UNIT
from pymc_dp.kernel.shapes import Array, Move, OneHot
from pymc_dp.kernel.table import WEIGHT_BITS, shares_of

CHUNK = 65_536
"""Rows whose cells stay in the cache: no temporary is as long as the table."""
ROWS_PER_SPAN = 1_000_000
"""Rows that a thread takes at a time: several spans per thread, so that none waits for a busy core."""
LENGTHS = (
    "The columns of the table have different lengths, or more than 2**32 rows; they were changed after the model was "
    "inspected. Give every column the same length, by one pm.set_data for all."
)
ENTRIES = (
    "The rows have another number of entries than when the model was inspected. Give them their old shape by "
    "pm.set_data."
)


OTHER_SUMS = "An engine gave other sums than were asked for; this is an error of pymc_dp."
NOISES = ("laplace", "gaussian")
KINDS = "The columns of the table are no numbers; they were changed after the model was inspected."


@dataclass(frozen=True, eq=False)
class Key:
    """A column by whose values rows fall into cells.

    Parameters
    ----------
    levels : (n_levels,) array
        Every value that counts, in order.
    nearest : bool
        Where other values go, if levels are consecutive whole numbers: to the nearest level, NaN to the middle one; or
        all of them to the first. Of other levels they go to the next one above, or to the last, and so does NaN.
    public : bool
        Whether its values are public: under "replace" no row then changes its level.
    """

    levels: Array
    nearest: bool = False
    public: bool = False

    def __post_init__(self) -> None:
        levels = np.array(self.levels)
        if (
            levels.ndim != 1
            or not levels.size
            or levels.dtype.kind not in "biuf"
            or not (levels[1:] > levels[:-1]).all()
        ):
            raise ArgumentError("levels must be numbers that increase.")
        levels.flags.writeable = False
        keep(self, levels=levels, nearest=flag("nearest", self.nearest), public=flag("public", self.public))

    def fold(self, code: Array, values: Array, *, first: bool) -> None:
        """Make the code of each row that of its levels so far, and this one. **Private**."""
        levels = self.levels
        low, high = levels[0], levels[-1]
        if np.issubdtype(levels.dtype, np.integer) and int(high) - int(low) + 1 == len(levels):
            loops().fold(code, plain(values), int(low), int(high), self.nearest, first)
        else:
            places = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
            loops().fold(code, places, 0, len(levels) - 1, False, first)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells that rows fall into: combinations of levels.

    Parameters
    ----------
    keys : tuple of Key
    lookup : (n_codes,) int64 array
        The cell of each combination, the last key's levels running fastest; -1 where there is none, and a row adds
        nothing.
    """

    keys: tuple[Key, ...] = ()
    lookup: Array | None = None

    def __post_init__(self) -> None:
        keep(self, keys=tuple(self.keys))
        if any(type(key) is not Key for key in self.keys):
            raise ArgumentError("Each key must be a Key, and of no class derived from it.")
        codes = math.prod(len(key.levels) for key in self.keys)
        if self.lookup is not None:
            lookup = np.array(self.lookup)
            if lookup.shape != (codes,) or lookup.dtype.kind not in "iu" or lookup.min(initial=0) < -1:
                raise ArgumentError("lookup must have a cell, or -1, for each combination of levels.")
            lookup = lookup.astype(np.int64)
            lookup.flags.writeable = False
            keep(self, lookup=lookup)

    @cached_property
    def count(self) -> int:
        """Number of cells."""
        return self._codes if self.lookup is None else int(self.lookup.max(initial=-1)) + 1

    @cached_property
    def _codes(self) -> int:
        return math.prod(len(key.levels) for key in self.keys)

    @cached_property
    def _regrouped(self) -> Array | None:
        same = self.lookup is None or np.array_equal(self.lookup, np.arange(self._codes))
        return None if same else self.lookup

    def code(self, levels: Sequence[Array], start: int, stop: int, places: int = 1) -> Array:
        """Return the cell of each of some rows, with room for so many places of each. **Private**."""
        room = self._codes * places
        code = np.zeros(stop - start, dtype=np.int32 if room < 2**31 else np.int64)
        for place, (key, held) in enumerate(zip(self.keys, levels, strict=True)):
            key.fold(code, held[start:stop], first=place == 0)
        if self._regrouped is not None:
            loops().apply_lookup(code, self._regrouped, len(code))
        return code


class Rows(NamedTuple):
    """Some rows, for one tally. **Private**.

    Attributes
    ----------
    values : list of (n_rows, ...) arrays
        What is read.
    levels : list of (n_rows,) arrays
        By which rows fall into cells.
    weights : (n_rows,) array or None
        Over the largest that counts.
    """

    values: list[Array]
    levels: list[Array]
    weights: Array | None = None


class Part(NamedTuple):
    """Rows for all tallies at once, and whose they are; all rows of a person are in one part. **Private**."""

    rows: list[Rows]
    owners: Array | None = None


class Source(Protocol):
    """Where rows are. It moves them, each as it is, and is asked once."""

    def totals(self) -> list[Array] | None:
        """Return exact sums of all tallies, where an engine adds them up; it is trusted with what they are."""

    def parts(self) -> Iterator[Callable[[], Part]]:
        """Yield all rows, each once: as functions, for a thread that wants to."""


class PerUnit(NamedTuple):
    """What a metric ρ between rows says, for sums that are paid per unit of it; see `SumRelease`.

    Attributes
    ----------
    steps : Fraction
        Whole numbers by which sums move at most per unit of ρ, where a value moves in its cell.
    least, cell : Fraction or None
        Least ρ of rows that differ in what is only equal or not, and of rows in different cells; None where there are
        none.
    """

    steps: Fraction
    least: Fraction | None
    cell: Fraction | None

    def of_sums(self, move: Move) -> Move:
        """Return by how much sums move per unit, given by how much between any two rows."""
        apart = Fraction(0) if self.least is None else move.l1 / self.least
        return _whole(max(apart, self.steps))

    def of_sizes(self, move: Move) -> Move:
        """Return by how much numbers of rows of cells move per unit."""
        return _whole(Fraction(0) if self.cell is None else move.l1 / self.cell)


def _whole(steps: Fraction) -> Move:
    whole = max(1, math.ceil(steps))
    return Move(l1=whole, l2_squared=whole**2)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """Sums of one reading, by cells.

    Parameters
    ----------
    reading : Reading
    cells : Cells
    sized : bool
        Whether the number of rows of each cell is released too, or with weights what these add up to: it comes first.
    weighted : bool
        Whether rows have weights: shares of the largest one, in steps of 2^-20. Sums are then in finer units
        (`finer`), and sizes in these steps.
    per_unit : PerUnit, optional
    """

    reading: Reading
    cells: Cells = Cells()
    sized: bool = False
    weighted: bool = False
    per_unit: PerUnit | None = None

    def __post_init__(self) -> None:
        keep(self, sized=flag("sized", self.sized), weighted=flag("weighted", self.weighted))
        if type(self.cells) is not Cells or (self.per_unit is not None and type(self.per_unit) is not PerUnit):
            raise ArgumentError("cells must be Cells and per_unit a PerUnit, and of no class derived from these.")
        if self.per_unit is not None:
            keep(self, per_unit=PerUnit(*(None if one is None else Fraction(one) for one in self.per_unit)))  # type: ignore[arg-type]
        known = (*READINGS, Regressed, Configurations)
        if type(self.reading) not in known:  # exactly: another class could add anything
            raise ArgumentError("reading must be one of those that the kernel knows.")
        parted = bool(self.cells.keys) or self.cells.count != 1 or self.sized or self.weighted
        if type(self.reading) is Configurations and (parted or self.per_unit is not None):
            raise ArgumentError("Coefficients of a network are of all rows together, and have no cells and no weights.")
        if self.weighted and type(self.reading) is Regressed:
            raise ArgumentError("Rows of a regression are added up, and have no weights.")
        if type(self.reading) is Regressed and self.reading.products.known and not self.fixed:
            raise ArgumentError("Predictors that are public go with cells that are.")
        private = type(self.reading) is Regressed and self.cells.count > 1 and not self.fixed
        if private and not self.reading.shape.sizes:  # type: ignore[attr-defined]
            raise ArgumentError("Sizes of cells that are private are released with the products of a regression.")

    @property
    def fixed(self) -> bool:
        """Whether all cells are public."""
        return all(key.public for key in self.cells.keys)

    @property
    def finer(self) -> int:
        """By how many bits weighted sums are finer."""
        return self.reading.shape.finer(self.weighted)

    def moves(self, neighbours: str, rows: int = 1) -> tuple[Move, ...]:
        """Return by how much neighbours move what is released: numbers of rows first where they are, then sums.

        Parameters
        ----------
        neighbours : {"replace", "add_remove"}
        rows : int
            Of a person.
        """
        shape, leaves = self.reading.shape, not self.fixed or self.sized
        if type(self.reading) is Regressed:
            leaves = False  # its shape knows its cells
        found = [shape.move(neighbours, moves=leaves, weighted=self.weighted, rows=rows)]
        if self.sized:
            found.insert(0, OneHot(1).move(neighbours, moves=True, weighted=self.weighted, rows=rows))
        if self.per_unit is not None:
            own = (self.per_unit.of_sizes, self.per_unit.of_sums)[-len(found) :]
            return tuple(of(move) for of, move in zip(own, found, strict=True))
        return tuple(found)

    def exact(self, rows: Rows) -> Array:
        """Return exact sums of some rows: (n_cells, sized + size) whole numbers, as `Reading.released` takes them.

        **Private**.

        Raises
        ------
        PrivacyError
            If arrays are of other lengths or widths than each other and the reading's; no text shows a value.
        """
        rows, n_rows = self._laid_out(rows)
        self.require_room(n_rows)
        count = max(1, n_rows // ROWS_PER_SPAN)
        edges = [n_rows * place // count for place in range(count + 1)]
        spans = list(pairwise(edges))
        work = self._weighted if self.weighted else self._added
        threads = min(processors(), count)
        if threads == 1:
            return work(rows, 0, n_rows)
        with ThreadPoolExecutor(threads) as pool:
            return np.asarray(sum(pool.map(lambda span: work(rows, *span), spans)))

    def each(self, rows: Rows) -> tuple[Array, Array]:
        """Return the cell of each row, -1 for none, and its (n_rows, size) whole numbers, without weights. **Private**.

        Of `Places` the cell and the place together, a cell's places one after the other, and no numbers. Raises as
        `exact` does.
        """
        rows, n_rows = self._laid_out(rows)
        reading, codes, numbers = self.reading, [np.zeros(0, dtype=np.int64)], []
        with np.errstate(all="ignore"):
            for start in range(0, n_rows, CHUNK):
                stop = min(start + CHUNK, n_rows)
                code, values = (
                    self.cells.code(rows.levels, start, stop, reading.codes),
                    [v[start:stop] for v in rows.values],
                )
                if type(reading) is Places:
                    reading.fold(code, values[0])
                else:
                    numbers.append(reading.whole(values))
                codes.append(np.maximum(code, -1).astype(np.int64))
        size = 0 if type(reading) is Places else reading.size
        return np.concatenate(codes), np.concatenate([np.zeros((0, size), dtype=np.int64), *numbers])

    def _laid_out(self, rows: Rows) -> tuple[Rows, int]:
        """Return rows as loops take them, and how many there are; refuse other lengths, widths and kinds."""
        if len(rows.values) != len(self.reading.widths) or len(rows.levels) != len(self.cells.keys):
            raise PrivacyError(LENGTHS)
        n_rows = len(rows.values[0])
        weights = [] if rows.weights is None else [rows.weights]
        every = [*rows.values, *rows.levels, *weights]
        if any(len(held) != n_rows for held in every) or len(weights) != self.weighted:
            raise PrivacyError(LENGTHS)
        if tuple(int(math.prod(held.shape[1:])) for held in rows.values) != self.reading.widths:
            raise PrivacyError(ENTRIES)
        if any(held.dtype.kind not in "biuf" or held.dtype.itemsize > 8 for held in every):
            raise PrivacyError(KINDS)
        laid = Rows(
            [_laid(held, width) for held, width in zip(rows.values, self.reading.widths, strict=True)],
            [_laid(held, 1) for held in rows.levels],
            rows.weights,
        )
        return laid, n_rows

    def require_room(self, n_rows: int) -> None:
        """Refuse so many rows that their sums may not fit into 64 bits."""
        if n_rows > MOST_ROWS or n_rows * self.reading.shape.entry > 2**62:
            raise PrivacyError(LENGTHS)

    def _added(self, rows: Rows, begin: int, end: int) -> Array:
        reading = self.reading
        sums = reading.begin(self.cells.count, sized=self.sized)
        with np.errstate(all="ignore"):  # a signalling NaN would warn
            for start in range(begin, end, CHUNK):
                stop = min(start + CHUNK, end)
                code = self.cells.code(rows.levels, start, stop, reading.codes)
                reading.add(code, [values[start:stop] for values in rows.values], sums)
            return reading.end(sums)

    def _weighted(self, rows: Rows, begin: int, end: int) -> Array:
        size, coarser = self.reading.shape.facts.size, WEIGHT_BITS - self.finer
        total = np.zeros((self.cells.count, self.sized + size), dtype=np.int64)
        assert rows.weights is not None
        most = max(1, min(CHUNK, 2**22 // size))
        with np.errstate(all="ignore"):
            for start in range(begin, end, most):
                here = slice(start, min(start + most, end))
                shares = shares_of(rows.weights[here])
                whole = self.reading.whole([values[here] for values in rows.values])
                code = self.cells.code(rows.levels, here.start, here.stop).astype(np.int64)
                if self.sized:
                    loops().add_shares(code, np.ones((len(code), 1), np.int64), shares, 0, total[:, :1])
                loops().add_shares(code, whole, shares, coarser, total[:, self.sized :])
        return total


def _laid(held: Array, width: int) -> Array:
    """Return an array in the byte order of the machine, of one axis or of two."""
    native = held if held.dtype.isnative else held.astype(held.dtype.newbyteorder("="))
    return native.reshape(len(held), width) if width > 1 else native.reshape(len(held))


class Noised(NamedTuple):
    """A tally, and the scale of the noise of each of its moves, in whole units."""

    tally: Tally
    scales: tuple[float, ...]


@final
class SumRelease:
    """Noised sums of some tallies of the same rows.

    Parameters
    ----------
    asked : sequence of Noised
    noise : {"laplace", "gaussian"}
    neighbours : {"replace", "add_remove"}
    relation : str, optional
        Under which the account counts: the neighbours; of persons, a text that begins with `relations.PER_PERSON`; per
        unit of a metric with `relations.PER_UNIT`.
    persons : bool
        Whether parts say whose rows these are; under add_remove alone.
    rows : int
        So many rows of each person count at most, chosen at random (`persons.kept_rows`); other than 1 with persons
        alone.

    Notes
    -----
    **Guarantee.** The event of each sum is that of its shape's move (`Shape.move`) at its scale. All sums are of the
    same rows, and their events compose. Whole numbers, exact sums and discrete noise: class exact, arithmetic hardened.
    Per unit of a metric ρ it is a pure loss, of `PerUnit`: for rows whose whole numbers move by no more than `steps`
    per unit of ρ in a cell, and which are at least `least` apart where they differ otherwise, and `cell` in different
    cells. That ρ does so is the caller's claim, of values clamped and rounded.
    """

    def __init__(
        self,
        asked: Sequence[Noised],
        *,
        noise: str,
        neighbours: str,
        relation: str | None = None,
        persons: bool = False,
        rows: int = 1,
    ) -> None:
        held = [(tally, tuple(positive(scale=one)[0] for one in scales)) for tally, scales in asked]
        if not held or any(type(tally) is not Tally for tally, _ in held):
            raise ArgumentError("A release needs a tally, and each must be a Tally.")
        noise, neighbours = word("noise", noise, NOISES), word("neighbours", neighbours, ("replace", "add_remove"))
        persons, rows = flag("persons", persons), whole("rows", rows, 1, MOST_ROWS)
        units = [tally.per_unit is not None for tally, _ in held]
        relation = neighbours if relation is None else relation
        if type(relation) is not str:
            raise ArgumentError("relation must be a text.")
        if any(units) and neighbours != "replace":
            raise ArgumentError("Per unit of a metric rows are replaced: neighbours must be 'replace'.")
        if persons and (neighbours != "add_remove" or any(units)):
            raise ArgumentError("A table of persons goes with neighbours='add_remove': persons come and go.")
        if rows != 1 and not persons:
            raise ArgumentError(f"Without persons each row counts by itself, got rows={rows}.")
        if any(units) and (not all(units) or noise != "laplace"):
            raise ArgumentError("Per unit of a metric are all tallies or none, and with Laplace noise alone.")
        begins = PER_PERSON if persons else PER_UNIT if all(units) else None
        if not (relation == neighbours if begins is None else relation.startswith(begins)):
            raise PrivacyError(f"Sums of these rows cannot be counted under {relation!r}.")
        if neighbours == "add_remove" and any(tally.reading.shape.entry * MOST_ROWS > 2**62 for tally, _ in held):
            raise ArgumentError(f"Sums of {MOST_ROWS} rows would not fit into 64 bits. Take coarser units.")
        self._asked = tuple(Noised(*one) for one in held)
        self._noise, self._neighbours, self._relation = noise, neighbours, relation
        self._most = rows if persons else None
        events: list[Event] = []
        for tally, scales in self._asked:
            moves = tally.moves(neighbours, rows)
            if len(moves) != len(scales):
                raise ArgumentError(f"A tally with {len(moves)} parts has as many scales, got {len(scales)}.")
            events += [move.event(noise, scale) for move, scale in zip(moves, scales, strict=True)]
        self._event = ComposedEvent(events=tuple(events))

    @property
    def event(self) -> Event:
        """What all sums cost together."""
        return self._event

    @property
    def relation(self) -> str:
        """Under which the account counts."""
        return self._relation

    @property
    def noise(self) -> str:
        """Kind of the noise."""
        return self._noise

    def charge(self, account: Account, label: str) -> PaidSums:
        """Pay for all sums, or raise BudgetExceeded and pay nothing."""
        if account.relation != self._relation:
            raise PrivacyError(f"The account counts under {account.relation!r}, these sums under {self._relation!r}.")
        for tally, scales in self._asked:
            _none(tally)  # what does not fit fails now
            for scale in scales:
                draw.check_noise(self._noise, scale)
        account.charge(self._event, label)
        return PaidSums(_CHARGED, self._asked, self._noise, self._neighbours, self._most)


_CHARGED = object()
"""Who has it made a charge."""


@final
class PaidSums(Once):
    """Sums that were paid for, as `SumRelease.charge` returns them: they are drawn once."""

    def __init__(
        self, charged: object, asked: tuple[Noised, ...], noise: str, neighbours: str, most: int | None
    ) -> None:
        super().__init__()
        if charged is not _CHARGED:
            raise PrivacyError("Sums are paid for by SumRelease.charge alone.")
        self._left = [asked]
        self._noise, self._neighbours, self._most = noise, neighbours, most

    def draw(self, source: Source, passed: Callable[[int], None] = lambda rows: None) -> list[Array]:
        """Read the rows once, add them up exactly, and add the noise: whole numbers for each tally.

        Parameters
        ----------
        source : Source
        passed : callable
            Called with the number of rows that were read; not where their number is private.

        Returns
        -------
        list of (n_cells, sized + size) int64 arrays
        """
        self._require_here()
        with self._lock:
            if not self._left:
                raise PrivacyError("These sums were drawn already. Nothing was read.")
            asked = self._left.pop()
        return read_rows(lambda: self._drawn(asked, source, passed), PrivacyError)

    def _drawn(self, asked: tuple[Noised, ...], source: Source, passed: Callable[[int], None]) -> list[Array]:
        tallies, shown = [tally for tally, _ in asked], passed if self._neighbours == "replace" else lambda rows: None
        sums = source.totals() if self._most is None else None
        found = added_up(tallies, source, self._most, shown) if sums is None else _fitting(tallies, sums)
        return [_noised(one, total, self._noise) for one, total in zip(asked, found, strict=True)]


def added_up(
    tallies: Sequence[Tally], source: Source, most: int | None = None, passed: Callable[[int], None] = lambda rows: None
) -> list[Array]:
    """Return exact sums of the rows of a source, of persons at most so many rows of each. **Private**.

    One thread reads while others add; few parts are in memory at a time. Sums of whole numbers do not depend on which.
    """
    totals, n_rows, threads = [_none(tally) for tally in tallies], 0, processors()

    def work(part: Callable[[], Part]) -> tuple[list[Array], int]:
        rows, owners = part()
        if (owners is None) != (most is None):
            raise PrivacyError("Nothing says whose rows these are, or it says so of rows alone.")
        count = len(rows[0].values[0])
        if owners is not None and most is not None:
            kept = kept_rows(owners, most)
            rows = [_kept(one, kept) for one in rows]
        if any(len(one.values[0]) != len(rows[0].values[0]) for one in rows):
            raise PrivacyError(LENGTHS)
        return [tally.exact(one) for tally, one in zip(tallies, rows, strict=True)], count

    def collect(done: tuple[list[Array], int]) -> None:
        nonlocal n_rows
        own, count = done
        n_rows += count
        for tally, total, part in zip(tallies, totals, own, strict=True):
            tally.require_room(n_rows)
            total += part
        passed(count)

    parts = source.parts()
    ahead = list(islice(parts, 1 if most is not None else 2))
    if len(ahead) < 2:  # also of persons: keys of their rows are drawn in one order
        for part in chain(ahead, parts):
            collect(work(part))
        return totals
    waiting: deque[Future[tuple[list[Array], int]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part in chain(ahead, parts):
            if len(waiting) > threads:
                collect(waiting.popleft().result())
            waiting.append(pool.submit(work, part))
        while waiting:
            collect(waiting.popleft().result())
    return totals


def _none(tally: Tally) -> Array:
    empty = [np.zeros((0, width)) for width in tally.reading.widths]
    return tally.exact(Rows(empty, [np.zeros(0)] * len(tally.cells.keys), np.zeros(0) if tally.weighted else None))


def _kept(rows: Rows, kept: Array) -> Rows:
    if any(len(held) != len(kept) for held in (*rows.values, *rows.levels)):
        raise PrivacyError(LENGTHS)
    weights = None if rows.weights is None else rows.weights[kept]
    return Rows([held[kept] for held in rows.values], [held[kept] for held in rows.levels], weights)


def _fitting(tallies: Sequence[Tally], sums: Sequence[Array]) -> list[Array]:
    """Return sums of an engine, of the sizes that were paid for."""
    if len(sums) != len(tallies):
        raise PrivacyError(OTHER_SUMS)
    for tally, found in zip(tallies, sums, strict=True):
        count = 1 if type(tally.reading) is Regressed else tally.cells.count
        if found.dtype != np.int64 or found.shape != (count, tally.sized + tally.reading.size):
            raise PrivacyError(OTHER_SUMS)
    return list(sums)


def _noised(one: Noised, total: Array, noise: str) -> Array:
    total = one.tally.reading.released(total)
    found, first = np.empty_like(total), int(one.tally.sized)
    columns = [slice(0, 1), slice(first, None)] if first else [slice(None)]
    for here, scale in zip(columns, one.scales, strict=True):
        found[:, here] = draw.noised(np.ascontiguousarray(total[:, here]), noise, scale)
    return found
