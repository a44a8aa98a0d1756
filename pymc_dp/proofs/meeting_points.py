"""Where a row and the parameters meet in one number: linear predictors, and elements chosen by an index.

Only the number matters to the likelihood, so it becomes a symbol of its own, with the range that the two sides allow it
(for a linear predictor |x·b| <= ‖x‖ ‖b‖). What it depends on is forgotten, which can only widen a bound; but the search
has one scalar instead of two vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.scalar.basic import Mul

from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import rules
from pymc_dp.intervals.expression import Expression, Symbol, Tape, UnknownOperation, elementwise, leaf, moved
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.intervals.reductions import reduction_of

ROUNDING, UNDERFLOW = 1 + 1e-12, 1e-307
OF_ROWS = ("row", "public")
OF_PLACES = {"parameter", "joint", "public joint"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """Parameters that meet a row.

    Attributes
    ----------
    parameter : Expression
    radius : float
        Largest Euclidean norm of the derivative of one entry of the meeting by `parameter`: that of the covariates, or
        1 for an element chosen.
    disjoint : bool
        Whether no parameter is behind two entries of the meeting.
    linear : bool
        Whether the covariates multiply `parameter`; else one of its elements is chosen.
    """

    parameter: Expression
    radius: float
    disjoint: bool = False
    linear: bool = True

    @property
    def symbol(self) -> Symbol | None:
        """The parameters' symbol, where they are nothing but its entries, each at most once."""
        return once(self.parameter)


@dataclass(frozen=True, kw_only=True, eq=False)
class Meeting(Symbol):
    """A symbol that stands for a row and parameters meeting.

    Attributes
    ----------
    sides : tuple of Side
        The parameters' sides; several for a sum, as of an intercept and a linear predictor.
    of_row : tuple of Expression
        The row's side.
    linear : bool
        Whether it is a sum of products of both sides; else an element chosen by an index.
    """

    sides: tuple[Side, ...]
    of_row: tuple[Expression, ...]
    linear: bool

    @property
    def met(self) -> frozenset[Symbol]:
        """The symbols of both sides."""
        sides = *self.of_row, *(side.parameter for side in self.sides)
        return frozenset().union(*(item.symbols for item in sides))


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen(Symbol):
    """A symbol that stands for an element of a row or of public numbers, chosen by the row.

    Attributes
    ----------
    behind : frozenset of Symbol
        What it depends on.
    """

    behind: frozenset[Symbol]


def columns_behind(symbol: Symbol) -> frozenset[Symbol]:
    """Return the symbols of a row that a symbol stands for, itself where it stands for no other.

    Among what an index chooses from, the row may be found too.
    """
    inner: frozenset[Symbol] = frozenset()
    if isinstance(symbol, Meeting):
        inner = symbol.met
    elif isinstance(symbol, Chosen):
        inner = symbol.behind
    else:
        return frozenset([symbol] * (symbol.role in OF_ROWS))
    return frozenset().union(*map(columns_behind, inner))


def roles(expression: Expression) -> set[str]:
    """Return the roles of all symbols of an expression."""
    return {symbol.role for symbol in expression.symbols}


def _of_rows(expression: Expression) -> bool:
    return bool(expression.symbols) and roles(expression) <= set(OF_ROWS)


def of_parameters(expression: Expression) -> bool:
    """Whether an expression depends on parameters, and on nothing else."""
    return bool(expression.symbols) and roles(expression) == {"parameter"}


def _enclosed(expression: Expression) -> Interval:
    """Return the interval of an expression, of one box: all that its symbols may be."""
    tape = Tape([expression])
    return tape.values(tape.low[None], tape.high[None])[expression]


def hull(expression: Expression) -> tuple[Array, Array]:
    """Enclose an expression over all that its symbols may be."""
    found = _enclosed(expression)
    low, high = np.where(found.flags & 1, -np.inf, found.low)[0], np.where(found.flags & 1, np.inf, found.high)[0]
    return low, high


def _of_numbers(*sides: Expression) -> None:
    """Refuse what may be no number: a symbol that stands for it would hide where the density is none."""
    for side in sides:
        if (_enclosed(side).flags & NAN).any():
            names = ", ".join(sorted(repr(symbol.name) for symbol in side.symbols))
            raise UnknownOperation(f"an element of, or a product with, what may be NaN within the ranges of {names}")


def _role(of_row: Sequence[Expression]) -> str:
    return "joint" if any({"row", "joint"} & roles(item) for item in of_row) else "public joint"


