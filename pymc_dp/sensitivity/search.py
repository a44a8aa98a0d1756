"""The largest value of an expression over a box, proved from above: branch and bound on many boxes at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity.expression import Tape
from pymc_dp.sensitivity.intervals import NAN, Interval

TOLERANCE = 5e-4
"""Relative gap between the proved bound and the best point found at which the search ends."""
LEAST = 1e-9
"""Gap at which the search ends where the value is next to nothing."""
MOST_BOXES = 120_000
BATCH = 1024
PROBES = 128
PATIENCE = 16
"""Rounds after which a bound that is still infinite is given up."""
ENUMERATED = 4
MOST_COMBINATIONS = 1024
ROOM = 1 + 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a search proved.

    Attributes
    ----------
    upper : float
        No value is above it; inf where nothing was proved.
    lower : float
        Largest value met at a point.
    point : (n_scalars,) array
        Where.
    boxes : int
        Boxes looked at.
    worst : pair of (n_scalars,) arrays
        The box with the largest bound that is left.
    """

    upper: float
    lower: float
    point: Array
    boxes: int
    worst: tuple[Array, Array]

    @property
    def gap(self) -> float:
        """Proved bound less the best point."""
        return self.upper - self.lower


@dataclass
class _Boxes:
    """Boxes with their bounds, and how much each scalar may still change the value."""

    low: Array
    high: Array
    upper: Array
    effect: Array

    def take(self, places: Array) -> _Boxes:
        return _Boxes(self.low[places], self.high[places], self.upper[places], self.effect[places])

    def joined(self, other: _Boxes) -> _Boxes:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Boxes(*(np.concatenate(pair) for pair in pairs))


def maximise(tape: Tape, *, tolerance: float = TOLERANCE, most: int = MOST_BOXES) -> Found:
    """Bound an expression from above over the box of its symbols.

    Parameters
    ----------
    tape : Tape
        With one end.
    tolerance : float
        Relative gap at which to stop.
    most : int
        Boxes after which to stop; the bound is then further from the best point, but a bound still.

    Notes
    -----
    A box is bounded by interval arithmetic and by the mean value theorem about the point that makes its bound least
    (Baumann 1988); a scalar along which the expression is monotone is fixed at its end. Integers are relaxed to reals
    within a box and split at integers. Every step is deterministic and sees public numbers only.

    References
    ----------
    Moore, Kearfott, Cloud (2009), Introduction to Interval Analysis, chapters 5, 6, 11; Baumann (1988), doi
    10.1007/BF01934088.
    """
    search = _Search(tape)
    boxes = search.bounded(*search.roots())
    settled, rounds = -np.inf, 0
    while len(boxes.upper):
        search.probe(boxes)
        target = search.best + max(tolerance * abs(search.best), LEAST) if np.isfinite(search.best) else search.best
        done = boxes.upper <= target
        settled = max(settled, float(boxes.upper[done].max(initial=-np.inf)))
        boxes = boxes.take(np.flatnonzero(~done))
        rounds += 1
        endless = rounds > PATIENCE and bool(np.isinf(boxes.upper).any())
        if not len(boxes.upper) or search.looked >= most or search.infinite or endless:
            break
        order = np.argsort(-boxes.upper, kind="stable")
        count = BATCH if np.isfinite(boxes.upper[order[0]]) else BATCH // 8
        chosen, rest = boxes.take(order[:count]), boxes.take(order[count:])
        low, high, stuck = search.split(chosen)
        settled = max(settled, float(chosen.upper[stuck].max(initial=-np.inf)))
        boxes = rest.joined(search.bounded(low, high, chosen.upper[~stuck].repeat(2)))
    upper = max(settled, float(boxes.upper.max(initial=-np.inf)))
    place = int(np.argmax(boxes.upper)) if len(boxes.upper) else None
    worst = (boxes.low[place], boxes.high[place]) if place is not None else (search.point, search.point)
    return Found(upper=upper, lower=search.best, point=search.point, boxes=search.looked, worst=worst)


