"""What a search needs to know of an expression on a box: its range, its slopes, and how far decisions are settled.

Conditions that a search may decide: what is chosen by one then has slopes, whichever way it goes.

Where a condition is open on a box, an expression jumps there as far as interval arithmetic can tell. With the condition
replaced by a free choice of true or false, each choice is as smooth as its branch; it holds all that the expression can
be, and boxes on which the condition goes the other way are empty. The values at atoms of a censored variable, for
example, are one choice each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule
from pymc_dp.intervals.expression import Expression, Symbol, Tape, decision, in_order, leaf, rebuilt
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.meeting_points import roles, unmoved

MOST_CHOICES = 8
"""Entries of a condition that are decided one by one."""
Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Symbol):
    """Whether a condition holds, as a symbol."""


def with_decisions(expression: Expression) -> Expression:
    """Return an expression whose conditions, where they are open, are decided by choices of their own.

    Notes
    -----
    Its supremum is that of `expression`, but its slopes say nothing about how `expression` changes from one branch to
    the other: it is for bounds of values, not of slopes.
    """
    tape = Tape([expression])
    known = tape.values(tape.low[None], tape.high[None])
    conditions = dict.fromkeys(node.inputs[0] for node in tape.nodes if node.kind == "switch" and node.name == "Switch")
    choices: dict[Expression, Expression] = {}
    for condition in conditions:
        base, found = unmoved(condition), known[condition]
        size = max(found.low.size, known[base].low.size)
        is_open = (found.low != found.high).any() or found.flags.any()
        if condition.symbols and is_open and size <= MOST_CHOICES and base not in choices:
            choices[base] = leaf(_choice(base, known[base].shape[1:]))
    return _with_choices(expression, choices)


def _choice(condition: Expression, shape: tuple[int, ...]) -> Choice:
    found = roles(condition)
    role = next(iter(found))
    if len(found) > 1:
        of_row, of_parameters = found & {"row", "joint"}, found & OF_PARAMETERS
        role = ("joint" if of_row else "public joint") if of_parameters else "row"
    return Choice(name="a condition", low=np.zeros(shape), high=np.ones(shape), integer=True, role=role)


def _with_choices(expression: Expression, choices: dict[Expression, Expression]) -> Expression:
    """Return the expression with the conditions of its switches decided by choices, and nothing else that uses them."""
    memo: dict[Expression, Expression] = {}
    made: dict[Expression, Expression] = {}
    for node in in_order([expression]):
        inputs = [memo[item] for item in node.inputs]
        if node.kind == "switch" and node.name == "Switch" and (base := unmoved(node.inputs[0])) in choices:
            made.setdefault(base, decision(memo[base], choices[base]))
            inputs[0] = _over(made[base], node.inputs[0])
        memo[node] = rebuilt(node, inputs)
    return memo[expression]


def _over(base: Expression, condition: Expression) -> Expression:
    """Return what moves entries in `condition`, over another base."""
    if condition.kind != "moved":
        return base
    return rebuilt(condition, [_over(base, condition.inputs[0])])


def limits(condition: Expression) -> tuple[Symbol, tuple[Ends, Ends]] | None:
    """Return what a condition leaves of the only scalar it depends on, where it fails and where it holds.

    None where it is more than a comparison of a scalar with a number. The number belongs to both sides.
    """
    if condition.kind != "elementwise" or condition.name not in SIDES:
        return None
    ends = [_number(item) for item in condition.inputs]
    symbols = [unmoved(item).symbol for item in condition.inputs]
    side = 0 if ends[0] is None else 1
    symbol, size = symbols[side], ends[1 - side]
    if symbol is None or symbol.size != 1 or size is None:
        return None
    ranges = {"below": (-np.inf, size[1]), "above": (size[0], np.inf), "at": size, "anywhere": (-np.inf, np.inf)}
    fails, holds = SIDES[condition.name]
    if side == 1:
        fails, holds = (OPPOSITE.get(item, item) for item in (fails, holds))
    return symbol, (ranges[fails], ranges[holds])


SIDES = {
    "LT": ("above", "below"),
    "LE": ("above", "below"),
    "GT": ("below", "above"),
    "GE": ("below", "above"),
    "EQ": ("anywhere", "at"),
    "NEQ": ("at", "anywhere"),
}
"""Where the left side of a comparison is where it fails, and where it holds."""
OPPOSITE = {"above": "below", "below": "above"}


def _number(expression: Expression) -> Ends | None:
    """Enclose what depends on no symbol, in one interval; None for anything else."""
    if expression.symbols:
        return None
    nowhere = np.zeros((1, 0))
    found = Tape([expression]).values(nowhere, nowhere)[expression]
    if found.flags.any() or np.ptp(found.low) or np.ptp(found.high):
        return None
    return float(found.low.flat[0]), float(found.high.flat[0])


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


__all__ = ["Choice", "Enclosure", "Enclosures", "Objective", "limits", "midpoints", "with_decisions"]
