"""Sums over rows of log-likelihoods that keep a bound, and which bound fits: as proved, and as its numbers need."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, override

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.draws.finite_choice import settled
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.samplers.middle import middle
from pymc_dp.step_methods.row_functions.builder import ALIKE, filled
from pymc_dp.step_methods.row_functions.limits import Limit

CHUNK = 2**20
"""Log-likelihoods held at once."""

Rows = Sequence[Array]
"""Rows, one (n_rows, ...) array per column."""
Each = Callable[[Any, Rows], Array]
"""From points and rows to (n_points, n_rows) log-likelihoods, as floats return them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class References:
    """What is subtracted from every row's log-likelihood: a mean of that of reference rows, a public function.

    Two rows differ by no more for it, and one row alone ranges over less: where the log-likelihood is linear in a
    statistic of the row, over half of what two rows differ by.

    Attributes
    ----------
    rows : tuple of tuple of (array or None)
        A (1, ...) array per column for each of them; None for a public column, which stays as it is in the row. Tables
        with public columns keep the order of their rows, so that what the references add up to is public.
    weights : tuple of float
        Weight of each in the mean, at least 0, 1 together. By default they are equal.
    """

    rows: tuple[tuple[Array | None, ...], ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def alike(self) -> bool:
        """Whether they are the same beside every row."""
        return not any(held is None for reference in self.rows for held in reference)

    def at(self, each: Each, points: Any, rows: Rows) -> Array:
        """Return their mean beside each row: (n_points, n_rows) array, or (n_points, 1) where it is always the same."""
        if not self.rows:
            return np.zeros((len(points), 1))
        if self.alike:
            table = [np.concatenate(column) for column in zip(*self.rows, strict=True)]
            return np.average(each(points, table), axis=1, weights=self.weights or None)[:, None]
        beside = [each(points, _beside(reference, rows)) for reference in self.rows]
        return np.asarray(np.average(beside, axis=0, weights=self.weights or None))


def _beside(reference: Sequence[Array | None], rows: Rows) -> list[Array]:
    count = len(rows[0])
    return [
        column if held is None else np.ascontiguousarray(np.broadcast_to(held, (count, *held.shape[1:])))
        for held, column in zip(reference, rows, strict=True)
    ]


@dataclass(kw_only=True, eq=False)
class _Common:
    """What the references add up to, at each point: a public number of rows times one number, or a sum over rows."""

    rows: Array
    alike: Array | None = None
    count: int = 0
    sizes: Array = field(default_factory=lambda: np.zeros(0))

    def note(self, centre: Array, weights: Array) -> None:
        if centre.shape[1] == 1:
            self.alike, self.count = centre[:, 0], self.count + int(weights.sum())
        else:
            self.rows += centre @ weights

    @property
    def total(self) -> Array:
        return self.rows if self.alike is None else self.rows + self.alike * self.count


class Bound(ABC):
    """A bound of what one row can move a sum of log-likelihoods by, enforced on what is summed.

    For a choice among points that are all at hand, made for each of several elements by its own rows.
    """

    references: References
    limit: Any

    @property
    @abstractmethod
    def charge(self) -> float:
        """Range over points of what one row moves the sum by: what has to be paid for, at inverse temperature 1."""

    def total(self, each: Each, points: Any, rows: Rows, weights: Array) -> Array:
        """Add up the rows at some points, up to a constant: (n_points,) array. **Private**.

        Parameters
        ----------
        each : callable
        points : sequence
        rows : sequence of (n_rows, ...) array
        weights : (n_rows,) array
            How often each row occurs, whole numbers.
        """
        return self.by_element(each, points, rows, weights)[:, 0]

    @abstractmethod
    def by_element(
        self, each: Each, points: Any, rows: Rows, weights: Array, owner: Array | None = None, elements: int = 1
    ) -> Array:
        """Add up the rows of each element by themselves: (n_points, n_elements) array. **Private**.

        Parameters
        ----------
        each, points, rows, weights
            As for `total`.
        owner : (n_rows,) array, optional
            To which element each row belongs; not needed where there is one element, or no row.
        elements : int
        """

    def _centred(self, each: Each, points: Any, rows: Rows) -> tuple[Array, Array]:
        """Return the numbers of rows less those of the references, and the latter."""
        with np.errstate(all="ignore"):
            centre = self.references.at(each, points, rows)
            centre = np.where(np.isfinite(centre), centre, 0.0)
            return each(points, rows) - centre, centre


def parts(rows: Rows, weights: Array, points: int) -> Iterator[tuple[list[Array], Array, slice]]:
    """Yield as many rows at a time as memory allows, with their weights as whole numbers, and which they are.

    They come in whole groups, the last filled up with rows of weight 0: what a row gives does not depend on its place.
    """
    entries = sum(int(np.prod(column.shape[1:])) for column in rows)
    size = max(ALIKE, CHUNK // max(1, points * entries) // ALIKE * ALIKE)
    for start in range(0, len(weights), size):
        part = slice(start, start + size)
        held = np.asarray(weights[part], dtype=np.int64)
        missing = filled(len(held)) - len(held)
        some = [_padded(column[part], missing) for column in rows]
        yield some, _padded(held, missing) * (np.arange(len(held) + missing) < len(held)), part


def _padded(column: Array, missing: int) -> Array:
    return np.concatenate([column, np.repeat(column[-1:], missing, axis=0)]) if missing else column


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeBound(Bound):
    """For a choice among points that are all at hand: the numbers of a row range over them by no more than is charged.

    Attributes
    ----------
    limit : Limit
    references : References
    middle : float
        What is subtracted from all numbers as well: the middle of what they can be, where their size is charged.
    level : float
        What is left out of a sum once per row, where sizes are charged: a public number that would take up its digits.
    """

    limit: Limit
    references: References = field(default_factory=References)
    middle: float = 0.0
    level: float = 0.0

    @property
    @override
    def charge(self) -> float:
        return self.limit.charge

    @override
    def by_element(
        self, each: Each, points: Any, rows: Rows, weights: Array, owner: Array | None = None, elements: int = 1
    ) -> Array:
        """Add up the rows of each element by themselves; where they count for several, there are no references."""
        total = np.zeros((len(points), elements), dtype=np.int64)
        common = _Common(rows=np.zeros(len(points)))
        owner = None if owner is None else np.clip(owner, 0, elements - 1).astype(np.int64)
        for some, held, part in parts(rows, weights, len(points)):
            found, centre = self._centred(each, points, some)
            own = None if owner is None else _padded(owner[part], len(held) - len(owner[part]))
            self.limit.add(total, found - self.middle, held, own)
            common.note(centre + self.middle - self.level, held)
        shared = common.total if self.limit.size is not None else settled(common.total)
        return self.limit.values(total) + shared[:, None]


NOTHING = 1e-9
"""Range, in nats, that is put down to rounding where rows are proved to say nothing."""
ROUNDING = 1e-6
"""Relative excess of what rows need over what is proved that is put down to rounding, and cut off."""


def tried_range(tried: Sequence[Array]) -> float:
    """Return the largest range over points of one column: of (n_points, n_rows) arrays without what is not finite."""
    with np.errstate(all="ignore"):
        ranges = np.concatenate([np.ptp(found, axis=0) for found in tried])
    return float(np.max(ranges[np.isfinite(ranges)], initial=0.0))


def fitting_range(
    tried: Sequence[Array],
    candidates: Iterable[tuple[References, Sequence[Array]]],
    *,
    range_: float,
    neighbours: Neighbours,
    n_rows: int,
    size: float | None = None,
) -> RangeBound:
    """Choose references, and a bound of how far the number of one row may range over points.

    Parameters
    ----------
    tried : sequence of (n_points, n_rows) arrays
        Log-likelihoods of public rows, for several values of other parameters.
    candidates : iterable of (References, sequence of arrays)
        What could be subtracted, and what it is for each of `tried`: (n_points, n_rows or 1) arrays.
    range_ : float
        Proved bound of the range of a difference of two rows (``replace``), of one row (``add_remove``).
    neighbours : {"replace", "add_remove"}
    n_rows : int
        Most rows that a table may have.
    size : float, optional
        Proved bound of a difference of two rows (``replace``), of one row (``add_remove``), at any one point: where
        sizes are charged as well as ranges.
    """
    if neighbours == "add_remove":  # how many rows there are is private, and so is what references would add up to
        return RangeBound(limit=Limit.of(range_, neighbours, n_rows, size=size))
    with np.errstate(all="ignore"):
        options = [(tried, References(), 0.0)]
        options += [
            ([one - centre for one, centre in zip(tried, centres, strict=True)], references, float(centres[0][0, 0]))
            for references, centres in candidates
        ]
        found = [tried_range(centred) for centred, *_ in options]
    enough = max(range_ / 2, min(found)) * (1 + ROUNDING)  # the simplest of those that are charged least
    turn = next(turn for turn, needed in enumerate(found) if needed <= enough)
    needed, (centred, references, level) = found[turn], options[turn]
    if references.rows:  # whatever floats say: a mean of differences of two rows ranges over no more than one of them
        needed = min(needed, range_)
    if needed <= range_ / 2 * (1 + ROUNDING) + NOTHING:
        needed = 0.0
    if size is None:
        return RangeBound(limit=Limit.of(range_, neighbours, n_rows, needed=needed), references=references)
    low, high = _ends(centred)
    middle, half = low / 2 + high / 2, (high / 2 - low / 2) * (1 + ROUNDING)
    return RangeBound(
        limit=Limit.of(range_, neighbours, n_rows, needed=needed, size=max(size / 2, half)),
        references=references,
        middle=middle,
        level=middle + (level if math.isfinite(level) else 0.0),
    )


def _ends(tried: Sequence[Array]) -> tuple[float, float]:
    held = np.concatenate([found[np.isfinite(found)] for found in tried])
    return (float(held.min()), float(held.max())) if held.size else (0.0, 0.0)


def _extreme(columns: Sequence[Column], rows: Sequence[Array]) -> References:
    """Return the lowest and the highest row, which come first, as references."""
    return References(rows=(_reference(columns, rows, 0), _reference(columns, rows, 1)))


def _reference(columns: Sequence[Column], rows: Sequence[Array], place: int) -> tuple[Array | None, ...]:
    """Return a row as a reference: its private columns, beside the public ones of every row."""
    return tuple(None if column.public else held[place : place + 1] for column, held in zip(columns, rows, strict=True))


def proposed(columns: Sequence[Column], rows: Sequence[Array], tried: Sequence[Array]) -> list[References]:
    """Propose references: the lowest and the highest row, and the mean that lies in the middle of all rows.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of (n_rows, ...) array
        Public rows, one array per column.
    tried : sequence of (n_points, n_rows) arrays
        Their log-likelihoods. With public columns, where references stand beside every row, the middle is not looked
        for: evaluating many of them would take many times as long.
    """
    found = [_extreme(columns, rows)]
    if not any(column.public for column in columns):
        mean = middle(tried)
        held = tuple(_reference(columns, rows, place) for place in mean)
        found.append(References(rows=held, weights=tuple(mean.values())))
    return found


__all__ = [
    "Bound",
    "Each",
    "RangeBound",
    "References",
    "Rows",
    "fitting_range",
    "parts",
    "proposed",
    "tried_range",
]
