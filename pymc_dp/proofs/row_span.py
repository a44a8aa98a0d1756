"""How far one row can move one observed variable's log-likelihood ratio of two places: sups and infs over boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Expression, Symbol, UnknownOperation, checked, in_order, replaced
from pymc_dp.intervals.interval import NAN, up
from pymc_dp.proofs.differences import Changes
from pymc_dp.proofs.meeting_points import Meeting, roles
from pymc_dp.proofs.meeting_ranges import Enclosed, Met, RowBoxes
from pymc_dp.proofs.row_likelihood import Copies, copied, parts_of, signed_sum
from pymc_dp.proofs.row_ranges import SLACK

ROUNDS = 6
"""Times that boxes of unbounded values are refined."""
REFINED = 48
"""Boxes refined at a time, for either end."""
GAIN = 0.98
"""Share of the bound before, above which refining ends, once it is set by boxes with ends."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """What one row can do to the log-likelihood ratio g of two places.

    Attributes
    ----------
    low, high : float
        g of any row lies between.
    about : (low, high) or None
        Between these lies g of any row less the middle of g at the references for its public values; None without
        references.
    neighbours : {"replace", "add_remove"}
    """

    low: float
    high: float
    about: tuple[float, float] | None
    neighbours: Neighbours

    @property
    def centred(self) -> bool:
        """Whether the interval about the middle is the shorter one: the one to hold rows in."""
        return self.about is not None and self.about[1] - self.about[0] < self.high - self.low

    @property
    def held(self) -> tuple[float, float]:
        """The interval to hold each row's g in, less the middle where that is subtracted."""
        return self.about if self.about is not None and self.centred else (self.low, self.high)

    @property
    def reach(self) -> float:
        """Range of what is held: no neighbour moves the sum over rows by more. Infinite where nothing is proved."""
        low, high = self.held
        return max(-low, high) if self.neighbours == "add_remove" else high - low

    def back(self) -> Span:
        """Return the span of the way back."""
        about = None if self.about is None else (-self.about[1], -self.about[0])
        return Span(low=-self.high, high=-self.low, about=about, neighbours=self.neighbours)


def nothing(neighbours: Neighbours) -> Span:
    """Return the span of what has no proof."""
    return Span(low=-math.inf, high=math.inf, about=None, neighbours=neighbours)


def added(spans: Sequence[Span]) -> Span:
    """Return the span of a sum over observed variables."""
    neighbours = spans[0].neighbours
    if not all(math.isfinite(span.reach) for span in spans):
        return nothing(neighbours)
    low, high = sum(span.low for span in spans), sum(span.high for span in spans)
    abouts = [span.about for span in spans if span.about is not None]
    about = (sum(one[0] for one in abouts), sum(one[1] for one in abouts)) if len(abouts) == len(spans) else None
    return Span(low=low, high=high, about=about, neighbours=neighbours)


Point = Mapping[Symbol, Array]
"""Values of the private columns of a row."""


