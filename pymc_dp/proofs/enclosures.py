"""What a search needs to know of an expression on a box: its range, its slopes, and how far decisions are settled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule
from pymc_dp.intervals.expression import Expression, Symbol, Tape
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.decisions import limits

DELICATE = {
    **dict.fromkeys(("Log", "Log1p", "Log2", "Log10", "Sqrt", "Reciprocal", "GammaLn", "Log1mexp", "Psi", "Pow"), 0),
    **dict.fromkeys(("TrueDiv", "LogErfWindow"), 1),
}
"""Operations that are not defined, or not bounded, everywhere, and which of their inputs decides it."""

Slopes = dict[Expression, dict[int, Interval]]


class Enclosure(NamedTuple):
    """What is known of an expression on boxes.

    Attributes
    ----------
    value : (n_boxes,) Interval
    slopes : dict of int to (n_boxes,) Interval
        Partial derivatives by scalar.
    low, high : (n_boxes, n_scalars) arrays
        The boxes, narrowed to where conditions agree with what was decided; empty ones have some low > high.
    open : (n_boxes, n_scalars) bool array
        Choices whose condition may go either way on a box.
    """

    value: Interval
    slopes: dict[int, Interval]
    low: Array
    high: Array
    open: Array


class Objective(Protocol):
    """What `maximise` looks at: a function of scalars in a box."""

    low: Array
    high: Array
    integer: Array

    @property
    def choices(self) -> Array:
        """Which scalars are choices of decisions."""

    @property
    def hangs(self) -> Array:
        """(n_scalars, n_scalars): which scalars (columns) the condition of a choice (rows) depends on."""

    @property
    def limited(self) -> Array:
        """Choices whose conditions compare one scalar with a number."""

    @property
    def mirror(self) -> tuple[int, int] | None:
        """Two scalars that can be exchanged, others with them, without a change of the value; None if not known."""

    def contracted(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Narrow boxes to where their choices can hold; empty ones have some low > high."""

    def enclose(self, low: Array, high: Array, *, centred: bool = False) -> Enclosure:
        """Enclose it on boxes, with slopes."""

    def at(self, low: Array, high: Array, *, settled: bool) -> Interval:
        """Enclose it on boxes; if `settled`, decisions are their choices, whatever their conditions say."""


