"""What a search needs to know of an expression on a box: its range, its slopes, and how far decisions are settled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity import chain
from pymc_dp.sensitivity.expression import Expression, Symbol, Tape
from pymc_dp.sensitivity.intervals import Interval

DELICATE = {
    **dict.fromkeys(("Log", "Log1p", "Log2", "Log10", "Sqrt", "Reciprocal", "GammaLn", "Log1mexp", "Psi", "Pow"), 0),
    **dict.fromkeys(("TrueDiv",), 1),
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
    held : (n_boxes, n_scalars) bool array
        Scalars that a condition which is open on a box hangs on: moved to an end of the box they might contradict it.
    """

    value: Interval
    slopes: dict[int, Interval]
    low: Array
    high: Array
    held: Array


class Objective(Protocol):
    """What `maximise` looks at: a function of scalars in a box."""

    low: Array
    high: Array
    integer: Array

    @property
    def choices(self) -> Array:
        """Which scalars are choices of decisions."""

    def enclose(self, low: Array, high: Array, *, centred: bool = False) -> Enclosure:
        """Enclose it on boxes, with slopes."""

    def at(self, low: Array, high: Array, *, settled: bool) -> Interval:
        """Enclose it on boxes; if `settled`, decisions are their choices, whatever their conditions say."""


class Enclosures(Tape):
    """One expression laid out for a search."""

    def __init__(self, end: Expression) -> None:
        super().__init__([end])
        self._decisions = [node for node in self.nodes if node.kind == "decision"]
        self._delicate = {given for node in self.nodes for given in _delicate(node) if given.inputs and given.symbols}

    def at(self, low: Array, high: Array, *, settled: bool) -> Interval:
        """Enclose the expression on boxes; if `settled`, decisions are their choices, whatever their conditions say."""
        known = self._values(low, high, settled=settled)
        return self._flat(known[self.ends[0]], len(low))

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
        held = np.zeros(low.shape, dtype=bool)
        for node in self._decisions:
            held[:, self._behind(node)] |= _open(known[node.inputs[0]], count)[:, None]
            low, high = self._settled(node, known, low, high)
        flat = {place: self._flat(one, count) for place, one in slopes[end].items()}
        return Enclosure(self._flat(known[end], count), flat, low, high, held)

    def _values(self, low: Array, high: Array, *, settled: bool) -> dict[Expression, Interval]:
        known = dict(self._fixed)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if settled and node.kind == "decision":
                    known[node] = known[node.inputs[1]]
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
                    known[node] = chain.centred(known[node], at_middle[node], ways)
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
        return slice(*self._range(symbol))

    def _behind(self, node: Expression) -> Array:
        """Places of what a condition hangs on."""
        ranges = [np.arange(*self._range(symbol)) for symbol in node.inputs[0].symbols]
        return np.concatenate([np.zeros(0, dtype=int), *ranges])

    def _range(self, symbol: Symbol) -> tuple[int, int]:
        start, size = self.places[symbol]
        return start, start + size

    def _settled(
        self, node: Expression, known: Mapping[Expression, Interval], low: Array, high: Array
    ) -> tuple[Array, Array]:
        """Narrow the choices of a decision to what its condition decides; a box without any has low > high."""
        place = self._choice(node)
        least, most = chain.settled(known[node.inputs[0]], len(low))
        low, high = low.copy(), high.copy()
        low[:, place], high[:, place] = np.maximum(low[:, place], least), np.minimum(high[:, place], most)
        return low, high


def _delicate(node: Expression) -> tuple[Expression, ...]:
    if node.kind != "elementwise" or node.name not in DELICATE:
        return ()
    return (node.inputs[DELICATE[node.name]],)


def _open(condition: Interval, count: int) -> Array:
    """Boxes on which some entry of a condition may be either."""
    found = chain.undecided(condition)
    return np.broadcast_to(found.reshape(len(found), -1).any(axis=1), (count,))


def midpoints(low: Array, high: Array) -> Array:
    """Points within boxes: the middle, or the place closest to 0 where they are infinite."""
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(high - low), low / 2 + high / 2, np.clip(0.0, low, high))


__all__ = ["Enclosure", "Enclosures", "Objective", "midpoints"]