class RowSpan:
    """Spans of one observed variable.

    Parameters
    ----------
    whole : Expression
        Log-likelihood of one row, over value variables and values of the row.
    neighbours : {"replace", "add_remove"}
    around : mapping of Symbol to Enclosed
        Value variables near the initial point of a chain.
    references : sequence of Point
        Where the middle of g is looked for, given a row's public values; none, where g is held about 0.
    complete : bool
        Whether these are all that private columns may be: then g lies within half of its range about the middle.

    Raises
    ------
    UnknownOperation
        Where an index of the row chooses from what depends on the row itself.
    """

    def __init__(
        self,
        whole: Expression,
        neighbours: Neighbours,
        around: Mapping[Symbol, Enclosed],
        *,
        references: Sequence[Point] = (),
        complete: bool = False,
    ) -> None:
        self._neighbours, self._complete = neighbours, complete
        self._met = {symbol: Met(symbol) for symbol in whole.symbols if isinstance(symbol, Meeting)}
        if any(roles(side.parameter) != {"parameter"} for symbol in self._met for side in symbol.sides):
            raise UnknownOperation(
                "an element that an index of the row selects from an array that itself depends on the row"
            )
        self._sides = Changes([side.parameter for symbol in self._met for side in symbol.sides])
        self._one = Extremes(whole, {})
        self._apart: Extremes | None = None
        if references:
            settled = Extremes(_unchecked(whole), {}).settled(around, self._meetings(around))
            self._apart = _of_two_rows(*settled) if complete else _of_row_and_ends(*settled, references)

    @np.errstate(all="ignore")
    def span(self, given: Mapping[Symbol, Enclosed]) -> Span:
        """Return what one row can do, given the value variables at two places and their changes."""
        met = self._meetings(given)
        low, high = (end * SLACK for end in self._one.between(given, met))
        if not math.isfinite(high - low):
            return nothing(self._neighbours)
        return Span(low=low, high=high, about=self._about(given, met, high - low), neighbours=self._neighbours)

    def _about(
        self, given: Mapping[Symbol, Enclosed], met: Mapping[Symbol, Enclosed], length: float
    ) -> tuple[float, float] | None:
        """Bound g less its middle at the references: it is never further from it than the whole range of g."""
        if self._apart is None:
            return None
        low, high = self._apart.between(given, met)
        if self._complete:
            half = min(max(-low, high) * SLACK, length) / 2
            return -half, half
        return max(low / 2 * SLACK, -length), min(high / 2 * SLACK, length)

    @np.errstate(all="ignore")
    def obstacle(self, given: Mapping[Symbol, Enclosed]) -> tuple[str, tuple[Symbol, ...]]:
        """Return the first operation whose change has no bound, and what it depends on."""
        return self._one.obstacle(given, self._meetings(given))

    def _meetings(self, given: Mapping[Symbol, Enclosed]) -> dict[Symbol, Enclosed]:
        """Enclose what rows and parameters meet in."""
        sides = iter(self._sides.between(given))
        return {symbol: met([next(sides) for _ in symbol.sides]) for symbol, met in self._met.items()}


def _unchecked(expression: Expression) -> Expression:
    """Return an expression without the conditions under which it is defined."""
    for node in reversed(in_order([expression])):  # what is inside of the outer ones stays what it is
        if node.kind == "checked":
            expression = replaced(expression, node, node.inputs[0])
    return expression


def _of_two_rows(whole: Expression, conditions: Sequence[Expression]) -> Extremes:
    """Two rows with the same public values: how far apart they are."""
    return _of_rows(whole, conditions, [(1, 0), (-1, 1)], {})


def _of_row_and_ends(whole: Expression, conditions: Sequence[Expression], ends: Sequence[Point]) -> Extremes:
    """Twice a row, less both ends at the same public values: twice as far as it is from their middle."""
    points = {
        (symbol, f"row {place}"): Symbol(
            name=symbol.name, low=value, high=value, integer=symbol.integer, role=symbol.role
        )
        for place, point in enumerate(ends, start=1)
        for symbol, value in point.items()
    }
    return _of_rows(whole, conditions, [(1, 0), (1, 0), *((-1, place) for place in range(1, len(ends) + 1))], points)


def _of_rows(
    whole: Expression, conditions: Sequence[Expression], rows: Sequence[tuple[int, int]], copies: Copies
) -> Extremes:
    """Rows, each with a sign, of which the signs add up to 0: what depends on public values alone cancels."""
    parts = [part for part in parts_of(whole) if {symbol.role for symbol in part.expression.symbols} & {"row", "joint"}]
    terms = [(sign * part.sign, copied(part.expression, row, 0, copies)) for part in parts for sign, row in rows]
    end = checked(signed_sum(terms), [copied(condition, 0, 0, copies) for condition in conditions])
    return Extremes(end, {copy: symbol for (symbol, _), copy in copies.items()})


