"""By how much expressions differ between two places of the parameter space, enclosed by interval arithmetic.

Sums of one expression over rows and places of the parameter space, with signs: differences of differences.

The expression is laid out once. Its values for two rows at two places are those on four boxes of its own scalars, so
that all of them are enclosed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from pytensor.scalar.basic import Invert

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import chain_rule, rules
from pymc_dp.intervals.expression import Expression, Symbol, elementwise, in_order, replaced
from pymc_dp.intervals.interval import NAN, Interval, add, quiet
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.enclosures import Enclosure, Enclosures
from pymc_dp.proofs.meeting_points import roles
from pymc_dp.proofs.meeting_ranges import Enclosed

MOST_UNITS = 6
"""Entries of meetings whose slopes are followed one by one."""
TOGETHER = -1
"""Key of what changes by known numbers."""
Ways = dict[int, Interval]
"""Change of a node: a known part, and slopes by entry of the meetings, whose changes are intervals."""


class Changes:
    """Expressions laid out for two places at once.

    The slopes of a rule hold every difference quotient between points of a box at which the function is finite, so that
    the change of a node lies in the sum of slopes times changes of its inputs: no path between the places is needed.
    The change of a meeting is an interval, whose sign two terms share: its slope is followed, and multiplied last.

    Parameters
    ----------
    ends : sequence of Expression

    Attributes
    ----------
    symbols : tuple of Symbol
    """

    def __init__(self, ends: Sequence[Expression]) -> None:
        self.ends = tuple(ends)
        self._nodes, self._moving = in_order(ends), _values_of(ends)
        self.symbols = tuple(node.symbol for node in self._nodes if node.symbol is not None)
        met = [symbol for symbol in self.symbols if symbol.role in ("joint", "public joint")]
        starts = np.cumsum([0, *(symbol.size for symbol in met)])
        self._units = dict(zip(met, map(int, starts), strict=False)) if starts[-1] <= MOST_UNITS else {}
        self._held: dict[Expression, Interval] = {}
        self.hold({})

    def hold(self, given: Mapping[Symbol, Enclosed]) -> None:
        """Remember what depends on none but these symbols, which are from now on always the same."""
        with np.errstate(all="ignore"):
            for node in self._nodes:
                if node.symbols <= given.keys():
                    self._held[node] = _value(node, self._held, given)

    def between(self, given: Mapping[Symbol, Enclosed]) -> list[Enclosed]:
        """Enclose the ends, given the symbols: intervals with a leading axis of boxes, of one length or of length 1."""
        known, changes = self._nodes_between(given)
        return [Enclosed(known[end], self._summed(end, known, changes, given)) for end in self.ends]

    def _summed(
        self,
        node: Expression,
        known: Mapping[Expression, Interval],
        changes: Mapping[Expression, Ways],
        given: Mapping[Symbol, Enclosed],
    ) -> Interval:
        """Multiply slopes by changes of the meetings."""
        ways, axes = changes[node], (None,) * (len(known[node].shape) - 1)
        parts = [ways[TOGETHER]] if TOGETHER in ways else []
        for symbol, start in self._units.items():
            for entry, place in enumerate(np.ndindex(symbol.shape)):
                if start + entry in ways:
                    parts.append(
                        ways[start + entry] * given[symbol].change[(slice(None), *place)][(slice(None), *axes)]
                    )
        return sum(parts[1:], parts[0]) if parts else chain_rule.still(known[node])

    def obstacle(self, given: Mapping[Symbol, Enclosed]) -> Expression | None:
        """Return the first node that may be undefined, or whose change has no bound."""
        known, changes = self._nodes_between(given)
        for node in self._moving:
            if node.inputs and ((known[node].flags > 0).any() or any(map(_wide, changes[node].values()))):
                return node
        return None

    def settled(self, given: Mapping[Symbol, Enclosed]) -> tuple[Expression, list[Expression]]:
        """Return the only end without the switches on parameters that are decided, and the conditions that hold then.

        Beyond them nothing is claimed; a sum is then a sum of its terms, which a switch around it would hide.
        """
        (end,), conditions = self.ends, list[Expression]()
        known, _ = self._nodes_between(given)
        for node in reversed(self._moving):  # the outer ones first: what is inside of them stays what it is
            if node.kind != "switch" or not OF_PARAMETERS & roles(node.inputs[0]):
                continue
            condition, yes, no = node.inputs
            found = known[condition]
            if found.low.min() == found.high.max() and not found.flags.any():
                holds = bool(found.low.min())
                end = replaced(end, node, yes if holds else no)
                conditions.append(condition if holds else elementwise("Invert", rules.RULES[Invert], [condition]))
        return end, conditions

    def _nodes_between(
        self, given: Mapping[Symbol, Enclosed]
    ) -> tuple[dict[Expression, Interval], dict[Expression, Ways]]:
        """Enclose every node, and the change of those whose change matters."""
        known, changes = dict(self._held), dict[Expression, Ways]()
        with np.errstate(all="ignore"):
            for node in self._nodes:
                if node not in known:
                    known[node] = _value(node, known, given)
            for node in self._moving:
                changes[node] = (
                    _change(node, known, [changes.get(item, {}) for item in node.inputs])
                    if node.symbol is None
                    else self._started(node.symbol, given[node.symbol].change)
                )
        return known, changes

    def _started(self, symbol: Symbol, change: Interval) -> Ways:
        """A unit for every entry of a meeting, else the change itself."""
        if not (change.low.any() or change.high.any() or change.flags.any()):
            return {}
        if symbol not in self._units:
            return {TOGETHER: change}
        units = np.eye(symbol.size).reshape(symbol.size, 1, *symbol.shape)
        return {self._units[symbol] + entry: Interval.point(unit) for entry, unit in enumerate(units)}


def _value(node: Expression, known: Mapping[Expression, Interval], given: Mapping[Symbol, Enclosed]) -> Interval:
    inputs = [known[item] for item in node.inputs]
    if node.symbol is not None:
        return given[node.symbol].value
    if node.constant is not None:
        return Interval.point(np.asarray(node.constant, dtype=np.float64)[None])
    if node.rule is not None:
        return node.rule.value(*inputs)
    if node.move is not None:
        return chain_rule.rearranged(node.move, inputs)
    return chain_rule.with_conditions(inputs) if node.reduce is None else node.reduce(*inputs)


def _change(node: Expression, known: Mapping[Expression, Interval], given: Sequence[Ways]) -> Ways:
    """Enclose the change of a node, given those of its inputs."""
    keys = sorted(set().union(*given)) if given else []
    if not keys:
        return {}
    inputs, output = tuple(known[item] for item in node.inputs), known[node]
    ways = {key: [one.get(key) for one in given] for key in keys}
    if node.kind == "switch":
        meets = node.name != "Switch"
        return {
            key: chain_rule.switched(inputs[0], output, [None if meets else way[0], *way[1:]])
            for key, way in ways.items()
        }
    if node.rule is not None:
        partials = node.rule.partials(inputs, output)
        return {key: chain_rule.chained(partials, way) for key, way in ways.items()}
    if node.move is not None:
        return {key: chain_rule.moved_slopes(node.move, inputs, way) for key, way in ways.items()}
    if node.slopes is not None:
        return {key: node.slopes(inputs[0], output, one) for key, one in given[0].items()}
    return dict(given[0])


def _wide(change: Interval) -> bool:
    return bool(((change.flags & NAN) > 0).any() or np.isinf(change.low).any() or np.isinf(change.high).any())


def _values_of(ends: Sequence[Expression]) -> list[Expression]:
    """Nodes that make up the values of `ends`: not those that only say where these are defined."""
    order, wanted = in_order(ends), set(ends)
    for node in reversed(order):
        if node in wanted:
            wanted |= set(node.inputs[:1] if node.kind == "checked" else node.inputs)
    return [node for node in order if node in wanted]


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


__all__ = ["Changes", "Corner", "Corners", "Scalar"]
