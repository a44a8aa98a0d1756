"""The derivative of an expression by one of its scalars, as an expression: bounded by search where slopes are not.

Boxes of a branch and bound, and how they are cut in two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.scalar.basic import Add, Exp, Mul, Neg, Reciprocal, Sqr, TrueDiv

from pymc_dp.intervals.expression import Expression, Symbol, Tape, constant, elementwise, in_order, moved, switch
from pymc_dp.intervals.interval import Array, Interval, Rule, unknown
from pymc_dp.intervals.rules import RULES

Shape = tuple[int, ...]
Derivatives = Mapping[Expression, Expression]


def derivative(expression: Expression, symbol: Symbol) -> Expression | None:
    """Return ∂ expression / ∂ symbol, a function of the same symbols; None where it is not found.

    Parameters
    ----------
    expression : Expression
        A scalar.
    symbol : Symbol
        Of size 1.

    Notes
    -----
    It is the derivative wherever the expression has one. Where the expression jumps or has a kink it may be that of
    either side: whoever integrates it must know that the expression is continuous, which finite slopes on boxes show
    (`slopes.steepest`). The operations below have derivatives by calculus, as expressions whose own slopes are known;
    any other elementwise one by the slopes of its rule.
    """
    if symbol.size != 1 or symbol not in expression.symbols:
        return None
    tape = Tape([expression])
    known = tape.values(tape.low[None], tape.high[None])
    found: dict[Expression, Expression] = {}
    for node in in_order([expression]):
        if symbol in node.symbols:
            one = _of(node, symbol, found, known[node].shape[1:])
            if one is None:
                return None
            found[node] = one
    return found[expression]


def _of(node: Expression, symbol: Symbol, found: Derivatives, shape: Shape) -> Expression | None:
    if node.symbol is not None:
        return constant(np.ones(symbol.shape))
    match node.kind:
        case "elementwise":
            return _filled(_chained(node, found, len(shape)), shape)
        case "switch":
            assert node.rule is not None
            branches = [_filled(found.get(item, _zero(shape)), shape) for item in node.inputs[1:]]
            return switch(node.rule, [node.inputs[0], *branches])
        case "moved" if len(node.inputs) == 1:
            assert node.move is not None
            return moved(node.name, node.move, [found[node.inputs[0]]])
        case "reduced" if node.name == "Sum":
            (given,) = node.inputs
            slopes = found[given]
            return Expression("reduced", "Sum", (slopes,), slopes.symbols, reduce=node.reduce, slopes=node.slopes)
        case "checked":
            return found.get(node.inputs[0], _zero(shape))
    return None


def _chained(node: Expression, found: Derivatives, axes: int) -> Expression:
    """Add up partial derivatives times those of the inputs."""
    terms = []
    for place, item in enumerate(node.inputs):
        if item in found:
            rule = PARTIALS.get(node.name)
            partial = _by_rule(node, place) if rule is None else rule(node.inputs, place, axes)
            terms.append(_product(partial, found[item]))
    return terms[0] if len(terms) == 1 else elementwise("Add", RULES[Add], terms)


def _by_rule(node: Expression, place: int) -> Expression:
    """A partial derivative as the rule of an operation encloses it; its own slopes are unknown."""
    rule = node.rule
    assert rule is not None

    def value(*inputs: Interval) -> Interval:
        return rule.partials(inputs, rule.value(*inputs))[place]

    def partials(inputs: tuple[Interval, ...], out: Interval) -> tuple[Interval, ...]:
        return tuple(unknown(out.shape) for _ in inputs)

    return elementwise(f"slope of {node.name}", Rule(value, partials), list(node.inputs))


def _product(one: Expression, two: Expression) -> Expression:
    """Return a product, without factors of one."""
    for first, second in ((one, two), (two, one)):
        if first.constant is not None and (first.constant == 1).all():
            return second
    return elementwise("Mul", RULES[Mul], [one, two])


def _number(value: float, axes: int) -> Expression:
    """Return a number with as many axes as what it stands beside."""
    return constant(np.full((1,) * axes, value))


def _of_product(inputs: Sequence[Expression], place: int, axes: int) -> Expression:
    others = [item for at, item in enumerate(inputs) if at != place]
    return others[0] if len(others) == 1 else elementwise("Mul", RULES[Mul], others)


def _of_quotient(inputs: Sequence[Expression], place: int, axes: int) -> Expression:
    above, below = inputs
    if place == 0:
        return elementwise("Reciprocal", RULES[Reciprocal], [below])
    square = elementwise("Sqr", RULES[Sqr], [below])
    return elementwise("Neg", RULES[Neg], [elementwise("TrueDiv", RULES[TrueDiv], [above, square])])


def _of_reciprocal(inputs: Sequence[Expression], place: int, axes: int) -> Expression:
    return _of_quotient([_number(1.0, axes), inputs[0]], 1, axes)


def _of_square(inputs: Sequence[Expression], place: int, axes: int) -> Expression:
    return elementwise("Mul", RULES[Mul], [_number(2.0, axes), inputs[0]])


PARTIALS: dict[str, Callable[[Sequence[Expression], int, int], Expression]] = {
    "Add": lambda inputs, place, axes: _number(1.0, axes),
    "Sub": lambda inputs, place, axes: _number((1.0, -1.0)[place], axes),
    "Neg": lambda inputs, place, axes: _number(-1.0, axes),
    "Mul": _of_product,
    "TrueDiv": _of_quotient,
    "Reciprocal": _of_reciprocal,
    "Sqr": _of_square,
    "Exp": lambda inputs, place, axes: elementwise("Exp", RULES[Exp], list(inputs)),
    "Log1p": lambda inputs, place, axes: elementwise(
        "Reciprocal", RULES[Reciprocal], [elementwise("Add", RULES[Add], [_number(1.0, axes), *inputs])]
    ),
    "Log": lambda inputs, place, axes: elementwise("Reciprocal", RULES[Reciprocal], list(inputs)),
}
"""Partial derivative by the input at a place, of operations whose derivative is an operation."""


def _zero(shape: Shape) -> Expression:
    return constant(np.zeros(shape))


def _filled(given: Expression, shape: Shape) -> Expression:
    """Give a derivative the shape of what it is one of."""
    return moved("Filled", lambda array: np.broadcast_to(array, (array.shape[0], *shape)), [given])


@dataclass
class Boxes:
    """Boxes with their bounds, how much each scalar may still change the value, and where to look for a large one."""

    low: Array
    high: Array
    upper: Array
    effect: Array
    centre: Array

    def take(self, places: Array) -> Boxes:
        """Return some of them."""
        return Boxes(*(part[places] for part in vars(self).values()))

    def joined(self, other: Boxes) -> Boxes:
        """Return these and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