class _Search:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.low, self.high, self.integer = tape.low, tape.high, tape.integer
        self.best, self.point = -np.inf, np.full(len(tape.low), np.nan)
        self.looked, self.infinite = 0, False
        self._extent = self._relative(self.low, self.high)

    def roots(self) -> tuple[Array, Array]:
        """Start from one box, or from one for each combination of scalars with a few values."""
        few = [
            place
            for place in np.flatnonzero(self.integer & np.isfinite(self.high - self.low))
            if self.high[place] - self.low[place] < ENUMERATED
        ]
        values = [np.arange(self.low[place], self.high[place] + 1) for place in few]
        if not few or np.prod([len(item) for item in values]) > MOST_COMBINATIONS:
            return self.low[None].copy(), self.high[None].copy()
        combinations = np.array(list(product(*values)))
        low, high = (np.repeat(end[None], len(combinations), axis=0) for end in (self.low, self.high))
        low[:, few] = high[:, few] = combinations
        return low, high

    def bounded(self, low: Array, high: Array, above: Array | None = None) -> _Boxes:
        """Bound the expression on boxes, and fix what is monotone."""
        self.looked += len(low)
        (value,), (slopes,) = self.tape.with_slopes(low, high)
        upper = _top(value)
        least, most = self._slopes(slopes, low.shape)
        centre = _centre(low, high, least, most)
        up, down = least >= 0, most <= 0
        smooth = np.isfinite(centre) & ((np.isfinite(least) & np.isfinite(most)) | up | down)
        at_low, at_high = np.where(smooth, centre, low), np.where(smooth, centre, high)
        (about,) = self.tape(at_low, at_high)
        with np.errstate(all="ignore"):
            rise = np.maximum(most * (high - centre), least * (low - centre))
            rise = np.where(smooth & ~up & ~down, rise, 0.0)
            total = _top(about) + rise.sum(axis=1) * ROOM + 1e-300
        upper = np.minimum(upper, np.where(np.isnan(total), np.inf, total))
        if above is not None:
            upper = np.minimum(upper, above)
        new_low, new_high = np.where(smooth & up, high, low), np.where(smooth & down & ~up, low, high)
        width = np.where(np.isnan(new_high - new_low), 0.0, new_high - new_low)
        with np.errstate(all="ignore"):
            steep = np.maximum(abs(least), abs(most)) * width
            spread = np.minimum(np.where(np.isfinite(value.low), upper - value.low, np.inf), 1e300)
            part = self._relative(new_low, new_high) / np.where(self._extent > 0, self._extent, 1.0)
            effect = np.where(smooth, steep, spread[:, None] * part)
        known = np.array([place in slopes for place in range(low.shape[1])], dtype=bool)
        effect = np.where((width > 0) & known & ~np.isnan(effect), effect, 0.0)
        return _Boxes(new_low, new_high, upper, effect)

    def _slopes(self, slopes: dict[int, Interval], shape: tuple[int, ...]) -> tuple[Array, Array]:
        least, most = np.zeros(shape), np.zeros(shape)
        for place, slope in slopes.items():
            lost = (slope.flags & NAN) > 0
            least[:, place] = np.where(lost, -np.inf, slope.low)
            most[:, place] = np.where(lost, np.inf, slope.high)
        return least, most

    def _relative(self, low: Array, high: Array) -> Array:
        """Width on a scale on which the whole line is finite."""
        with np.errstate(all="ignore"):
            plain = high - low
            return np.where(np.isfinite(self.high - self.low), plain, np.arctan(high) - np.arctan(low))

    def split(self, boxes: _Boxes) -> tuple[Array, Array, Array]:
        """Cut each box in two along the scalar that may change its value most; tell which cannot be cut."""
        return halves(boxes.low, boxes.high, boxes.effect, self.integer)

    def probe(self, boxes: _Boxes) -> None:
        """Evaluate the expression at points of the most promising boxes."""
        order = np.argsort(-boxes.upper, kind="stable")[:PROBES]
        low, high = _finite(boxes.low[order], boxes.high[order])
        points = [np.where(self.integer, np.rint((low + high) / 2), (low + high) / 2)]
        if self.looked < 4 * BATCH:
            points += [low, high]
        at = np.concatenate(points)
        (value,) = self.tape(at, at)
        lower = np.where(value.flags & NAN, -np.inf, value.low)
        self.infinite |= bool((lower == np.inf).any())
        place = int(np.argmax(lower))
        if lower[place] > self.best:
            self.best, self.point = float(lower[place]), at[place]


def halves(low: Array, high: Array, effect: Array, integer: Array) -> tuple[Array, Array, Array]:
    """Cut boxes in two along the scalar of the largest effect, one pair after the other; tell which cannot be cut.

    Parameters
    ----------
    low, high, effect : (n_boxes, n_scalars) arrays
    integer : (n_scalars,) bool array
        Scalars that are cut between whole numbers.
    """
    axis = np.argmax(effect, axis=1)
    rows = np.arange(len(axis))
    left_end, right_end = low[rows, axis], high[rows, axis]
    middle = _middle(left_end, right_end)
    whole = integer[axis]
    left = np.where(whole, np.floor(middle), middle)
    right = np.where(whole, left + 1, middle)
    stuck = (effect[rows, axis] <= 0) | (~whole & ((middle <= left_end) | (middle >= right_end)))
    stuck |= left_end >= right_end
    kept = ~stuck
    lows, highs = low[kept].repeat(2, axis=0), high[kept].repeat(2, axis=0)
    pairs = np.arange(kept.sum()) * 2
    highs[pairs, axis[kept]] = left[kept]
    lows[pairs + 1, axis[kept]] = right[kept]
    return lows, highs, stuck


def _top(value: Interval) -> Array:
    """Upper ends; nothing bounds what may be undefined."""
    return np.where((value.flags & NAN) > 0, np.inf, value.high)


def _centre(low: Array, high: Array, least: Array, most: Array) -> Array:
    """Point about which the mean value bound from above is least: an end where the slope has one sign."""
    with np.errstate(all="ignore"):
        between = (most * high - least * low) / (most - least)
        inside = np.clip(between, low, high)
    return np.where(least >= 0, high, np.where(most <= 0, low, inside))


def _middle(low: Array, high: Array) -> Array:
    """Halve an interval; by ratios where it spans several, and away from infinite ends."""
    with np.errstate(all="ignore"):
        plain = low / 2 + high / 2
        ratio = np.where(low > 0, np.sqrt(low) * np.sqrt(high), -np.sqrt(-low) * np.sqrt(-high))
        wide = ((low > 0) & (high > 8 * low)) | ((high < 0) & (low < 8 * high))
        above = np.where(low < 0, 0.0, np.maximum(2 * low, 1.0))
        below = np.where(high > 0, 0.0, np.minimum(2 * high, -1.0))
    middle = np.where(wide & np.isfinite(ratio), ratio, plain)
    middle = np.where(np.isinf(high) & np.isfinite(low), np.where(low < 0, 0.0, above), middle)
    middle = np.where(np.isinf(low) & np.isfinite(high), np.where(high > 0, 0.0, below), middle)
    return np.where(np.isinf(low) & np.isinf(high), 0.0, middle)


def _finite(low: Array, high: Array) -> tuple[Array, Array]:
    """Points near the ends of boxes where these are infinite."""
    far = 1e3
    return np.maximum(low, np.minimum(-far, high - far)), np.minimum(high, np.maximum(far, low + far))


__all__ = ["Found", "halves", "maximise"]
