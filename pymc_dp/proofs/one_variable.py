"""One free variable that moves while the others are held: what it stands behind, and how fast that moves with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Expression, Symbol, Tape, moved
from pymc_dp.intervals.feeds import MANY, feeds_of
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.intervals.rules import total
from pymc_dp.proofs.meeting_points import ROUNDING, Meeting, Side, hull
from pymc_dp.proofs.row_likelihood import RowLikelihood

Ends = tuple[Array, Array]


def parameters_of(row: RowLikelihood) -> dict[str, Symbol]:
    """Return the free variables that a row's log-likelihood depends on, also through linear predictors and indices."""
    return {symbol.name: symbol for symbol in _behind(row.symbols) if symbol.role == "parameter"}


def _behind(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    for symbol in symbols:
        yield symbol
        if isinstance(symbol, Meeting):
            for side in symbol.sides:
                yield from _behind(side.parameter.symbols)


@dataclass(frozen=True, kw_only=True, eq=False)
class Moving:
    """What moves: a variable, or one element of it.

    Attributes
    ----------
    symbol : Symbol
    entry : int or None
        Place of the element in the raveled variable; None for all elements at once.
    """

    symbol: Symbol
    entry: int | None = None

    @property
    def scalar(self) -> bool:
        """Whether a single number moves."""
        return self.entry is not None or self.symbol.size == 1

    @property
    def bounds(self) -> tuple[float, float]:
        """Support of the scalar."""
        place = self.entry or 0
        return float(self.symbol.low.flat[place]), float(self.symbol.high.flat[place])

    @property
    def width(self) -> float:
        """Width of the support of the scalar."""
        low, high = self.bounds
        return float(np.nextafter(high - low, np.inf))

    def touches(self, symbols: Iterable[Symbol]) -> bool:
        """Whether it is among symbols, or behind one of them."""
        return any(one is self.symbol for one in _behind(symbols))

    def is_chosen(self, meeting: Meeting) -> bool:
        """Whether a meeting is an element of the variable itself, chosen by the row."""
        return not meeting.linear and len(meeting.sides) == 1 and meeting.sides[0].symbol is self.symbol

    def derivative(self, meeting: Meeting) -> Ends | None:
        """Enclose the secant slope of every entry of a meeting by the scalar; None where nothing bounds it."""
        if not self.scalar:
            return None
        low, high = np.zeros(meeting.shape), np.zeros(meeting.shape)
        for side in meeting.sides:
            slopes = self._slopes(side.parameter)
            if slopes is None:
                return None
            least, most = _through(meeting, side, slopes)
            if len(meeting.sides) > 1:  # added or subtracted: which of them is not known
                most = np.maximum(abs(least), abs(most))
                least = -most
            low, high = np.nextafter(low + least, -np.inf), np.nextafter(high + most, np.inf)
        return (low, high) if np.isfinite([low, high]).all() else None

    def _slopes(self, parameter: Expression) -> Interval | None:
        """Enclose the secant slope of every entry of a parameters' side by the scalar, as a flat interval."""
        if self.symbol not in parameter.symbols:
            return None if self.touches(parameter.symbols) else Interval.point(np.zeros(_size(parameter)))
        found = _slopes_of_entries(parameter, self.symbol)
        if found is None:
            return None
        place, nothing = self.entry or 0, Interval.point(np.zeros(1))
        slopes = [one.get(place, nothing) for one in found]
        whole = Interval(*(np.concatenate([getattr(one, part) for one in slopes]) for part in ("low", "high", "flags")))
        return None if (whole.flags & NAN).any() else whole


def _slopes_of_entries(parameter: Expression, symbol: Symbol) -> list[dict[int, Interval]] | None:
    """Enclose the secant slopes of each entry of an expression by the elements of a variable, by their places."""
    if any(isinstance(one, Meeting) for one in parameter.symbols):
        return None
    tape = Tape([moved("Entry", partial(entry_of, place), [parameter]) for place in range(_size(parameter))])
    _, slopes = tape.with_slopes(tape.low[None], tape.high[None])
    start, size = tape.places[symbol]
    return [{place - start: one for place, one in found.items() if 0 <= place - start < size} for found in slopes]


def entry_of(place: int, array: Array) -> Array:
    """Return one entry of the raveled array in every box."""
    return array.reshape(array.shape[0], -1)[:, place]


def _size(expression: Expression) -> int:
    return int(np.size(hull(expression)[0]))


def _through(meeting: Meeting, side: Side, slopes: Interval) -> Ends:
    """Enclose how fast entries of a meeting move through one of its sides, whose entries move at `slopes`."""
    if not side.linear:  # through the entry that is chosen
        return slopes.low.min(), slopes.high.max()
    table = _by_entry(meeting, side)
    if table is None:
        reach = side.radius * _length(slopes)
        return -reach, reach
    covariates, places = table
    parts = slopes[places]
    summed, reach = total(covariates * parts, (-1,)), side.radius * _length(parts)
    found = np.maximum(summed.low, -reach), np.minimum(summed.high, reach)
    return found[0].reshape(meeting.shape), found[1].reshape(meeting.shape)


def _length(slopes: Interval) -> Array:
    """Largest Euclidean norms along the last axis."""
    return np.asarray(np.sqrt((np.maximum(abs(slopes.low), abs(slopes.high)) ** 2).sum(axis=-1)) * ROUNDING)


def _by_entry(meeting: Meeting, side: Side) -> tuple[Interval, Array] | None:
    """Say which entries of a side make up each entry of a meeting, and what multiplies them.

    Returns
    -------
    covariates : (n,) Interval
    places : (meeting.size, n) integer array
        Places of entries of the raveled side.

    Notes
    -----
    None unless every entry of the meeting is the product of the same n covariates with n entries of the side that no
    other entry has. That is so where the side has n entries for each of the meeting; along which of its axes they lie
    is known if only one has length n.
    """
    vectors = [one for one in meeting.sides if _size(one.parameter) > 1]
    if len(meeting.of_row) != 1 or vectors != [side]:
        return None
    low, high = hull(meeting.of_row[0])
    shape = hull(side.parameter)[0].shape
    axes = [axis for axis, length in enumerate(shape) if length == low.size]
    if np.prod(shape) != low.size * meeting.size or len(axes) != 1:
        return None
    places = np.moveaxis(np.arange(int(np.prod(shape))).reshape(shape), axes[0], -1).reshape(meeting.size, low.size)
    return Interval.of(low.ravel(), high.ravel()), places


def chosen_elements(row: RowLikelihood, name: str) -> Array | None:
    """Say which element of a variable a row depends on, where its index chooses it among entries of an expression.

    Returns
    -------
    (n_entries,) integer array or None
        For each entry of what is indexed, raveled, the one element it depends on, `NONE` for none; None where a row may
        depend on several elements, or on one other than through a single index.
    """
    symbol = parameters_of(row).get(name)
    if symbol is None or symbol in row.symbols:
        return None
    moving = Moving(symbol=symbol)
    met = [one for one in row.symbols if isinstance(one, Meeting) and moving.touches([one])]
    if len(met) != 1 or met[0].linear or met[0].size != 1 or len(met[0].sides) != 1:
        return None
    base = met[0].sides[0].parameter
    if any(isinstance(one, Meeting) for one in base.symbols):
        return None
    tape = Tape([base])
    found = feeds_of(tape, tape.values(tape.low[None], tape.high[None]))[base][symbol].ravel()
    return None if (found == MANY).any() else found


__all__ = ["Moving", "chosen_elements", "entry_of", "parameters_of"]