def halves(low: Array, high: Array, effect: Array, integer: Array) -> tuple[Array, Array, Array]:
    """Cut boxes in two along the scalar of the largest effect, one pair after the other; tell which cannot be cut.

    Parameters
    ----------
    low, high, effect : (n_boxes, n_scalars) arrays
    integer : (n_scalars,) bool array
        Scalars that are cut between whole numbers.
    """
    axis = np.argmax(effect, axis=1)
    rows = np.arange(len(axis))
    left_end, right_end = low[rows, axis], high[rows, axis]
    between = middle(left_end, right_end)
    whole = integer[axis]
    left = np.where(whole, np.floor(between), between)
    right = np.where(whole, left + 1, between)
    stuck = (effect[rows, axis] <= 0) | (~whole & ((between <= left_end) | (between >= right_end)))
    stuck |= left_end >= right_end
    kept = ~stuck
    lows, highs = low[kept].repeat(2, axis=0), high[kept].repeat(2, axis=0)
    pairs = np.arange(kept.sum()) * 2
    highs[pairs, axis[kept]] = left[kept]
    lows[pairs + 1, axis[kept]] = right[kept]
    return lows, highs, stuck


def middle(low: Array, high: Array) -> Array:
    """Halve an interval; by ratios where it spans several, and away from infinite ends."""
    with np.errstate(all="ignore"):
        plain = low / 2 + high / 2
        ratio = np.where(low > 0, np.sqrt(low) * np.sqrt(high), -np.sqrt(-low) * np.sqrt(-high))
        wide = ((low > 0) & (high > 8 * low)) | ((high < 0) & (low < 8 * high))
        above = np.where(low < 0, 0.0, np.maximum(2 * low, 1.0))
        below = np.where(high > 0, 0.0, np.minimum(2 * high, -1.0))
    found = np.where(wide & np.isfinite(ratio), ratio, plain)
    found = np.where(np.isinf(high) & np.isfinite(low), np.where(low < 0, 0.0, above), found)
    found = np.where(np.isinf(low) & np.isfinite(high), np.where(high > 0, 0.0, below), found)
    return np.where(np.isinf(low) & np.isinf(high), 0.0, found)


__all__ = ["Boxes", "derivative", "halves", "middle"]