def gathered(
    base: Expression, indices: Sequence[Expression], axes: Sequence[int], shape: tuple[int, ...]
) -> Expression:
    """Return an element (or a slice) of `base` chosen by an index that depends on the row."""
    if any(OF_PLACES & roles(item) for item in indices):
        raise UnknownOperation("an index that depends on a parameter")
    _of_numbers(base)
    low, high = hull(base)
    leading = tuple(axes) == tuple(range(len(axes)))  # else the axes of the result come in an order of their own
    over = tuple(axes) if leading else None
    least, most = low.min(axis=over, initial=np.inf), high.max(axis=over, initial=-np.inf)
    least, most = _spread(least, shape, least.min(initial=np.inf)), _spread(most, shape, most.max(initial=-np.inf))
    if not base.symbols or _of_rows(base):
        role = (
            "row" if any("row" in roles(item) for item in [*indices, *([base] if base.symbols else [])]) else "public"
        )
        behind = base.symbols.union(*(item.symbols for item in indices))
        name = "an element chosen by the row"
        return leaf(Chosen(name=name, low=least, high=most, role=role, behind=behind))
    return leaf(
        Meeting(
            name=" or ".join(sorted({f"one of {symbol.name}" for symbol in base.symbols})),
            low=least,
            high=most,
            role=_role([*indices, base]),
            sides=(Side(parameter=base, radius=1.0, disjoint=_single(indices), linear=False),),
            of_row=tuple(indices),
            linear=False,
            note="an element chosen by the row",
        )
    )


def _single(indices: Sequence[Expression]) -> bool:
    return len(indices) == 1 and np.size(hull(indices[0])[0]) == 1


def _spread(item: Array, shape: tuple[int, ...], whole: float) -> Array:
    """Bring bounds without the indexed axes to the shape of the result; where that is not plain, one bound for all."""
    fitted = item.reshape(*(1,) * (len(shape) - item.ndim), *item.shape) if item.ndim <= len(shape) else item
    try:
        return np.broadcast_to(fitted, shape).copy()
    except ValueError:
        return np.full(shape, whole)


def contracted(first: Expression, second: Expression, one: tuple[Any, ...], two: tuple[Any, ...]) -> Expression:
    """Return a product of matrices or vectors: a cut where one side is the row's and the other the parameters'."""
    pair = (first, second)
    length = one[-1]
    if length != 1 and ((_of_rows(first) and of_parameters(second)) or (of_parameters(first) and _of_rows(second))):
        return _predictor(pair, lambda a, b: _matmul(a, b, len(one), len(two)))
    left = moved("Columns", lambda array: _left(array, len(one), len(two)), [first])
    right = moved("Rows", lambda array: _right(array, len(one), len(two)), [second])
    product = elementwise("Mul", rules.RULES[Mul], [left, right])
    return reduction_of("Sum", (-1,), product)


def _left(array: Array, one: int, two: int) -> Array:
    """(..., n, k) to (..., n, 1, k); a vector (k,) to (1, k), or (k,) where the other side is a vector too."""
    return array if two == 1 else array[..., None, :]


def _right(array: Array, one: int, two: int) -> Array:
    """(..., k, m) to (..., 1, m, k); the axis of length one only where the other side has rows."""
    if two == 1:
        return array if one == 1 else array[:, None, :]
    turned = np.swapaxes(array, -1, -2)
    return turned if one == 1 else turned[..., None, :, :]


def _matmul(a: Array, b: Array, one: int, two: int) -> tuple[Array, Array]:
    """Factors whose product, summed over the last axis, is the matrix product."""
    return _left(a[None], one, two)[0], _right(b[None], one, two)[0]


def _predictor(pair: tuple[Expression, Expression], align: Any) -> Expression:
    """Bound sums of products of a row and parameters: entry by entry, and by norms."""
    _of_numbers(*pair)
    ends = [hull(side) for side in pair]
    lows = align(ends[0][0], ends[1][0])
    highs = align(ends[0][1], ends[1][1])
    one, two = (Interval.of(low, high) for low, high in zip(lows, highs, strict=True))
    with np.errstate(all="ignore"):
        summed = rules.total(one * two, (-1,))
        sizes = [length(np.maximum(abs(item.low), abs(item.high))) for item in (one, two)]
        row = 0 if _of_rows(pair[0]) else 1
        sizes = [np.minimum(size, _norm(side)) for size, side in zip(sizes, pair, strict=True)]
        product = sizes[0] * sizes[1] * ROUNDING + UNDERFLOW
    product = np.where(np.isnan(product), 0.0, product)
    low, high = np.maximum(summed.low, -product), np.minimum(summed.high, product)
    row_side, side = pair[row], pair[1 - row]
    names = "·".join(",".join(sorted(symbol.name for symbol in item.symbols)) for item in (row_side, side))
    return leaf(
        Meeting(
            name=names,
            low=low,
            high=high,
            role=_role([row_side]),
            sides=(
                Side(
                    parameter=side,
                    radius=float(np.max(sizes[row])) * ROUNDING,
                    disjoint=bool(np.prod(lows[row].shape[:-1]) == 1),
                ),
            ),
            of_row=(row_side,),
            linear=True,
            note="linear predictor, |η| <= ‖x‖ ‖β‖",
        )
    )


