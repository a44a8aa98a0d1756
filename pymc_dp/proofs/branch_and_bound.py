"""The largest value of an expression over a box, proved from above: branch and bound on many boxes at once."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule
from pymc_dp.intervals.derivative import Boxes, halves, middle
from pymc_dp.intervals.expression import Tape
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.proofs.enclosures import Enclosure, Enclosures, Objective, midpoints

TOLERANCE = 5e-4
"""Relative gap between the proved bound and the best point found at which the search ends."""
LEAST = 1e-9
"""Gap at which the search ends where the value is next to nothing."""
MOST_BOXES, BATCH, FEW = 120_000, 1024, 128
"""Boxes below which each is cut along several scalars at once, and that are split at once while bounds are infinite."""
PROBES = 64
PATIENCE = 16
"""Rounds after which a bound that is still infinite where scalars are unbounded is given up."""
MOST_INFINITE = 60_000
"""Boxes after which a bound that is still infinite is given up."""
DISTANCES, DIRECTIONS, GROWTH = (1e3, 1e6), 64, 100.0
"""How far out, in how many directions, and by how much values must grow to be given up."""
FINITE_IS_ENOUGH = ContextVar("FINITE_IS_ENOUGH", default=False)
"""Whether searches stop where a bound is finite, and give up sooner: for advice, which asks for nothing else."""
ALLOWED = ContextVar("ALLOWED", default=np.inf)
"""Boxes, times the square of the number of scalars, after which any search stops: about what they cost together."""
ENUMERATED = 4
MOST_COMBINATIONS = 1024
ROOM = 1 + 1e-12
MOST_CUTS = 3
WHOLE = 16.0
"""How much sooner whole numbers are cut: a function that is smooth nowhere between them is so at each."""
STEPS = np.array([-0.3, -0.1, -0.03, -0.01, -0.001, 0.001, 0.01, 0.03, 0.1, 0.3])
"""Moves, relative to the width of a scalar's range, by which the best point is improved."""


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