class Enclosures(Tape):
    """One expression laid out for a search."""

    mirror: tuple[int, int] | None = None

    def __init__(self, end: Expression) -> None:
        super().__init__([end])
        self._decisions = [node for node in self.nodes if node.kind == "decision"]
        self._delicate = {given for node in self.nodes for given in _delicate(node) if given.inputs and given.symbols}

    def at(self, low: Array, high: Array, *, settled: bool) -> Interval:
        """Enclose the expression on boxes; if `settled`, decisions are their choices, whatever their conditions say."""
        known = self._values(low, high, settled=settled)
        return self._flat(known[self.ends[0]], len(low))

    def contracted(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Narrow boxes to where their choices can hold, as far as conditions compare one scalar with a number."""
        low, high = low.copy(), high.copy()
        for choice, scalar, sides in self._limits:
            for holds in (False, True):
                made = (low[:, choice] == holds) & (high[:, choice] == holds)
                least, most = (
                    _whole(low[:, scalar], high[:, scalar], sides, holds) if self.integer[scalar] else sides[holds]
                )
                low[:, scalar] = np.where(made, np.maximum(low[:, scalar], least), low[:, scalar])
                high[:, scalar] = np.where(made, np.minimum(high[:, scalar], most), high[:, scalar])
        return low, high

    @cached_property
    def _limits(self) -> list[tuple[int, int, Sequence[tuple[float, float]]]]:
        """Of each simple condition: its choice, its scalar, and what it leaves of that where it fails and holds."""
        known = [(self._choice(node).start, limits(node.inputs[0])) for node in self._decisions]
        return [(choice, self.places[found[0]][0], found[1]) for choice, found in known if found is not None]

    def enclose(self, low: Array, high: Array, *, centred: bool = False) -> Enclosure:
        """Enclose the expression and its slopes on boxes, on which decisions are settled as far as they can be.

        With `centred`, what goes into operations that are not defined everywhere is enclosed by the mean value theorem
        too, which takes longer.
        """
        slopes: Slopes = {}
        known = self._centred(low, high, slopes) if centred else self._values(low, high, settled=False)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if node not in slopes:
                    slopes[node] = self._slopes(node, known, slopes)
        end, count = self.ends[0], len(low)
        low, high, open_ = low.copy(), high.copy(), np.zeros(low.shape, dtype=bool)
        for node in self._decisions:
            place, condition = self._choice(node), known[node.inputs[0]]
            open_[:, place] = chain_rule.by_entry(chain_rule.undecided(condition), count)
            low[:, place], high[:, place] = chain_rule.settled(condition, low[:, place], high[:, place])
        flat = {place: self._flat(one, count) for place, one in slopes[end].items()}
        return Enclosure(self._flat(known[end], count), flat, low, high, open_)

    def _values(self, low: Array, high: Array, *, settled: bool) -> dict[Expression, Interval]:
        known = dict(self._fixed)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if settled and node.kind == "decision":
                    known[node] = chain_rule.plain(known[node.inputs[1]])
                elif node not in known:
                    known[node] = self._value(node, known, low, high)
        return known

    def _centred(self, low: Array, high: Array, slopes: Slopes) -> dict[Expression, Interval]:
        """Enclose every node, and its slopes on the way."""
        known, choices = dict(self._fixed), self.choices
        first, last = (np.where(choices, end, midpoints(low, high)) for end in (low, high))
        at_middle = self._values(first, last, settled=True)
        with np.errstate(all="ignore"):
            least, most = low - first, high - last
            for node in self.nodes:
                if node not in known:
                    known[node] = self._value(node, known, low, high)
                slopes[node] = self._slopes(node, known, slopes)
                if node in self._delicate:
                    ways = [(one, least[:, at], most[:, at]) for at, one in slopes[node].items() if not choices[at]]
                    known[node] = chain_rule.centred(known[node], at_middle[node], ways)
        return known

    @cached_property
    def choices(self) -> Array:
        """Which scalars are choices of decisions."""
        chosen = np.zeros(len(self.low), dtype=bool)
        for node in self._decisions:
            chosen[self._choice(node)] = True
        return chosen

    def _choice(self, node: Expression) -> slice:
        symbol = node.inputs[1].symbol
        assert symbol is not None
        return self._range(symbol)

    @cached_property
    def hangs(self) -> Array:
        """(n_scalars, n_scalars): which scalars (columns) the condition of a choice (rows) depends on."""
        found = np.zeros((len(self.low), len(self.low)), dtype=bool)
        for node in self._decisions:
            for symbol in node.inputs[0].symbols:
                found[self._choice(node), self._range(symbol)] = True
        return found

    @cached_property
    def limited(self) -> Array:
        """Choices whose conditions compare one scalar with a number."""
        found = np.zeros(len(self.low), dtype=bool)
        found[[choice for choice, _, _ in self._limits]] = True
        return found

    def _range(self, symbol: Symbol) -> slice:
        start, size = self.places[symbol]
        return slice(start, start + size)


def _delicate(node: Expression) -> tuple[Expression, ...]:
    if node.kind != "elementwise" or node.name not in DELICATE:
        return ()
    return (node.inputs[DELICATE[node.name]],)


def _whole(low: Array, high: Array, sides: Sequence[tuple[float, float]], holds: bool) -> tuple[Array, Array]:
    """What a condition leaves of a whole number, also where it only leaves out an end of the box."""
    (least, most), other = sides[holds], sides[not holds]
    alone = other[0] == other[1]
    return (
        np.where(alone & (low == other[0]), low + 1, np.ceil(least)),
        np.where(alone & (high == other[1]), high - 1, np.floor(most)),
    )


def midpoints(low: Array, high: Array) -> Array:
    """Points within boxes: the middle, or the place closest to 0 where they are infinite."""
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(high - low), low / 2 + high / 2, np.clip(0.0, low, high))


__all__ = ["Enclosure", "Enclosures", "Objective", "midpoints"]
