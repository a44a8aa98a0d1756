"""Where a row and parameters meet, at two places of the parameters: what it may be, and by how much it may change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule, rules
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


__all__ = ["Disc", "Enclosed", "Met", "fixed"]
