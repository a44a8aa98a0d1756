"""Boxes that together hold everything one row may be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Symbol
from pymc_dp.intervals.halving import halves
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.meeting_points import ROUNDING
from pymc_dp.proofs.meeting_ranges import Enclosed, fixed

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
        self._low, self._high = (_product([part[end] for part in parts]) for end in (0, 1))

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


def _product(columns: Sequence[Array]) -> Array:
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


__all__ = ["RowBoxes"]