def maximise(
    given: Objective | Tape, *, tolerance: float = TOLERANCE, most: int = MOST_BOXES, enough: float = -np.inf
) -> Found:
    """Bound an expression from above over the box of its symbols.

    Parameters
    ----------
    given : Objective or Tape
        A tape has one end.
    tolerance : float
        Relative gap at which to stop.
    most : int
        Boxes after which to stop; the bound is then further from the best point, but a bound still.
    enough : float
        A bound below which nothing is gained.

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
    search, enough = _Search(given), np.finfo(float).max if FINITE_IS_ENOUGH.get() else enough
    if search.diverges():
        whole = search.low, search.high
        return Found(upper=np.inf, lower=search.best, point=search.point, boxes=0, worst=whole)
    boxes, allowed = search.bounded(*search.roots()), min(most, ALLOWED.get() / max(len(search.low), 1) ** 2)
    settled, rounds = -np.inf, 0
    while len(boxes.upper):
        search.probe(boxes, polish=rounds % 4 == 0)
        target = search.best + max(tolerance * abs(search.best), LEAST) if np.isfinite(search.best) else search.best
        done = boxes.upper <= max(target, enough)
        settled = max(settled, float(boxes.upper[done].max(initial=-np.inf)))
        boxes = boxes.take(np.flatnonzero(~done))
        rounds += 1
        if not len(boxes.upper) or search.looked >= allowed or search.infinite or search.endless(boxes, rounds):
            break
        order = np.argsort(-boxes.upper, kind="stable")
        infinite = int(np.isinf(boxes.upper).sum())
        count = FEW if 0 < infinite < FEW else BATCH
        chosen, rest = boxes.take(order[:count]), boxes.take(order[count:])
        low, high, above, stuck = search.split(chosen)
        settled = max(settled, stuck)
        boxes = rest.joined(search.bounded(low, high, above))
    upper = max(settled, float(boxes.upper.max(initial=-np.inf)))
    if search.best > upper and not getattr(given, "jumps", False):
        raise PrivacyError("A point exceeds a proved bound; this is an error of pymc_dp.")
    upper = max(upper, search.best)
    place = int(np.argmax(boxes.upper)) if len(boxes.upper) else None
    point = (search.point, search.point) if np.isfinite(search.best) else (search.low, search.high)
    worst = (boxes.low[place], boxes.high[place]) if place is not None else point
    return Found(upper=upper, lower=search.best, point=search.point, boxes=search.looked, worst=worst)


def reached(given: Objective | Tape) -> float:
    """Largest value met at the corners and in the middle of the box: which of several is likely to be the largest."""
    search = _Search(given)
    middle = midpoints(search.low, search.high)[None]
    low, high = _finite(search.low[None], search.high[None])
    search._try(np.concatenate([low, high, middle]))
    return search.best


def _laid_out(given: Objective | Tape) -> Objective:
    if isinstance(given, Tape):
        return given if isinstance(given, Enclosures) else Enclosures(given.ends[0])
    return given


class _Known(NamedTuple):
    """What is enclosed on boxes: which choices are open, values, and slopes."""

    low: Array
    high: Array
    open: Array
    upper: Array
    lower: Array
    least: Array
    most: Array


class _Search:
    def __init__(self, given: Objective | Tape) -> None:
        objective = self.objective = _laid_out(given)
        self.integer = objective.integer
        self.low = np.where(self.integer, np.ceil(objective.low), objective.low)
        self.high = np.where(self.integer, np.floor(objective.high), objective.high)
        self.choices, self.hangs = objective.choices, objective.hangs
        self.limited = objective.limited & ~(self.hangs @ self.integer)
        self.best, self.point = -np.inf, np.full(len(self.low), np.nan)
        self.looked, self.infinite, self._most_lost = 0, False, MOST_INFINITE // (10 if FINITE_IS_ENOUGH.get() else 1)
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
            return self._without_images(self.low[None].copy(), self.high[None].copy())
        combinations = np.array(list(product(*values)))
        low, high = (np.repeat(end[None], len(combinations), axis=0) for end in (self.low, self.high))
        low[:, few] = high[:, few] = combinations
        return self._without_images(low, high)

    def _without_images(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Cut boxes in the middle of two scalars that can be exchanged, and leave out those that others stand for.

        Where the first is above the middle and the second below it, exchanging both, and all that goes with them, leads
        to a point of the same value, where it is the other way round.
        """
        if self.objective.mirror is None:
            return low, high
        for place in self.objective.mirror:
            centre = middle(self.low[place], self.high[place])
            centre = np.floor(centre) if self.integer[place] else centre
            cut = (low[:, place] < high[:, place]) & np.isfinite(centre)
            lows, highs = (np.concatenate([end, end[cut]]) for end in (low, high))
            highs[: len(low), place][cut] = centre
            lows[len(low) :, place] = centre + self.integer[place]
            low, high = lows, highs
        one, two = self.objective.mirror
        image = low[:, one] >= high[:, two]
        image &= low[:, one] > low[:, two]
        return low[~image], high[~image]

    def diverges(self) -> bool:
        """Whether values keep growing far out, where the box has no end: a sign that nothing bounds them.

        Giving up is always sound; it saves a search that would end in nothing.
        """
        loose = ~np.isfinite(self.high - self.low)
        if not loose.any():
            return False
        near, far = (self._far_out(loose, distance) for distance in DISTANCES)
        return far > GROWTH * max(near, 1.0)

    def _far_out(self, loose: Array, distance: float) -> float:
        """Largest value met at a distance, in directions chosen once and for all."""
        rng = np.random.default_rng(0)
        ends = np.clip(-distance, self.low, self.high), np.clip(distance, self.low, self.high)
        share = rng.integers(0, 2, size=(DIRECTIONS, len(loose)))
        value = self.objective.at(*2 * [np.where(share, *ends)], settled=False)
        return float(np.where(np.isfinite(value.low) & (value.flags == 0), value.low, -np.inf).max())

    def endless(self, boxes: Boxes, rounds: int) -> bool:
        """Whether bounds that are still infinite will hardly become finite."""
        lost = np.isinf(boxes.upper)
        unbounded = np.isinf(boxes.low[lost]).any() or np.isinf(boxes.high[lost]).any()
        return bool(lost.any() and ((rounds > PATIENCE and unbounded) or self.looked > self._most_lost))

    def bounded(self, low: Array, high: Array, above: Array | None = None) -> Boxes:
        """Bound the expression on boxes, and fix what is monotone; boxes without any point are left out."""
        self.looked += len(low)
        above = np.full(len(low), np.inf) if above is None else above
        low, high = self.objective.contracted(low, high)
        kept = (low <= high).all(axis=1)
        low, high, above = low[kept], high[kept], above[kept]
        if not len(low):
            return Boxes(low, high, above, low, low)
        found = self.objective.enclose(low, high)
        least, most = self._slopes(found, low.shape)
        upper, lower = np.minimum(_top(found.value), above), _bottom(found.value)
        kept = (found.low <= found.high).all(axis=1)
        given = found.low, found.high, found.open, upper, lower, least, most
        low, high, open_, upper, lower, least, most = (part[kept] for part in given)
        bounded = np.isfinite(least) & np.isfinite(most) | self.choices
        lost = np.flatnonzero(np.isinf(upper) | ~bounded.all(axis=1))
        if not len(low):
            return Boxes(low, high, upper, low, low)
        if lost.size:
            again = self.objective.enclose(low[lost], high[lost], centred=True)
            upper[lost] = np.minimum(upper[lost], _top(again.value))
            lower[lost] = np.maximum(lower[lost], _bottom(again.value))
            least[lost], most[lost] = self._slopes(again, low[lost].shape)
        return self._by_mean_value(_Known(low, high, open_, upper, lower, least, most))

    def _by_mean_value(self, known: _Known) -> Boxes:
        low, high, _, upper, lower, least, most = known
        centre = _centre(low, high, least, most)
        up, down = least >= 0, most <= 0
        smooth = np.isfinite(centre) & ((np.isfinite(least) & np.isfinite(most)) | up | down) & ~self.choices
        about = self.objective.at(np.where(smooth, centre, low), np.where(smooth, centre, high), settled=True)
        with np.errstate(all="ignore"):
            rise = np.maximum(most * (high - centre), least * (low - centre))
            rise = np.where(smooth & ~up & ~down, rise, 0.0)
            total = _top(about) + rise.sum(axis=1) * ROOM + 1e-300
        upper = np.minimum(upper, np.where(np.isnan(total), np.inf, total))
        new_low, new_high = self._fixed(known, smooth & up, smooth & down & ~up)
        width = np.where(np.isnan(new_high - new_low), 0.0, new_high - new_low)
        with np.errstate(all="ignore"):
            steep = np.maximum(abs(least), abs(most)) * width
            spread = np.minimum(np.where(np.isfinite(lower), upper - lower, np.inf), 1e300)
            part = self._relative(new_low, new_high) / np.where(self._extent > 0, self._extent, 1.0)
            effect = np.where(smooth, steep, spread[:, None] * part * np.where(self.integer, WHOLE, 1.0))
        moves = (least != 0) | (most != 0)
        effect = np.where((width > 0) & moves & ~np.isnan(effect), effect, 0.0)
        deciding = (width > 0) & ~moves & (known.open @ self.hangs)
        effect = np.where(deciding, spread[:, None] * part, effect)
        return Boxes(new_low, new_high, upper, effect, np.where(smooth, centre, midpoints(low, high)))

    def _fixed(self, known: _Known, up: Array, down: Array) -> tuple[Array, Array]:
        """Fix scalars at the end where the expression is largest.

        There the condition of a choice may fail that holds elsewhere on the box. Where the choice is made and its
        condition compares one real number with a constant, the box is all that is left of that number, of which the
        end is a limit: the choice is forced. Otherwise its scalars stay as they are.
        """
        low, high = known.low, known.high
        free = known.open & ((low < high) | ~self.limited)
        moves = (up | down) & (low < high) & ~(free @ self.hangs)
        forced = known.open & (low == high) & (moves @ self.hangs.T)
        ends = np.where(moves & up, high, low), np.where(moves & down, low, high)
        first, last = (np.where(forced, chain_rule.forced(end), end) for end in ends)
        return first, last

    def _slopes(self, found: Enclosure, shape: tuple[int, ...]) -> tuple[Array, Array]:
        least, most = np.zeros(shape), np.zeros(shape)
        for place, slope in found.slopes.items():
            lost = (slope.flags & NAN) > 0
            least[:, place] = np.where(lost, -np.inf, slope.low)
            most[:, place] = np.where(lost, np.inf, slope.high)
        return least, most

    def _relative(self, low: Array, high: Array) -> Array:
        """Width on a scale on which the whole line is finite."""
        with np.errstate(all="ignore"):
            plain = high - low
            return np.where(np.isfinite(self.high - self.low), plain, np.arctan(high) - np.arctan(low))

    def split(self, boxes: Boxes) -> tuple[Array, Array, Array, float]:
        """Cut boxes along the scalars that may change their values most; tell the bound of those that cannot be cut.

        Few boxes are cut along several scalars at once, for a round takes its time however few they are.
        """
        low, high, above, effect = boxes.low, boxes.high, boxes.upper, boxes.effect
        if not low.shape[1]:
            return low[:0], high[:0], above[:0], float(above.max(initial=-np.inf))
        stuck = -np.inf
        for cuts in range(MOST_CUTS):
            lows, highs, whole = halves(low, high, effect, self.integer)
            if cuts == 0:
                stuck, kept = float(above[whole].max(initial=-np.inf)), np.zeros(len(whole), dtype=bool)
            else:
                kept = whole
            axis = np.argmax(effect[~whole], axis=1)
            children = effect[~whole].copy()
            children[np.arange(len(axis)), axis] /= 2
            low, high = np.concatenate([low[kept], lows]), np.concatenate([high[kept], highs])
            above = np.concatenate([above[kept], above[~whole].repeat(2)])
            effect = np.concatenate([effect[kept], children.repeat(2, axis=0)])
            if len(low) > FEW:
                break
        return low, high, above, stuck

    def probe(self, boxes: Boxes, *, polish: bool) -> None:
        """Evaluate the expression at points of the most promising boxes."""
        order = np.argsort(-boxes.upper, kind="stable")[:PROBES]
        low, high = _finite(boxes.low[order], boxes.high[order])
        points = [(low + high) / 2, np.clip(boxes.centre[order], low, high)]
        if self.looked < 4 * BATCH:
            points += [low, high]
        self._try(np.concatenate(points))
        for _ in range(8 if polish and np.isfinite(self.best) else 0):
            before = self.best
            self._try(self._beside())
            if self.best <= before + TOLERANCE * abs(before) / 10:
                break

    def _try(self, points: Array) -> None:
        if not points.size:
            points = self.low[None]
        at = np.where(self.integer, np.rint(points), points)
        ends = (np.where(self.choices, end, at) for end in (0.0, 1.0))
        value = self.objective.at(*ends, settled=False)
        lower = np.where(value.flags & NAN, -np.inf, value.low)
        self.infinite |= bool(np.isposinf(_top(value)).any())
        place = int(np.argmax(lower))
        if lower[place] > self.best:
            self.best, self.point = float(lower[place]), at[place]

    def _beside(self) -> Array:
        """Points that differ from the best one in one scalar."""
        low, high = _finite(self.low, self.high)
        moves = self.point[:, None] + (high - low)[:, None] * STEPS
        values = np.concatenate([np.clip(moves, low[:, None], high[:, None]), low[:, None], high[:, None]], axis=1)
        points = np.repeat(self.point[None], values.size, axis=0)
        points[np.arange(values.size), np.repeat(np.arange(len(low)), values.shape[1])] = values.ravel()
        return points


def _top(value: Interval) -> Array:
    """Upper ends; nothing bounds what may be undefined."""
    return np.where((value.flags & NAN) > 0, np.inf, value.high)


def _bottom(value: Interval) -> Array:
    """Lower ends; nothing bounds what may be undefined."""
    return np.where((value.flags & NAN) > 0, -np.inf, value.low)


def _centre(low: Array, high: Array, least: Array, most: Array) -> Array:
    """Point about which the mean value bound from above is least: an end where the slope has one sign."""
    with np.errstate(all="ignore"):
        between = (most * high - least * low) / (most - least)
        inside = np.clip(between, low, high)
    return np.where(least >= 0, high, np.where(most <= 0, low, inside))


def _finite(low: Array, high: Array) -> tuple[Array, Array]:
    """Points near the ends of boxes where these are infinite."""
    far = 1e3
    return np.maximum(low, np.minimum(-far, high - far)), np.minimum(high, np.maximum(far, low + far))


__all__ = ["Found", "maximise", "reached"]
