"""Values and slopes of the kinds of nodes that an expression is made of: the chain rule in interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pymc_dp.intervals.interval import NAN, Array, Interval, add, multiply, unknown

ArrayMap = Callable[..., Array]


def parts(interval: Interval) -> tuple[Array, Array, Array]:
    """Ends and flags."""
    return interval.low, interval.high, interval.flags


def still(like: Interval) -> Interval:
    """No slope, or no change, of the shape of an interval without its axis of boxes."""
    return Interval.point(np.zeros((1, *like.shape[1:])))


def rearranged(move: ArrayMap, inputs: Sequence[Interval]) -> Interval:
    """Entries of intervals in another order or shape."""
    low = move(*(one.low for one in inputs))
    high = low if all(one.low is one.high for one in inputs) else move(*(one.high for one in inputs))
    return Interval(low, high, move(*(one.flags for one in inputs)))


def with_conditions(inputs: Sequence[Interval]) -> Interval:
    """Mark the first as undefined where one of the others, conditions, may fail."""
    value = inputs[0]
    fails = np.zeros(value.shape[0], dtype=bool)
    for condition in inputs[1:]:
        failing = (condition.low < 1) | ((condition.flags & NAN) > 0)
        fails = fails | failing.reshape(failing.shape[0], -1).any(axis=1)
    count = max(value.shape[0], len(fails))
    value = value.broadcast_to((count, *value.shape[1:]))
    marks = np.broadcast_to(fails, (count,)).reshape(-1, *(1,) * (len(value.shape) - 1))
    return Interval(value.low, value.high, value.flags | np.where(marks, NAN, 0).astype(np.uint8))


def chained(partials: Sequence[Interval], slopes: Sequence[Interval | None]) -> Interval:
    """Chain rule along one scalar; 0 times anything unbounded is 0."""
    terms = [_product(one, slope) for one, slope in zip(partials, slopes, strict=True) if slope is not None]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _product(one: Interval, other: Interval) -> Interval:
    """The product, without rounding and in a fraction of the time where one factor is 1 or -1 throughout."""
    shape = np.broadcast_shapes(one.shape, other.shape)
    for unit, rest in ((other, one), (one, other)):
        sign = _sign(unit)
        if sign:
            return (rest if sign > 0 else -rest).broadcast_to(shape)
    return multiply(one, other)


def _sign(one: Interval) -> int:
    if one.low is not one.high or not one.low.size or one.flags.any():
        return 0
    first = one.low.flat[0]
    return int(first) if abs(first) == 1 and (one.low == first).all() else 0


def undecided(condition: Interval) -> Any:
    """Where a condition may be either."""
    return (condition.low != condition.high) | ((condition.flags & NAN) > 0)


def switched(condition: Interval, output: Interval, slopes: Sequence[Interval | None]) -> Interval:
    """Slope along one scalar: of the branch taken, else of either, else unknown: the condition itself may jump."""
    zero = still(output)
    yes, no = (slope if slope is not None else zero for slope in slopes[1:])
    shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    condition, yes, no = (item.broadcast_to(shape) for item in (condition, yes, no))
    either = yes.hull(no) if slopes[0] is None else unknown(shape)
    open_, taken = undecided(condition), condition.low != 0
    picked = (
        np.where(open_, one, np.where(taken, first, second))
        for one, first, second in zip(parts(either), parts(yes), parts(no), strict=True)
    )
    return Interval(*picked)


def moved_slopes(move: ArrayMap, inputs: Sequence[Interval], slopes: Sequence[Interval | None]) -> Interval:
    """Slopes move as the entries do."""
    given = [
        still(one) if slope is None else slope.broadcast_to((slope.shape[0], *one.shape[1:]))
        for one, slope in zip(inputs, slopes, strict=True)
    ]
    return rearranged(move, given)


def chosen(condition: Interval, choice: Interval) -> Interval:
    """A condition where it is decided, else the choice; the choice in any case where it is forced: below 0, above 1."""
    taken, made = undecided(condition) | _forced(choice.low, choice.high), plain(choice)
    return Interval(*(np.where(taken, two, one) for one, two in zip(parts(condition), parts(made), strict=True)))


def plain(choice: Interval) -> Interval:
    """A choice between 0 and 1, whether it is forced or not."""
    return Interval(np.clip(choice.low, 0, 1), np.clip(choice.high, 0, 1), choice.flags)


def _forced(low: Array, high: Array) -> Any:
    return (high < 0) | (low > 1)


def forced(choice: Array) -> Array:
    """Return choices, 0 or 1, as ones that hold whatever their conditions say."""
    return np.where(choice > 0, 2.0, -1.0)


def of_choice(inputs: Sequence[Interval], slope: Interval) -> Interval:
    """Slope of that along an entry of the choice: unknown where both are open, else none."""
    condition, choice = inputs
    shape = np.broadcast_shapes(condition.shape, choice.shape, slope.shape)
    moves = undecided(condition) & (choice.low != choice.high) & (slope.low != 0)
    ends = (np.where(moves, one, zero) for one, zero in zip(parts(unknown(shape)), parts(still(slope)), strict=True))
    return Interval(*ends)


def by_entry(mask: Array, count: int) -> Array:
    """(n_boxes, n_entries) from an array with a leading axis of boxes or of length 1."""
    return np.broadcast_to(mask.reshape(len(mask), -1), (count, mask[:1].size))


def settled(condition: Interval, low: Array, high: Array) -> tuple[Array, Array]:
    """Narrow (n_boxes, n_entries) choices to what their conditions decide; low > high where that leaves none."""
    open_ = undecided(condition)
    least = by_entry(np.where(open_, 0.0, condition.low), len(low))
    most = by_entry(np.where(open_, 1.0, condition.high), len(low))
    stays = _forced(low, high)
    return np.where(stays, low, np.maximum(low, least)), np.where(stays, high, np.minimum(high, most))


def centred(value: Interval, centre: Interval, slopes: Sequence[tuple[Interval, Array, Array]]) -> Interval:
    """Narrow an enclosure by the mean value theorem: the value at a centre plus slopes times distances to it.

    Parameters
    ----------
    slopes : sequence of (slope, low, high)
        Along each scalar, and the (n_boxes,) least and largest distances from the centre.
    """
    total = centre
    for slope, low, high in slopes:
        ones = (1,) * (len(slope.shape) - 1)
        total = add(total, multiply(slope, Interval.of(low.reshape(-1, *ones), high.reshape(-1, *ones))))
    total = total.broadcast_to(np.broadcast_shapes(total.shape, value.shape))
    value = value.broadcast_to(total.shape)
    usable = (value.flags == 0) & (total.flags == 0)
    low = np.where(usable, np.fmax(value.low, total.low), value.low)
    high = np.where(usable, np.fmin(value.high, total.high), value.high)
    usable = low <= high  # both hold the value; rounding may not make them disjoint
    return Interval(np.where(usable, low, value.low), np.where(usable, high, value.high), value.flags)


__all__ = [
    "by_entry",
    "centred",
    "chained",
    "chosen",
    "forced",
    "moved_slopes",
    "of_choice",
    "parts",
    "plain",
    "rearranged",
    "settled",
    "still",
    "switched",
    "undecided",
    "with_conditions",
]
