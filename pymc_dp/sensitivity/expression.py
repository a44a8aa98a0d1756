"""Expressions over bounded scalars, evaluated with their slopes on many boxes at once.

A box gives every scalar an interval. What an expression may be on a box is enclosed by interval arithmetic, and so are
its partial derivatives, by the chain rule in forward mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity.intervals import NAN, Interval, Rule, unknown

ArrayMap = Callable[..., Array]


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
        ``"row"`` (private values of a row), ``"public"`` (public values of a row), ``"parameter"``, ``"joint"`` (hangs
        on private values and on parameters) or ``"public joint"``.
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
) -> Expression:
    """Return a function of whole axes: `slopes(input, output, slope of input)` is the chain rule of it."""
    return Expression("reduced", name, (given,), given.symbols, reduce=reduce, slopes=slopes)


def checked(value: Expression, conditions: Sequence[Expression]) -> Expression:
    """Return `value`, which is defined only where all conditions hold."""
    return Expression("checked", "Check", (value, *conditions), _union([value, *conditions]))


def _union(inputs: Iterable[Expression]) -> frozenset[Symbol]:
    return frozenset().union(*(item.symbols for item in inputs))


def substituted(expression: Expression, copies: Mapping[Symbol, Symbol]) -> Expression:
    """Return an expression of other symbols; what hangs on none of those replaced is shared."""
    memo: dict[Expression, Expression] = {}
    for node in in_order([expression]):
        used = tuple(sorted(((s, copies[s]) for s in node.symbols if s in copies), key=lambda pair: id(pair[0])))
        if not used:
            memo[node] = node
        elif used in node._copies:
            memo[node] = node._copies[used]
        else:
            inputs = tuple(memo[item] for item in node.inputs)
            fresh = leaf(copies[node.symbol]) if node.symbol is not None else _with(node, inputs)
            memo[node] = node._copies[used] = fresh
    return memo[expression]


def _with(node: Expression, inputs: tuple[Expression, ...]) -> Expression:
    return Expression(
        node.kind, node.name, inputs, _union(inputs), node.rule, node.move, node.reduce, node.slopes, None, None
    )


def replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return an expression with one of its nodes replaced by another expression."""
    memo = {old: new}
    for node in in_order([expression]):
        if node in memo:
            continue
        inputs = tuple(memo[item] for item in node.inputs)
        same = all(one is two for one, two in zip(inputs, node.inputs, strict=True))
        memo[node] = node if same else _with(node, inputs)
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
        self._constants = {node: _constant_interval(node) for node in self.nodes if node.kind == "constant"}

    def owner(self, scalar: int) -> tuple[Symbol, int]:
        """Return which symbol a scalar belongs to, and its place in it."""
        for symbol, (start, size) in self.places.items():
            if start <= scalar < start + size:
                return symbol, scalar - start
        raise IndexError(scalar)

    def values(self, low: Array, high: Array) -> dict[Expression, Interval]:
        """Enclose every node on boxes: (n_boxes, n_scalars) arrays of ends."""
        known: dict[Expression, Interval] = dict(self._constants)
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
        flat = [{place: self._flat(one, len(low)) for place, one in slopes[end].items()} for end in self.ends]
        return values, flat

    def _flat(self, interval: Interval, count: int) -> Interval:
        ends = [np.broadcast_to(item.reshape(item.shape[0], -1)[:, 0], (count,)) for item in _arrays(interval)]
        return Interval(*ends)

    def _value(self, node: Expression, known: Mapping[Expression, Interval], low: Array, high: Array) -> Interval:
        inputs = [known[item] for item in node.inputs]
        if node.symbol is not None:
            start, size = self.places[node.symbol]
            shape = (len(low), *node.symbol.shape)
            return Interval.of(
                low[:, start : start + size].reshape(shape), high[:, start : start + size].reshape(shape)
            )
        if node.kind in ("elementwise", "switch"):
            assert node.rule is not None
            return node.rule.value(*inputs)
        if node.kind == "moved":
            return _moved(node, inputs)
        if node.kind == "reduced":
            assert node.reduce is not None
            return node.reduce(inputs[0])
        return _with_conditions(inputs)

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
        if node.kind == "switch":
            jumps = given[0] if node.name == "Switch" else {}
            ways = {place: [jumps.get(place), *(one.get(place) for one in given[1:])] for place in places}
            return {place: _switched(inputs, output, way) for place, way in ways.items()}
        if node.kind == "elementwise":
            assert node.rule is not None
            partials = node.rule.partials(inputs, output)
            return {place: _chained(partials, [one.get(place) for one in given]) for place in places}
        if node.kind == "moved":
            return {place: _moved(node, _or_zero(inputs, [one.get(place) for one in given])) for place in places}
        if node.kind == "reduced":
            assert node.slopes is not None
            return {place: node.slopes(inputs[0], output, given[0][place]) for place in places}
        return given[0]

    def _unit_slopes(self, symbol: Symbol) -> dict[int, Interval]:
        start, size = self.places[symbol]
        units = np.eye(size).reshape(size, 1, *symbol.shape)
        return {start + place: Interval.point(units[place]) for place in range(size)}


