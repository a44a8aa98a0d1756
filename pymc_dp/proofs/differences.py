"""Sums of one expression over rows and places of the parameter space, with signs: differences of differences.

The expression is laid out once. Its values for two rows at two places are those on four boxes of its own scalars, so
that all of them are enclosed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Expression, Symbol
from pymc_dp.intervals.interval import Interval, add, quiet
from pymc_dp.proofs.enclosures import Enclosure, Enclosures

Corner = tuple[int, int, int]
"""Sign, row and place."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scalar:
    """One number of a sum over corners.

    Attributes
    ----------
    symbol : Symbol
        Of the expression.
    entry : int
        Its place in the symbol.
    label : str
        Which row, which place: empty for public values, which all corners share.
    """

    symbol: Symbol
    entry: int
    label: str

    @property
    def name(self) -> str:
        """What a reader should call it."""
        plain = self.symbol.name if self.symbol.size == 1 else f"{self.symbol.name}[{self.entry}]"
        return f"{plain} ({self.label})" if self.label else plain


class Corners:
    """The sum over `corners` of sign times an expression; private values go with the row, parameters with the place.

    Public values of a row are shared: neighbours differ in private ones only.

    Parameters
    ----------
    expression : Expression
        A scalar.
    corners : sequence of (sign, row, place)
    jumps : bool
        Whether the expression is a derivative that may jump: at a point both sides count, beside it theirs alone.

    Attributes
    ----------
    tape : Enclosures
        Of the expression.
    scalars : tuple of Scalar
    low, high : (n_scalars,) arrays
    integer : (n_scalars,) bool array
    mirror : (int, int) or None
        Two scalars that can be exchanged, others with them, without a change of the sum.
    """

    def __init__(self, expression: Expression, corners: Sequence[Corner], *, jumps: bool = False) -> None:
        self.jumps = jumps
        self.tape = Enclosures(expression)
        self._signs = [sign for sign, _, _ in corners]
        places: dict[tuple[Symbol, int, str], int] = {}
        own = [self.tape.owner(place) for place in range(len(self.tape.low))]
        self._places = [
            np.array(
                [places.setdefault((symbol, at, _label(symbol, row, place)), len(places)) for symbol, at in own],
                dtype=int,
            )
            for _, row, place in corners
        ]
        self.scalars = tuple(Scalar(symbol=symbol, entry=at, label=label) for symbol, at, label in places)
        self.low, self.high = (np.zeros(len(places)) for _ in range(2))
        self.integer = np.zeros(len(places), dtype=bool)
        for chosen in self._places:
            self.low[chosen], self.high[chosen] = self.tape.low, self.tape.high
            self.integer[chosen] = self.tape.integer
        self.mirror = self._mirror(corners)

    def _mirror(self, corners: Sequence[Corner]) -> tuple[int, int] | None:
        """Find a scalar and its counterpart in the other row or place, if exchanging both rows and places is no change.

        All scalars that are exchanged have equal ranges, for they are copies of one.
        """
        images = [(sign, 1 - row, 1 - place) for sign, row, place in corners]
        if sorted(images) != sorted(corners):
            return None
        one, two = self._places[0], self._places[corners.index(images[0])]
        able = (one != two) & np.isfinite(self.high - self.low)[one] & ~self.tape.choices
        private = np.array([self.scalars[place].symbol.role == "row" for place in one], dtype=bool)
        found = [*np.flatnonzero(able & private), *np.flatnonzero(able)]
        return (int(one[found[0]]), int(two[found[0]])) if found else None

    def at(self, low: Array, high: Array, *, settled: bool) -> Interval:
        """Enclose the sum on boxes; see `Enclosures.at`."""
        return self._summed(self.tape.at(*self._stacked(low, high), settled=settled), len(low))

    def contracted(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Narrow boxes to where their choices can hold; see `Enclosures.contracted`."""
        low, high = low.copy(), high.copy()
        for chosen in self._places:
            low[:, chosen], high[:, chosen] = self.tape.contracted(low[:, chosen], high[:, chosen])
        return low, high

    def enclose(self, low: Array, high: Array, *, centred: bool = False) -> Enclosure:
        """Enclose the sum and its slopes on boxes; see `Enclosures.enclose`."""
        count = len(low)
        found = self.tape.enclose(*self._stacked(low, high), centred=centred)
        slopes: dict[int, Interval] = {}
        low, high, open_ = low.copy(), high.copy(), np.zeros(low.shape, dtype=bool)
        for corner, (sign, chosen) in enumerate(zip(self._signs, self._places, strict=True)):
            part = slice(corner * count, (corner + 1) * count)
            low[:, chosen] = np.maximum(low[:, chosen], found.low[part])
            high[:, chosen] = np.minimum(high[:, chosen], found.high[part])
            open_[:, chosen] |= found.open[part]
            for place, slope in found.slopes.items():
                at, one = int(chosen[place]), _signed(sign, slope[part])
                slopes[at] = quiet(add)(slopes[at], one) if at in slopes else one
        return Enclosure(self._summed(found.value, count), slopes, low, high, open_)

    @property
    def choices(self) -> Array:
        """Which scalars are choices of decisions."""
        return self._scattered(self.tape.choices)

    @property
    def limited(self) -> Array:
        """Choices whose conditions compare one scalar with a number."""
        return self._scattered(self.tape.limited)

    def _scattered(self, marks: Array) -> Array:
        found = np.zeros(len(self.low), dtype=bool)
        for chosen in self._places:
            found[chosen] = marks
        return found

    @property
    def hangs(self) -> Array:
        """Which scalars (columns) the condition of a choice (rows) depends on."""
        found = np.zeros((len(self.low), len(self.low)), dtype=bool)
        for chosen in self._places:
            found[np.ix_(chosen, chosen)] |= self.tape.hangs
        return found

    def box(self, corner: int, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the box of the expression's own scalars at one corner."""
        return low[..., self._places[corner]], high[..., self._places[corner]]

    @property
    def count(self) -> int:
        """Number of corners."""
        return len(self._signs)

    def _stacked(self, low: Array, high: Array) -> tuple[Array, Array]:
        boxes = [self.box(corner, low, high) for corner in range(self.count)]
        return np.concatenate([box[0] for box in boxes]), np.concatenate([box[1] for box in boxes])

    def _summed(self, value: Interval, count: int) -> Interval:
        values = (value[corner * count : (corner + 1) * count] for corner in range(self.count))
        return reduce(quiet(add), [_signed(sign, one) for sign, one in zip(self._signs, values, strict=True)])


def _label(symbol: Symbol, row: int, place: int) -> str:
    return {
        "row": f"row {row}",
        "public": "",
        "parameter": f"place {place}",
        "joint": f"row {row}, place {place}",
        "public joint": f"place {place}",
    }[symbol.role]


def _signed(sign: int, value: Interval) -> Interval:
    return value if sign > 0 else -value


__all__ = ["Corner", "Corners", "Scalar"]