class Extremes:
    """Bounds of the change of an expression between two places, over everything that rows may be.

    Parameters
    ----------
    end : Expression
    origins : mapping of Symbol to Symbol
        What each copied symbol is a copy of.
    """

    def __init__(self, end: Expression, origins: Mapping[Symbol, Symbol]) -> None:
        self._tape = Changes([end])
        origin = {symbol: origins.get(symbol, symbol) for symbol in self._tape.symbols}
        self._parameters = {symbol: old for symbol, old in origin.items() if old.role == "parameter"}
        self._meetings = {symbol: old for symbol, old in origin.items() if isinstance(old, Meeting)}
        rows = [symbol for symbol in self._tape.symbols if symbol not in self._parameters]
        self._boxes = RowBoxes(rows, {symbol: Met(old).choices for symbol, old in self._meetings.items()})
        if not self._boxes.loose.any():
            self._tape.hold(self._boxes.of_rows())

    def between(self, given: Mapping[Symbol, Enclosed], met: Mapping[Symbol, Enclosed]) -> tuple[float, float]:
        """Return the least and the largest change."""
        known, local = self._near(given, met)
        low, high = self._boxes.boxes(local)
        least, most = self._bounded(low, high, known, local)
        for _ in range(ROUNDS if self._boxes.loose.any() else 0):
            worst = np.union1d(np.argsort(least, kind="stable")[:REFINED], np.argsort(-most, kind="stable")[:REFINED])
            before = most.max() - least.min()
            cuts = self._boxes.cut(low[worst], high[worst])
            ends = [*cuts, *self._bounded(*cuts, known, local)]
            low, high, least, most = (
                np.concatenate([np.delete(old, worst, axis=0), new])
                for old, new in zip((low, high, least, most), ends, strict=True)
            )
            leading = [int(np.argmin(least)), int(np.argmax(most))]
            bounded = np.isfinite(low[leading]).all() and np.isfinite(high[leading]).all()
            if bounded and GAIN * before < most.max() - least.min():
                break
        return float(least.min()), float(most.max())

    def settled(
        self, given: Mapping[Symbol, Enclosed], met: Mapping[Symbol, Enclosed]
    ) -> tuple[Expression, list[Expression]]:
        """Return the expression without the switches that these places decide, and the conditions on which it holds."""
        known, local = self._near(given, met)
        return self._tape.settled({**known, **self._boxes.enclosed(*self._boxes.boxes(local), local)})

    def _near(
        self, given: Mapping[Symbol, Enclosed], met: Mapping[Symbol, Enclosed]
    ) -> tuple[dict[Symbol, Enclosed], dict[Symbol, Enclosed]]:
        known = {symbol: given[old] for symbol, old in self._parameters.items()}
        return known, {symbol: met[old] for symbol, old in self._meetings.items()}

    def _bounded(
        self, low: Array, high: Array, known: Mapping[Symbol, Enclosed], local: Mapping[Symbol, Enclosed]
    ) -> tuple[Array, Array]:
        """Bound the change on each box: it is no more than what the values are apart either."""
        (found,) = self._tape.between({**known, **self._boxes.enclosed(low, high, local)})
        value, change = found.value, found.change
        unknown = ((change.flags & NAN) > 0) | np.isnan(change.low) | np.isnan(change.high)
        lost = _flat((value.flags > 0) | unknown, len(low))
        with np.errstate(all="ignore"):
            apart = up(_flat(value.high, len(low)) - _flat(value.low, len(low)))
        apart = np.where(lost | np.isnan(apart), np.inf, apart)
        least, most = (
            np.where(lost, end, _flat(part, len(low))) for end, part in ((-np.inf, change.low), (np.inf, change.high))
        )
        return np.maximum(least, -apart), np.minimum(most, apart)

    def obstacle(
        self, given: Mapping[Symbol, Enclosed], met: Mapping[Symbol, Enclosed]
    ) -> tuple[str, tuple[Symbol, ...]]:
        """Return the first operation whose change has no bound, and what it depends on."""
        known, local = self._near(given, met)
        node = self._tape.obstacle({**known, **self._boxes.enclosed(*self._boxes.boxes(local), local)})
        symbols = self._tape.symbols if node is None else node.symbols
        return node.name if node else "the density", tuple(sorted(symbols, key=lambda symbol: symbol.name))


def _flat(part: Array, count: int) -> Array:
    return np.broadcast_to(part.reshape(part.shape[0], -1)[:, 0], (count,))


__all__ = ["Extremes", "Point", "RowSpan", "Span", "added", "nothing"]
