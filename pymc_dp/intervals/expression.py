"""Expressions over bounded scalars, evaluated with their slopes on many boxes at once.

A box gives every scalar an interval. What an expression may be on a box is enclosed by interval arithmetic, and so are
its partial derivatives, by the chain rule in forward mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.intervals import chain_rule
from pymc_dp.intervals.chain_rule import ArrayMap
from pymc_dp.intervals.interval import Array, Interval, Rule


class UnknownOperation(PrivacyError):
    """An operation without a rule: its name is the message."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Symbol:
    """A variable of an expression: an array of scalars with bounds.

    Attributes
    ----------
    name : str
    low, high : arrays of one shape
        Public bounds of each scalar; infinite where there is none.
    integer : bool
        Whether only whole numbers occur.
    role : str
        ``"row"`` (private values of a row), ``"public"`` (public values of a row), ``"parameter"``, ``"joint"`` (it
        depends on private values and on parameters) or ``"public joint"``.
    norm : float or None
        Public bound on the Euclidean norm of the whole array.
    note : str
        What a reader should know about it: for linear predictors, how its bounds came about.
    """

    name: str
    low: Array
    high: Array
    integer: bool = False
    role: str = "parameter"
    norm: float | None = None
    note: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.low.shape

    @property
    def size(self) -> int:
        """Number of scalars."""
        return self.low.size


@dataclass(frozen=True, eq=False)
class Expression:
    """A node: what is done to what. Made by the functions below, never by hand."""

    kind: str
    name: str
    inputs: tuple[Expression, ...]
    symbols: frozenset[Symbol]
    rule: Rule | None = None
    move: ArrayMap | None = None
    reduce: Callable[[Interval], Interval] | None = None
    slopes: Callable[[Interval, Interval, Interval], Interval] | None = None
    axes: tuple[int, ...] = ()
    symbol: Symbol | None = None
    constant: Array | None = None
    _copies: dict[tuple[tuple[Symbol, Symbol], ...], Expression] = field(default_factory=dict, repr=False)


def leaf(symbol: Symbol) -> Expression:
    """Return a symbol as an expression."""
    return Expression("symbol", symbol.name, (), frozenset([symbol]), symbol=symbol)


def constant(value: Array) -> Expression:
    """Return known numbers as an expression."""
    return Expression("constant", "constant", (), frozenset(), constant=np.asarray(value))


def elementwise(name: str, rule: Rule, inputs: Sequence[Expression]) -> Expression:
    """Return an elementwise function of expressions, whose shapes broadcast."""
    return Expression("elementwise", name, tuple(inputs), _union(inputs), rule=rule)


def switch(rule: Rule, inputs: Sequence[Expression], *, name: str = "Switch") -> Expression:
    """Return ``inputs[1]`` where ``inputs[0]``, else ``inputs[2]``; any other `name` says that the branches meet."""
    return Expression("switch", name, tuple(inputs), _union(inputs), rule=rule)


def moved(name: str, move: ArrayMap, inputs: Sequence[Expression]) -> Expression:
    """Return entries of expressions in another order or shape: `move` acts on arrays with a leading axis of boxes."""
    known = [item.constant for item in inputs]
    if all(item is not None for item in known):
        return constant(move(*(np.asarray(item)[None] for item in known))[0])
    return Expression("moved", name, tuple(inputs), _union(inputs), move=move)


def reduced(
    name: str,
    reduce: Callable[[Interval], Interval],
    slopes: Callable[[Interval, Interval, Interval], Interval],
    given: Expression,
    axes: tuple[int, ...],
) -> Expression:
    """Return a function of whole axes: `slopes(input, output, slope of input)` is the chain rule of it.

    The `axes`, among which that of boxes does not count, are gone from the result, or all of them are kept.
    """
    return Expression("reduced", name, (given,), given.symbols, reduce=reduce, slopes=slopes, axes=axes)


def checked(value: Expression, conditions: Sequence[Expression]) -> Expression:
    """Return `value`, which is defined only where all conditions hold."""
    return Expression("checked", "Check", (value, *conditions), _union([value, *conditions]))


def decision(condition: Expression, choice: Expression) -> Expression:
    """Return a condition that, where it is open on a box, is what `choice` says; boxes that contradict it are empty."""
    return Expression("decision", "Decision", (condition, choice), _union([condition, choice]))


def _union(inputs: Iterable[Expression]) -> frozenset[Symbol]:
    return frozenset().union(*(item.symbols for item in inputs))


def _with(node: Expression, inputs: tuple[Expression, ...]) -> Expression:
    return Expression(
        node.kind,
        node.name,
        inputs,
        _union(inputs),
        rule=node.rule,
        move=node.move,
        reduce=node.reduce,
        slopes=node.slopes,
        axes=node.axes,
    )


def rebuilt(node: Expression, inputs: Sequence[Expression]) -> Expression:
    """Return a node with other inputs; itself where they are the same."""
    same = all(one is two for one, two in zip(inputs, node.inputs, strict=True))
    return node if same else _with(node, tuple(inputs))


def replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return an expression with one of its nodes replaced by another expression."""
    memo = {old: new}
    for node in in_order([expression]):
        if node not in memo:
            memo[node] = rebuilt(node, [memo[item] for item in node.inputs])
    return memo[expression]


def in_order(ends: Sequence[Expression]) -> list[Expression]:
    """Return all nodes below `ends`, inputs before what uses them."""
    order: dict[Expression, None] = {}
    stack = [(end, False) for end in reversed(ends)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack.extend((item, False) for item in node.inputs if item not in order)
    return list(order)


class Tape:
    """Expressions laid out for evaluation on boxes.

    Parameters
    ----------
    ends : sequence of Expression
        Scalars.

    Attributes
    ----------
    symbols : tuple of Symbol
    low, high : (n_scalars,) arrays
        The box of all symbols.
    integer : (n_scalars,) bool array
    """

    def __init__(self, ends: Sequence[Expression]) -> None:
        self.ends = tuple(ends)
        self.nodes = in_order(ends)
        self.symbols = tuple(node.symbol for node in self.nodes if node.symbol is not None)
        starts = np.cumsum([0, *(symbol.size for symbol in self.symbols)])
        self.places = {symbol: (int(start), symbol.size) for symbol, start in zip(self.symbols, starts, strict=False)}
        self.low, self.high = (
            np.concatenate([np.zeros(0), *(getattr(symbol, end).ravel() for symbol in self.symbols)])
            for end in ("low", "high")
        )
        self.integer = np.repeat([s.integer for s in self.symbols], [s.size for s in self.symbols]).astype(bool)
        self._fixed = self._without_symbols()

    def owner(self, scalar: int) -> tuple[Symbol, int]:
        """Return which symbol a scalar belongs to, and its place in it."""
        for symbol, (start, size) in self.places.items():
            if start <= scalar < start + size:
                return symbol, scalar - start
        raise IndexError(scalar)

    def values(self, low: Array, high: Array) -> dict[Expression, Interval]:
        """Enclose every node on boxes: (n_boxes, n_scalars) arrays of ends."""
        known = dict(self._fixed)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if node not in known:
                    known[node] = self._value(node, known, low, high)
        return known

    def __call__(self, low: Array, high: Array) -> list[Interval]:
        """Enclose the ends on boxes: (n_boxes,) intervals."""
        known = self.values(low, high)
        return [self._flat(known[end], len(low)) for end in self.ends]

    def with_slopes(self, low: Array, high: Array) -> tuple[list[Interval], list[dict[int, Interval]]]:
        """Enclose the ends and their partial derivatives, by scalar, on boxes; a scalar left out has none."""
        known = self.values(low, high)
        slopes: dict[Expression, dict[int, Interval]] = {}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                slopes[node] = self._slopes(node, known, slopes)
        values = [self._flat(known[end], len(low)) for end in self.ends]
        return values, [{place: self._flat(one, len(low)) for place, one in slopes[end].items()} for end in self.ends]

    def _without_symbols(self) -> dict[Expression, Interval]:
        known: dict[Expression, Interval] = {}
        nowhere = np.zeros((1, 0))
        with np.errstate(all="ignore"):
            for node in self.nodes:
                if not node.symbols:
                    known[node] = self._value(node, known, nowhere, nowhere)
        return known

    def _flat(self, interval: Interval, count: int) -> Interval:
        ends = [np.broadcast_to(item.reshape(item.shape[0], -1)[:, 0], (count,)) for item in chain_rule.parts(interval)]
        return Interval(*ends)

    def _value(self, node: Expression, known: Mapping[Expression, Interval], low: Array, high: Array) -> Interval:
        inputs = [known[item] for item in node.inputs]
        if node.symbol is not None:
            start, size = self.places[node.symbol]
            shape = (len(low), *node.symbol.shape)
            return Interval.of(
                low[:, start : start + size].reshape(shape), high[:, start : start + size].reshape(shape)
            )
        match node.kind:
            case "constant":
                return Interval.point(np.asarray(node.constant, dtype=np.float64)[None])
            case "elementwise" | "switch":
                assert node.rule is not None
                return node.rule.value(*inputs)
            case "moved":
                assert node.move is not None
                return chain_rule.rearranged(node.move, inputs)
            case "reduced":
                assert node.reduce is not None
                return node.reduce(inputs[0])
            case "decision":
                return chain_rule.chosen(*inputs)
        return chain_rule.with_conditions(inputs)

    def _slopes(
        self, node: Expression, known: Mapping[Expression, Interval], slopes: Mapping[Expression, dict[int, Interval]]
    ) -> dict[int, Interval]:
        if node.symbol is not None:
            return self._unit_slopes(node.symbol)
        given = [slopes[item] for item in node.inputs]
        places = sorted(set().union(*given)) if given else []
        if not places:
            return {}
        inputs, output = tuple(known[item] for item in node.inputs), known[node]
        ways = {place: [one.get(place) for one in given] for place in places}
        match node.kind:
            case "elementwise":
                assert node.rule is not None
                partials = node.rule.partials(inputs, output)
                return {place: chain_rule.chained(partials, way) for place, way in ways.items()}
            case "switch":
                meets = node.name != "Switch"
                return {
                    place: chain_rule.switched(inputs[0], output, [None, *way[1:]] if meets else way)
                    for place, way in ways.items()
                }
            case "moved":
                assert node.move is not None
                return {place: chain_rule.moved_slopes(node.move, inputs, way) for place, way in ways.items()}
            case "reduced":
                assert node.slopes is not None
                return {place: node.slopes(inputs[0], output, given[0][place]) for place in places}
            case "decision":
                return {place: chain_rule.of_choice(inputs, one) for place, one in given[1].items()}
        return given[0]

    def _unit_slopes(self, symbol: Symbol) -> dict[int, Interval]:
        start, size = self.places[symbol]
        units = np.eye(size).reshape(size, 1, *symbol.shape)
        return {start + place: Interval.point(units[place]) for place in range(size)}


__all__ = [
    "Expression",
    "Symbol",
    "Tape",
    "UnknownOperation",
    "checked",
    "constant",
    "decision",
    "elementwise",
    "in_order",
    "leaf",
    "moved",
    "rebuilt",
    "reduced",
    "replaced",
    "switch",
]
