"""Where a row and parameters meet, at two places of the parameters: what it may be, and by how much it may change.

Boxes that together hold everything one row may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule, rules
from pymc_dp.intervals.derivative import halves
from pymc_dp.intervals.expression import Symbol
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.meeting_points import ROUNDING, Meeting, hull


class Disc(NamedTuple):
    """Values x·p and changes x·d of a linear predictor for one row x of norm at most r: a disc in the plane of p and d.

    Attributes
    ----------
    length : (low, high)
        Norm of p, the mean of the parameters at both places; above 0.
    along, across : (low, high), float
        Component of d along p, and the largest one across it.
    radius : float
        r.
    """

    length: tuple[float, float]
    along: tuple[float, float]
    across: float
    radius: float

    @classmethod
    def of(cls, p: Interval, d: Interval, radius: float) -> Self | None:
        """Return it for two rows of a table, of intervals; None where p may be 0."""
        inner = rules.total(p * d, (-1,))
        least = np.where((p.low <= 0) & (p.high >= 0), 0.0, np.minimum(abs(p.low), abs(p.high)))
        length = float(np.sqrt((least**2).sum()) / ROUNDING), float(_norm(p)[0])
        if not (length[0] > 0 and math.isfinite(length[1]) and np.isfinite(inner.low) & np.isfinite(inner.high)):
            return None
        along = Interval.of(inner.low, inner.high) / Interval.of(length[0], length[1])
        nearest = 0.0 if along.low[0] <= 0 <= along.high[0] else min(abs(along.low[0]), abs(along.high[0]))
        across = math.sqrt(max(float(_norm(d)[0]) ** 2 * ROUNDING - nearest**2, 0.0)) * ROUNDING
        return cls(length=length, along=(float(along.low[0]), float(along.high[0])), across=across, radius=radius)

    def change(self, low: Array, high: Array) -> Interval:
        """Changes of the predictors whose values, with the mean parameters, lie between `low` and `high`.

        With x = a u + w, u the unit vector of p and w across it: x·p = a ‖p‖, ‖w‖² <= r² - a², x·d = a u·d + w·d.
        """
        part = Interval.of(low, high) / Interval.of(*self.length)
        nearest = np.where((part.low <= 0) & (part.high >= 0), 0.0, np.minimum(abs(part.low), abs(part.high)))
        rest = np.sqrt(np.maximum(self.radius**2 * ROUNDING - nearest**2, 0.0)) * self.across * ROUNDING
        return part * Interval.of(*self.along) + Interval.of(-rest, rest)


class Enclosed(NamedTuple):
    """An expression at two places.

    Attributes
    ----------
    value : Interval
        Holds it at both.
    change : Interval
        Holds its value at the second place less that at the first.
    disc : Disc or None
        For a linear predictor: how its change depends on its value.
    elements : Enclosed or None
        For an element chosen by an index: all that there are, along the leading axis.
    """

    value: Interval
    change: Interval
    disc: Disc | None = None
    elements: Enclosed | None = None


def fixed(low: Array, high: Array) -> Enclosed:
    """Return what does not change between the places: values of a row."""
    value = Interval.of(low, high)
    return Enclosed(value, chain_rule.still(value))


class Met:
    """Where a row and parameters meet: its range at two places, as both sides allow it there.

    Parameters
    ----------
    meeting : Meeting
        Its parameters' sides depend on parameters alone.
    """

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self._row: Interval | None = None
        self._chosen = not meeting.linear and len(meeting.sides) == 1
        if meeting.linear and len(meeting.sides) == len(meeting.of_row) == 1:
            low, high = (np.squeeze(end) for end in hull(meeting.of_row[0]))
            self._row = Interval.of(low, high) if low.ndim == 1 else None

    def __call__(self, sides: Sequence[Enclosed]) -> Enclosed:
        """Enclose it, given the parameters' sides: intervals with a leading axis of length 1."""
        if not self._chosen:
            values, changes = [side.value for side in sides], [side.change for side in sides]
            return Enclosed(self._linear(values), self._linear(changes), self._disc(sides))
        base = sides[0]
        elements = Enclosed(self._elements(base.value), self._elements(base.change)) if self.choices else None
        return Enclosed(self._any(base.value), self._any(base.change), None, elements)

    @property
    def choices(self) -> int:
        """Number of elements that an index chooses one number from; 0 for anything else, sums of such too."""
        if not self._chosen or self.meeting.size != 1:
            return 0
        return int(np.size(hull(self.meeting.sides[0].parameter)[0]))

    def _any(self, base: Interval) -> Interval:
        """Any of all elements."""
        return self._filled(base.low.min(), base.high.max(), [base])

    def _elements(self, base: Interval) -> Interval:
        shape = (-1, *self.meeting.shape)
        return Interval(base.low.reshape(shape), base.high.reshape(shape), base.flags.reshape(shape))

    def _linear(self, sides: Sequence[Interval]) -> Interval:
        """Sums of products, bounded by norms and, for a product with one vector, entry by entry."""
        table = self._table(sides[0])
        if table is None:
            size = sum(_product(side.radius, _norm(one)) for side, one in zip(self.meeting.sides, sides, strict=True))
            return self._filled(-size, size, sides)
        assert self._row is not None
        size = _product(self.meeting.sides[0].radius, _norm(table))
        summed = rules.total(self._row * table, (-1,))
        return self._filled(np.maximum(summed.low, -size), np.minimum(summed.high, size), sides)

    def _table(self, side: Interval) -> Interval | None:
        """Factors of the row's entries, (n_products, n_entries); None where it is not plain which is which."""
        if self._row is None:
            return None
        parts = [np.squeeze(part) for part in (side.low, side.high, side.flags)]
        shape, count = parts[0].shape, self._row.shape[0]
        if len(shape) > 2 or shape.count(count) != 1 or parts[0].size != count * self.meeting.size:
            return None
        return Interval(*(np.moveaxis(part, shape.index(count), -1).reshape(-1, count) for part in parts))

    def _disc(self, sides: Sequence[Enclosed]) -> Disc | None:
        """How a single linear predictor and its change hang together."""
        value, change = self._table(sides[0].value), self._table(sides[0].change)
        radius = self.meeting.sides[0].radius
        if value is None or change is None or self.meeting.size != 1 or not math.isfinite(radius):
            return None
        return Disc.of(value, change, radius)

    def _filled(self, low: Array | float, high: Array | float, sides: Sequence[Interval]) -> Interval:
        shape = (1, *self.meeting.shape)
        first, last = (
            np.broadcast_to(end, shape) if np.size(end) == 1 else np.reshape(end, shape) for end in (low, high)
        )
        flags = np.bitwise_or.reduce([np.bitwise_or.reduce(side.flags, axis=None) for side in sides])
        return Interval.of(first, last, flags)