def length(values: Array) -> Array:
    """Return the Euclidean norm along the last axis, of which no square is rounded to 0 or to infinity."""
    largest = np.max(values, axis=-1, initial=0.0)
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return scale * np.sqrt(((values / scale[..., None]) ** 2).sum(axis=-1))


def _norm(side: Expression) -> float:
    """Public bound on the Euclidean norm of all entries of a side, where the domain, or the prior, gives one."""
    return getattr(once(side), "norm", None) or np.inf


def longest(side: Expression) -> float:
    """Return the largest Euclidean norm of all entries of the parameters' side."""
    low, high = hull(side)
    return min(float(length(np.maximum(abs(low), abs(high)).ravel())), _norm(side)) * ROUNDING


def once(expression: Expression) -> Symbol | None:
    """Return the symbol whose entries an expression is, in any order and shape, each at most once; else None."""
    moves, inner = [], expression
    while inner.kind == "moved" and len(inner.inputs) == 1 and inner.move is not None:
        moves.append(inner.move)
        inner = inner.inputs[0]
    if inner.symbol is None:
        return None
    entries = np.arange(inner.symbol.size).reshape(1, *inner.symbol.shape)
    for move in reversed(moves):
        entries = move(entries)
    return inner.symbol if np.unique(entries).size == entries.size else None


def unmoved(expression: Expression) -> Expression:
    """Return what the entries of an expression are entries of, shapes and order apart."""
    while expression.kind == "moved" and len(expression.inputs) == 1:
        expression = expression.inputs[0]
    return expression


def merged(first: Expression, second: Expression, sign: int) -> Expression | None:
    """Return a sum of a predictor on public values of a row and of parameters as one predictor.

    Both depend on the place in the parameter space alone, so that nothing is lost, and one scalar does for two.
    """
    symbols = [unmoved(item).symbol for item in (first, second)]
    if any(symbol is None or symbol.size != 1 for symbol in symbols):
        return None
    found = [symbol for symbol in symbols if symbol is not None]
    if not any(isinstance(symbol, Meeting) for symbol in found) or any(
        symbol.role not in ("public joint", "parameter") for symbol in found
    ):
        return None
    ends = [(float(symbol.low.min()), float(symbol.high.max())) for symbol in found]
    if sign < 0:
        ends[1] = (-ends[1][1], -ends[1][0])
    shape = np.broadcast_shapes(*(np.shape(hull(item)[0]) for item in (first, second)))
    sides = tuple(side for item, symbol in zip((first, second), found, strict=True) for side in _sides(item, symbol))
    low, high = (ends[0][place] + ends[1][place] for place in (0, 1))
    room = (ROUNDING - 1) * max(abs(low), abs(high)) if np.isfinite([low, high]).all() else 0.0
    return leaf(
        Meeting(
            name=f"{found[0].name} {'+' if sign > 0 else '-'} {found[1].name}",
            low=np.full(shape, low - room),
            high=np.full(shape, high + room),
            role="public joint",
            sides=sides,
            of_row=tuple(item for symbol in found if isinstance(symbol, Meeting) for item in symbol.of_row),
            linear=all(symbol.linear for symbol in found if isinstance(symbol, Meeting)),
            note="linear predictor",
        )
    )


def _sides(item: Expression, symbol: Symbol) -> tuple[Side, ...]:
    return symbol.sides if isinstance(symbol, Meeting) else (Side(parameter=unmoved(item), radius=1.0),)


def product_sum(product: Expression, axes: tuple[int, ...] | None) -> Expression | None:
    """Recognise a linear predictor written as a sum of products."""
    if product.name != "Mul" or len(product.inputs) != 2 or axes is None or len(axes) != 1:
        return None
    first, second = product.inputs
    if not ((_of_rows(first) and of_parameters(second)) or (of_parameters(first) and _of_rows(second))):
        return None
    shapes = [np.shape(hull(side)[0]) for side in (first, second)]
    axis = axes[0]
    if any(len(shape) != len(shapes[0]) or shape[axis] == 1 for shape in shapes):
        return None

    def align(a: Array, b: Array) -> tuple[Array, Array]:
        return np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)

    return _predictor((first, second), align)


__all__ = [
    "Chosen",
    "Meeting",
    "Side",
    "columns_behind",
    "contracted",
    "gathered",
    "hull",
    "length",
    "longest",
    "merged",
    "of_parameters",
    "once",
    "product_sum",
    "roles",
    "unmoved",
]