def _arrays(interval: Interval) -> tuple[Array, Array, Array]:
    return interval.low, interval.high, interval.flags


def _constant_interval(node: Expression) -> Interval:
    assert node.constant is not None
    value = np.asarray(node.constant, dtype=np.float64)
    return Interval.point(value[None])


def _moved(node: Expression, inputs: Sequence[Interval]) -> Interval:
    assert node.move is not None
    return Interval(*(node.move(*items) for items in zip(*(_arrays(one) for one in inputs), strict=True)))


def _with_conditions(inputs: Sequence[Interval]) -> Interval:
    """Mark as undefined where a condition may fail."""
    value = inputs[0]
    fails = np.zeros(value.shape[0], dtype=bool)
    for condition in inputs[1:]:
        failing = (condition.low < 1) | ((condition.flags & NAN) > 0)
        fails = fails | failing.reshape(failing.shape[0], -1).any(axis=1)
    count = max(value.shape[0], len(fails))
    value = value.broadcast_to((count, *value.shape[1:]))
    marks = np.broadcast_to(fails, (count,)).reshape(-1, *(1,) * (len(value.shape) - 1))
    return Interval(value.low, value.high, value.flags | np.where(marks, NAN, 0).astype(np.uint8))


def _chained(partials: Sequence[Interval], slopes: Sequence[Interval | None]) -> Interval:
    """Chain rule; 0 times anything unbounded is 0."""
    parts = [partial * slope for partial, slope in zip(partials, slopes, strict=True) if slope is not None]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _switched(inputs: Sequence[Interval], output: Interval, slopes: Sequence[Interval | None]) -> Interval:
    """Slope along one scalar: of the branch taken, else of either, else unknown: the condition itself may jump."""
    condition, zero = inputs[0], Interval.point(np.zeros((1,) * len(output.shape)))
    yes, no = (slope if slope is not None else zero for slope in slopes[1:])
    shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
    condition, yes, no = (item.broadcast_to(shape) for item in (condition, yes, no))
    undecided = (condition.low != condition.high) | ((condition.flags & NAN) > 0)
    either = yes.hull(no) if slopes[0] is None else unknown(shape)
    taken = condition.low != 0
    picked = (
        np.where(undecided, one, np.where(taken, first, second))
        for one, first, second in zip(_arrays(either), _arrays(yes), _arrays(no), strict=True)
    )
    return Interval(*picked)


def _or_zero(inputs: Sequence[Interval], slopes: Sequence[Interval | None]) -> list[Interval]:
    return [
        Interval.point(np.zeros((1, *given.shape[1:])))
        if slope is None
        else slope.broadcast_to((slope.shape[0], *given.shape[1:]))
        for given, slope in zip(inputs, slopes, strict=True)
    ]


__all__ = [
    "Expression",
    "Symbol",
    "Tape",
    "UnknownOperation",
    "checked",
    "constant",
    "elementwise",
    "in_order",
    "leaf",
    "moved",
    "reduced",
    "replaced",
    "substituted",
    "switch",
]