def _norm(side: Interval) -> Array:
    """Largest Euclidean norm over the last axis of a table, or of all entries of anything else."""
    axes = (-1,) if side.low.ndim == 2 else None
    return np.asarray(np.sqrt((np.maximum(abs(side.low), abs(side.high)) ** 2).sum(axis=axes)) * ROUNDING)


def _product(radius: float, norm: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(norm > 0, radius * norm * ROUNDING, 0.0)


MOST_BOXES, MOST_BESIDE = 512, 16
"""Boxes at a step, and of what is bounded beside values that are not, whose boxes are refined."""
FEW = 8
"""Values up to which whole numbers have a box each."""
MOST_COMBINATIONS = 64
HALVINGS = 3
"""Times that a box of unbounded values is cut when it is refined."""


class RowBoxes:
    """A fixed partition of the values of a row, and of the ranges in which it meets the parameters.

    A row meets the parameters of both places in two numbers; their mean is what is cut, and both lie half of their
    difference around it.

    Parameters
    ----------
    symbols : sequence of Symbol
        Of rows, and meetings; the range of a linear predictor is known at a step only and is cut into equal parts.
    choices : mapping of Symbol to int
        The meetings, and how many elements there are to choose from; 0 for linear predictors.
    """

    def __init__(self, symbols: Sequence[Symbol], choices: Mapping[Symbol, int]) -> None:
        self._symbols, self._choices = tuple(symbols), choices
        self._edges = np.cumsum([0, *(symbol.size for symbol in symbols)])
        ends = [_ends(symbol, choices.get(symbol)) for symbol in symbols]
        low, high = (np.concatenate([np.zeros(0), *(end[place].ravel() for end in ends)]) for place in (0, 1))
        chosen = self._marked([choices.get(symbol, 0) > 0 for symbol in symbols])
        self.loose = np.isinf(low) | np.isinf(high)
        few = (self._marked([symbol.integer for symbol in symbols]) & ~self.loose) | chosen
        parts = _parts(low, high, few, chosen)
        self._low, self._high = (_combinations([part[end] for part in parts]) for end in (0, 1))

    def _marked(self, of_symbols: Sequence[bool]) -> Array:
        return np.repeat(of_symbols, np.diff(self._edges)).astype(bool)

    def boxes(self, met: Mapping[Symbol, Enclosed]) -> tuple[Array, Array]:
        """Return (n_boxes, n_scalars) arrays of ends; of a meeting they hold the mean of its values at both places."""
        low, high = self._low.copy(), self._high.copy()
        for symbol, first, last in zip(self._symbols, self._edges[:-1], self._edges[1:], strict=True):
            if self._choices.get(symbol) == 0:
                least, most = (np.ravel(end) for end in (met[symbol].value.low, met[symbol].value.high))
                low[:, first:last] = _between(least, most, low[:, first:last], least)
                high[:, first:last] = _between(least, most, high[:, first:last], most)
        return low, high

    def enclosed(self, low: Array, high: Array, met: Mapping[Symbol, Enclosed]) -> dict[Symbol, Enclosed]:
        """Return what the symbols are on boxes; meetings change between the places, rows do not."""
        found = {}
        for symbol, first, last in zip(self._symbols, self._edges[:-1], self._edges[1:], strict=True):
            shape = (len(low), *symbol.shape)
            ends = low[:, first:last].reshape(shape), high[:, first:last].reshape(shape)
            if symbol not in met:
                found[symbol] = fixed(*ends)
            elif met[symbol].elements is None:
                found[symbol] = _widened(*ends, met[symbol])
            else:
                found[symbol] = _chosen(low[:, first], high[:, first], met[symbol])
        return found

    def of_rows(self) -> dict[Symbol, Enclosed]:
        """Return what is the same at every step: all symbols but meetings."""
        boxes = self.enclosed(self._low, self._high, {})
        return {symbol: one for symbol, one in boxes.items() if symbol not in self._choices}

    def cut(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Cut boxes of unbounded values into smaller ones."""
        for _ in range(HALVINGS):
            with np.errstate(all="ignore"):
                width = np.where(self.loose, np.arctan(high) - np.arctan(low), 0.0)
            lows, highs, stuck = halves(low, high, width, np.zeros(len(self.loose), dtype=bool))
            low, high = np.concatenate([low[stuck], lows]), np.concatenate([high[stuck], highs])
        return low, high


def _ends(symbol: Symbol, choices: int | None) -> tuple[Array, Array]:
    """Of a row its values, of an element its place, of a linear predictor shares of its range."""
    if choices is None:
        return symbol.low, symbol.high
    return np.zeros(symbol.shape), np.full(symbol.shape, max(choices - 1.0, 0.0) if choices else 1.0)


def _chosen(low: Array, high: Array, whole: Enclosed) -> Enclosed:
    """The element at an index; any of them where the index is not known."""
    assert whole.elements is not None
    if (low != high).any():
        return Enclosed(whole.value, whole.change)
    places = low.astype(np.int64)
    return Enclosed(whole.elements.value[places], whole.elements.change[places])


def _widened(low: Array, high: Array, whole: Enclosed) -> Enclosed:
    """Enclose a meeting at both places, where the mean of its two values is in a part of the range."""
    half = np.maximum(abs(whole.change.low), abs(whole.change.high)) * ROUNDING / 2
    least, most = np.maximum(low - half, whole.value.low), np.minimum(high + half, whole.value.high)
    value = Interval.of(least, most, whole.value.flags)
    if whole.disc is None:
        return Enclosed(value, whole.change)
    near = whole.disc.change(low, high)
    down, up = np.maximum(near.low, whole.change.low), np.minimum(near.high, whole.change.high)
    possible = down <= up  # else no row is in this part
    ends = np.where(possible, down, whole.change.low), np.where(possible, up, whole.change.high)
    return Enclosed(value, Interval.of(*ends, whole.change.flags))


def _combinations(columns: Sequence[Array]) -> Array:
    """All combinations of one entry from each column: (n_combinations, n_columns)."""
    places = np.indices([len(column) for column in columns]) if columns else np.zeros((0, 1), dtype=int)
    chosen = [column[place.ravel()] for column, place in zip(columns, places, strict=True)]
    return np.stack(chosen, axis=1) if chosen else np.zeros((1, 0))


def _parts(low: Array, high: Array, few: Array, whole: Array) -> list[tuple[Array, Array]]:
    """Starts and ends of the parts of each scalar: single whole numbers, or equally many intervals where it has bounds.

    Those that are `few` have a part for every value, as far as these are not many together; what is `whole` is not cut
    otherwise. The parts of unbounded ones are found when they are cut.
    """
    values = _enumerated(low, high, few, whole)
    room = (MOST_BESIDE if np.isinf([low, high]).any() else MOST_BOXES) / math.prod(map(len, values.values()))
    apart = np.isin(np.arange(len(low)), list(values)) | whole
    wide = np.isfinite(low) & np.isfinite(high) & (high > low) & ~apart
    cuts = max(1, math.floor(room ** (1 / max(1, int(wide.sum()))) + 1e-9))
    parts = []
    for at in range(len(low)):
        edges = np.linspace(low[at], high[at], cuts + 1) if wide[at] else np.array([low[at], high[at]])
        parts.append((values[at], values[at]) if at in values else (edges[:-1], edges[1:]))
    return parts


def _enumerated(low: Array, high: Array, few: Array, whole: Array) -> dict[int, Array]:
    """Values of those scalars that have a part for each."""
    values, combinations = dict[int, Array](), 1
    for at in map(int, np.flatnonzero(few)):
        first, count = math.ceil(low[at]), math.floor(high[at]) - math.ceil(low[at]) + 1
        if combinations * count <= MOST_COMBINATIONS and (count <= FEW or whole[at]):
            values[at], combinations = np.arange(first, first + float(count)), combinations * count
    return values


def _between(least: Array, most: Array, share: Array, whole: Array) -> Array:
    """Points that divide ranges in given shares; equal shares give equal points, so that no gap is left."""
    with np.errstate(all="ignore"):
        inner = np.clip(least + share * (most - least), least, most)
        inner = np.where(np.isfinite(most - least), inner, whole)
    return np.where(share == 0, least, np.where(share == 1, most, inner))


__all__ = ["Disc", "Enclosed", "Met", "RowBoxes", "fixed"]
