"""How steep a row's log-likelihood is in one column of numbers: by search on its derivative, or by slopes on boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pymc_dp.inspection.rows import Column
from pymc_dp.intervals.derivative import derivative
from pymc_dp.intervals.expression import Expression, Symbol, Tape, substituted
from pymc_dp.proofs.differences_of_differences import Corner
from pymc_dp.proofs.meeting_points import Chosen, Meeting, columns_behind, longest, once
from pymc_dp.proofs.row_likelihood import Copies, Part, RowLikelihood, copied, signed_sum
from pymc_dp.proofs.row_ranges import SLACK, Proof, never_finite, prove_sums
from pymc_dp.proofs.slopes import Entry, Norm, steepest

NEAR = 0.01
"""Relative gap of a proof that is good enough."""
MOST_BOXES = 20_000
"""After which a search on a derivative ends; what it has proved by then is a bound."""
ROUGH = 1e3
"""Relative tolerance where only the existence of a bound matters."""
ONE: list[Corner] = [(1, 0, 0)]
TWO: list[Corner] = [(1, 0, 0), (-1, 0, 1)]
"""Slopes at one place of the parameter space, and their difference between two places."""
Own = frozenset[Symbol]
"""What stands for one column: its symbol, and that which takes its whole numbers as real ones."""


def prove_slope(row: RowLikelihood, column: Column, *, papers: bool = False) -> Proof:
    """Bound ``‖∂l(x, θ) - ∂l(x, θ')‖`` over rows and two places, ∂ by the values of `column`; with `papers` ``‖∂l‖``.

    Notes
    -----
    Times the distance along a straight line it bounds how far the range over θ of ``l(x, θ) - l(y, θ)``, or its size,
    can be from 0, for rows that differ in that column alone. That the log-likelihood is continuous along the line, so
    that its slopes say by how much it changes, is what finite slopes on boxes prove: first, whatever bounds them best.
    Whole numbers are taken as points of the real line; where they choose an element there is no line between them, in
    whatever else they occur.
    """
    if row.whole is None:
        return Proof(value=math.inf, attained=0.0, obstacle=row.failure)
    if not papers and (impossible := never_finite(row)) is not None:
        return impossible
    symbol = _symbol(row, column)
    if symbol is None:
        return Proof(value=0.0, attained=0.0)
    row, real = _relaxed(row, symbol)
    own = frozenset([symbol, real])
    parts = [part for part in row.parts if _hangs(part, own) and (papers or part.mixed)]
    if any(isinstance(item, Chosen) and own & columns_behind(item) for item in _all_symbols(parts)):
        return Proof(value=math.inf, attained=0.0, obstacle=f"{symbol.name!r} chooses an element, or is chosen from")
    if not parts:
        return Proof(value=0.0, attained=0.0)
    corners = ONE if papers else TWO
    met = any(isinstance(item, Meeting) and own & columns_behind(item) for item in _all_symbols(parts))
    if symbol.size > 1 or met:
        return _by_boxes(parts, own, corners)
    rough = _steepest(parts, own, ONE, tolerance=ROUGH)
    if math.isinf(rough.value):
        return rough
    slope = derivative(signed_sum([(part.sign, part.expression) for part in parts]), real)
    if slope is None:
        return _by_boxes(parts, own, corners)
    found = _by_search(slope, corners)
    return found if math.isfinite(found.value) else _by_boxes(parts, own, corners)


def _symbol(row: RowLikelihood, column: Column) -> Symbol | None:
    """Return the symbol of a column in a row's log-likelihood; None where nothing depends on it."""
    found = {one for symbol in row.symbols for one in columns_behind(symbol) if one.name == column.name}
    return next(iter(found), None)


def _relaxed(row: RowLikelihood, symbol: Symbol) -> tuple[RowLikelihood, Symbol]:
    """Return the log-likelihood with a whole number taken as a real one, but for what it meets parameters in.

    Meetings go on depending on the whole number: a column is known by both symbols from here on.
    """
    if not symbol.integer or symbol not in row.symbols or row.whole is None:
        return row, symbol
    real = replace(symbol, integer=False)
    parts = tuple(Part(sign=part.sign, expression=substituted(part.expression, {symbol: real})) for part in row.parts)
    return RowLikelihood(name=row.name, whole=substituted(row.whole, {symbol: real}), parts=parts), real


def _hangs(part: Part, own: Own) -> bool:
    return any(own & columns_behind(item) for item in part.expression.symbols)


def _all_symbols(parts: Sequence[Part]) -> set[Symbol]:
    """All symbols of expressions, those behind meetings included."""
    own = {symbol for part in parts for symbol in part.expression.symbols}
    return own.union(*(one.met for one in own if isinstance(one, Meeting)))


def _by_search(slope: Expression, corners: Sequence[Corner]) -> Proof:
    """Bound the size of a derivative, or its difference between two places: that also as twice the size.

    A derivative jumps where the log-likelihood has a kink.
    """
    if len(corners) == 1:
        return prove_sums(slope, ONE, [(-1, 0, 0)], most=MOST_BOXES, jumps=True)
    two = prove_sums(slope, corners, most=MOST_BOXES, jumps=True)
    if two.gap < NEAR:
        return two
    one = prove_sums(slope, ONE, [(-1, 0, 0)], most=MOST_BOXES, jumps=True)
    return two if two.value <= 2 * one.value else replace(one, value=2 * one.value, boxes=one.boxes + two.boxes)


def _by_boxes(parts: Sequence[Part], own: Own, corners: Sequence[Corner]) -> Proof:
    """Bound slopes by enclosing them on boxes; a difference of two also as twice the size of one."""
    one = _steepest(parts, own, ONE)
    if len(corners) == 1 or math.isinf(one.value):
        return one
    two = _steepest(parts, own, corners)
    return two if two.value <= 2 * one.value else replace(one, value=2 * one.value)


def _steepest(parts: Sequence[Part], own: Own, corners: Sequence[Corner], *, tolerance: float | None = None) -> Proof:
    copies: Copies = {}
    terms = [
        (sign * part.sign, copied(part.expression, of_row, place, copies))
        for part in parts
        for sign, of_row, place in corners
    ]
    tape = Tape([signed_sum(terms)])
    origins = {copy: original for (original, _), copy in copies.items()}
    options = {} if tolerance is None else {"tolerance": tolerance}
    return steepest(tape.ends[0], column_norm(tape, own, origins), tape, **options)


def column_norm(tape: Tape, own: Own, origins: Mapping[Symbol, Symbol]) -> Norm:
    """Return the Euclidean norm of the gradient by the values of one column, linear predictors included."""
    direct: Entry = []
    through: Entry = []
    for symbol, (start, size) in tape.places.items():
        origin = origins.get(symbol, symbol)
        places = range(start, start + size)
        if origin in own:
            direct += [(place, 1.0) for place in places]
        elif isinstance(origin, Meeting) and own & columns_behind(origin):
            through += [(place, _factor(origin, own)) for place in places]
    return Norm(blocks=[[[[item] for item in direct], *([[item]] for item in through)]])


def _factor(meeting: Meeting, own: Own) -> float:
    """How far an entry of a linear predictor moves per unit of a column; inf where that is not known."""
    plain = meeting.linear and all(once(side) in own for side in meeting.of_row)
    if not plain:
        return math.inf
    return math.hypot(*(longest(side.parameter) for side in meeting.sides)) * SLACK


__all__ = ["column_norm", "prove_slope"]
