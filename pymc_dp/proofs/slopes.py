"""The steepest that an expression can be: proved bounds of norms of its gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.derivative import halves
from pymc_dp.intervals.expression import Expression, Symbol, Tape
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.meeting_points import Meeting, longest, once
from pymc_dp.proofs.row_ranges import SLACK, Proof, obstacle_of

TOLERANCE = 2e-3
MOST_BOXES = 12_000
BATCH = 512


Entry = list[tuple[int, float]]
Group = list[Entry]


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm:
    """Which scalars of a tape make up a gradient, and how their slopes add up.

    Attributes
    ----------
    blocks : sequence of list of groups
        Orthogonal blocks. The norms of the groups of one block add up; the entries of a group are orthogonal; the
        slopes of an entry, (place, factor) pairs, add up, each times its factor.
    """

    blocks: Sequence[list[Group]]

    def __call__(self, slopes: dict[int, Interval], count: int) -> Array:
        """Largest norm on each box."""
        sizes = {}
        with np.errstate(all="ignore"):
            for place, one in slopes.items():
                largest = np.maximum(abs(one.low), abs(one.high))
                sizes[place] = np.where((one.flags & NAN) > 0, np.inf, largest)
            total = np.zeros(count)
            for block in self.blocks:
                total = total + sum((_group(group, sizes, count) for group in block), np.zeros(count)) ** 2
            return np.sqrt(total)


def _group(group: Group, sizes: dict[int, Array], count: int) -> Array:
    total = np.zeros(count)
    for entry in group:
        size = np.zeros(count)
        for place, factor in entry:
            if place in sizes:
                size = size + np.where(sizes[place] > 0, sizes[place] * factor, 0.0)
        total = total + size**2
    return np.sqrt(total)


def parameter_norm(tape: Tape, origins: dict[Symbol, Symbol], scales: Mapping[str, Array] | None = None) -> Norm:
    """Return the Euclidean norm of the gradient by all parameters.

    Parameters
    ----------
    tape : Tape
    origins : dict of Symbol to Symbol
        What each copied symbol is a copy of.
    scales : mapping of str to array, optional
        Unit of every scalar of each parameter, by name: the gradient is that by parameters divided by their units.

    Notes
    -----
    A linear predictor x·b moves the block of b by its own slope times ‖x‖; parameters that are met in several ways add
    up, which bounds the norm of their sum.
    """
    groups: dict[tuple[Symbol, Symbol], dict[int, Entry]] = {}
    for symbol, (start, size) in tape.places.items():
        origin = origins.get(symbol, symbol)
        if origin.role not in OF_PARAMETERS:
            continue
        for entry in range(size):
            if not isinstance(origin, Meeting):
                unit = _units(origin, scales)[entry]
                groups.setdefault((origin, origin), {}).setdefault(entry, []).append((start + entry, unit))
                continue
            for side in origin.sides:
                known = side.symbol is not None
                reach = side.radius * float(np.max(_units(side.symbol, scales))) if known else math.inf
                met = groups.setdefault((side.symbol or origin, origin), {})
                met.setdefault(entry if side.disjoint else 0, []).append((start + entry, reach))
    blocks: dict[Symbol, list[Group]] = {}
    for (owner, _), entries in groups.items():
        blocks.setdefault(owner, []).append(list(entries.values()))
    return Norm(blocks=list(blocks.values()))


def _units(symbol: Symbol | None, scales: Mapping[str, Array] | None) -> Array:
    if symbol is None or scales is None:
        return np.ones(1 if symbol is None else symbol.size)
    return np.asarray(scales[symbol.name]).ravel()


def row_norm(tape: Tape, symbol: Symbol, met: Sequence[Meeting]) -> Norm:
    """Return the Euclidean norm of the gradient by the values of one column, linear predictors included."""
    direct: Entry = []
    if symbol in tape.places:
        start, size = tape.places[symbol]
        direct = [(place, 1.0) for place in range(start, start + size)]
    through: Entry = []
    for meeting in met:
        if any(symbol in side.symbols for side in meeting.of_row):
            plain = meeting.linear and all(once(side) is symbol for side in meeting.of_row)
            factor = math.hypot(*(longest(side.parameter) for side in meeting.sides)) if plain else math.inf
            start, size = tape.places[meeting]
            through += [(place, factor) for place in range(start, start + size)]
    return Norm(blocks=[[[[item] for item in direct], *([[item]] for item in through)]])


def steepest(
    ends: Expression, norm_of: Norm | None, tape: Tape | None = None, *, tolerance: float = TOLERANCE
) -> Proof:
    """Bound a norm of the gradient over the box of all symbols.

    Notes
    -----
    Slopes are enclosed on boxes, which are halved until the bound is within `tolerance` of the largest norm met at a
    point, or until nothing is gained. Where the expression jumps the bound is infinite: the mean value theorem, for
    which the bound is used, needs no differentiability but does need continuity.
    """
    laid = tape or Tape([ends])
    norm = norm_of or Norm(blocks=[])
    low, high = laid.low[None].copy(), laid.high[None].copy()
    extent = _relative(laid.low, laid.high)
    upper = _bounds(laid, norm, low, high)
    best, looked, settled = 0.0, 1, 0.0
    while len(upper):
        best = max(best, _probed(laid, norm, low, high, upper))
        open_ = upper > best * (1 + tolerance)
        settled = max(settled, float(upper[~open_].max(initial=0.0)))
        low, high, upper = low[open_], high[open_], upper[open_]
        if not len(upper) or looked > MOST_BOXES or math.isinf(best):
            break
        order = np.argsort(-upper, kind="stable")
        chosen, rest = order[:BATCH], order[BATCH:]
        with np.errstate(all="ignore"):
            part = _relative(low[chosen], high[chosen]) / np.where(extent > 0, extent, 1.0)
        lows, highs, stuck = halves(low[chosen], high[chosen], part, laid.integer)
        settled = max(settled, float(upper[chosen][stuck].max(initial=0.0)))
        if math.isinf(settled) or (np.isinf(upper).any() and looked > MOST_BOXES // 8):
            break
        fresh = _bounds(laid, norm, lows, highs)
        looked += len(fresh)
        low, high = np.concatenate([low[rest], lows]), np.concatenate([high[rest], highs])
        upper = np.concatenate([upper[rest], fresh])
    value = max(settled, float(upper.max(initial=0.0)))
    if math.isinf(value):
        obstacle, symbols = obstacle_of(laid, laid.low, laid.high)
        return Proof(value=math.inf, attained=best, boxes=looked, obstacle=f"its slope: {obstacle}", symbols=symbols)
    return Proof(value=value * SLACK, attained=best, boxes=looked)


def _bounds(tape: Tape, norm: Norm, low: Array, high: Array) -> Array:
    (value,), (slopes,) = tape.with_slopes(low, high)
    found = norm(slopes, len(low))
    return np.where((value.flags & NAN) > 0, np.inf, found)


def _probed(tape: Tape, norm: Norm, low: Array, high: Array, upper: Array) -> float:
    order = np.argsort(-upper, kind="stable")[:64]
    with np.errstate(all="ignore"):
        ends = np.maximum(low[order], -1e3), np.minimum(high[order], 1e3)
        middle = np.where(tape.integer, np.rint((ends[0] + ends[1]) / 2), (ends[0] + ends[1]) / 2)
    at = np.concatenate([middle, *ends])
    (value,), (slopes,) = tape.with_slopes(at, at)
    sizes = norm({place: Interval(one.low, one.low, one.flags) for place, one in slopes.items()}, len(at))
    return float(np.where((value.flags > 0) | np.isinf(sizes), 0.0, sizes).max(initial=0.0))


def _relative(low: Array, high: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.arctan(high) - np.arctan(low))


__all__ = ["Norm", "parameter_norm", "row_norm", "steepest"]
