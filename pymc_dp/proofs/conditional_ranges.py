"""How far one row can move a log-likelihood over one free variable alone, the others held anywhere: Gibbs' ranges.

The two places of the parameter space differ in one scalar (or in one variable among whose elements rows choose), so
that everything else is shared between them. Where the scalar enters a linear predictor, the predictor at the second
place is that at the first, plus what the scalar moves it by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
from pytensor.scalar.basic import Add, Clip, Mul, Sub

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import (
    Expression,
    Symbol,
    Tape,
    constant,
    elementwise,
    in_order,
    leaf,
    moved,
    rebuilt,
    substituted,
)
from pymc_dp.intervals.rules import RULES
from pymc_dp.proofs.branch_and_bound import maximise
from pymc_dp.proofs.enclosures import Choice, Enclosures, with_decisions
from pymc_dp.proofs.meeting_points import Meeting, roles
from pymc_dp.proofs.one_variable import Moving, entry_of
from pymc_dp.proofs.row_likelihood import RowLikelihood, signed_sum
from pymc_dp.proofs.row_ranges import Proof, proof_of
from pymc_dp.proofs.slopes import Norm, steepest

MOST_BOXES = 40_000
TOLERANCE = 2e-3
"""Of one search: every scalar of a model has a proof of its own."""
CLOSE = 0.02
"""Relative gap between a bound and the best point below which no other proof is tried."""
ALONE = ((1, 0, 0), (-1, 0, 1))
REPLACED = ((1, 0, 0), (-1, 1, 0), (-1, 0, 1), (1, 1, 1))
"""Sign, row and place of the terms of a difference (of differences)."""

Corners = Sequence[tuple[int, int, int]]
Terms = Sequence[tuple[int, Expression]]


def prove_conditional_range(
    row: RowLikelihood,
    neighbours: Neighbours,
    symbol: Symbol,
    entry: int | None = None,
    *,
    most: int | None = None,
) -> Proof:
    """Bound the range of one row's log-likelihood over one free variable, all others anywhere in their supports.

    Parameters
    ----------
    row : RowLikelihood
    neighbours : {"replace", "add_remove"}
    symbol : Symbol
        One of ``moving.parameters_of(row)``.
    entry : int or None
        The only element that moves, by its place in the raveled variable; None for all elements at once.
    most : int, optional
        Boxes after which a search stops; fewer give a wider bound, which is a bound still.

    Returns
    -------
    Proof
        The least of several bounds: branch and bound over both places; twice that of one row alone (``replace``); the
        largest slope times the width of the support.

    Notes
    -----
    **Guarantee.** ``replace``: the value is at least ``l(x, θ) - l(x', θ) - l(x, θ') + l(x', θ')`` for all rows x, x'
    of the domain with the same public columns, and all places θ, θ' of the supports that agree in everything but what
    moves; ``add_remove``: at least ``l(x, θ) - l(x, θ')``. A draw of what moves from its conditional at inverse
    temperature β is then an exponential mechanism of bounded range β times the value.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 4.1; bounded range: Dong, Durfee, Rogers (2020).
    """
    if row.whole is None:
        return Proof(value=math.inf, attained=0.0, obstacle=row.failure)
    moving, boxes = Moving(symbol=symbol, entry=entry), most or MOST_BOXES
    terms = [(part.sign, part.expression) for part in row.parts if moving.touches(part.expression.symbols)]
    if neighbours == "add_remove":
        return _alone(moving, terms, boxes)
    private = [(sign, term) for sign, term in terms if {"row", "joint"} & roles(term)]
    # What depends on no private value cancels between two rows, but may help to bound one.
    others = [partial(_doubled, moving, some, boxes) for some in ([terms] if terms == private else [terms, private])]
    others.append(partial(_by_slope, moving, private, REPLACED[:2]))
    return _least(_searched(moving, private, REPLACED, boxes), others)


def prove_conditional_ranges(
    row: RowLikelihood, neighbours: Neighbours, symbol: Symbol, *, most: int | None = None
) -> tuple[Proof, ...]:
    """Bound the range over each element of a variable by itself; elements that are alike share a proof."""
    known: dict[object, Proof] = {}
    proofs = []
    for entry in range(symbol.size):
        kind = _kind(row, Moving(symbol=symbol, entry=entry))
        if kind not in known:
            known[kind] = prove_conditional_range(row, neighbours, symbol, entry, most=most)
        proofs.append(known[kind])
    return tuple(proofs)


def _kind(row: RowLikelihood, moving: Moving) -> object:
    """Return what the proof for an element depends on: itself, or its bounds and how it moves linear predictors."""
    if moving.symbol in row.symbols:
        return moving.entry
    met = [one for one in row.symbols if isinstance(one, Meeting) and moving.touches([one])]
    slopes = [moving.derivative(one) for one in sorted(met, key=id)]
    return (*moving.bounds, *(None if pair is None else tuple(end.tobytes() for end in pair) for pair in slopes))


def _alone(moving: Moving, terms: Terms, boxes: int) -> Proof:
    """Bound the range of one row's log-likelihood."""
    return _least(_searched(moving, terms, ALONE, boxes), [partial(_by_slope, moving, terms, ALONE[:1])])


def _least(first: Proof, others: Sequence[Callable[[], Proof]]) -> Proof:
    """Return the first proof with the least bound that any gives; others are tried while there is much to gain."""
    value = first.value
    for other in others:
        if value > first.attained * (1 + CLOSE):
            value = min(value, other().value)
    return first if value == first.value else replace(first, value=value, obstacle="", symbols=())


def _searched(moving: Moving, terms: Terms, corners: Corners, boxes: int) -> Proof:
    """Bound a difference of two places by branch and bound."""
    places = Places(moving, terms)
    laid = Enclosures(with_decisions(places.signed(terms, corners)))
    labels = places.labels | {symbol: "" for symbol in laid.symbols if isinstance(symbol, Choice)}
    return proof_of(laid, maximise(laid, tolerance=TOLERANCE, most=boxes), labels)


def _doubled(moving: Moving, terms: Terms, boxes: int) -> Proof:
    """Bound a difference of two rows by twice what one row alone does."""
    found = _searched(moving, terms, ALONE, boxes)
    return replace(found, value=2 * found.value)


def _by_slope(moving: Moving, terms: Terms, corners: Corners) -> Proof:
    """Bound a difference of two places by the largest slope along the scalar times the width of its support."""
    nothing = Proof(value=math.inf, attained=0.0)
    if not moving.scalar:
        return nothing
    places = Places(moving, terms)
    tape = Tape([places.signed(terms, corners)])
    slopes: list[tuple[int, float]] = []
    for symbol, (start, size) in tape.places.items():
        origin = places.origin(symbol)
        if origin is moving.symbol:
            slopes.append((start + (moving.entry or 0), 1.0))
        elif isinstance(origin, Meeting) and moving.touches([origin]):
            found = moving.derivative(origin)
            if found is None:
                return nothing
            largest = np.broadcast_to(np.maximum(abs(found[0]), abs(found[1])), origin.shape).ravel()
            slopes += [(start + place, float(largest[place])) for place in range(size)]
    steep = steepest(tape.ends[0], Norm(blocks=[[[slopes]]]), tape)
    return replace(steep, value=float(np.nextafter(steep.value * moving.width, np.inf)))


class Places:
    """Copies of terms for each of two rows, and for each of two places that differ in nothing but what moves.

    Attributes
    ----------
    labels : dict of Symbol to str
        What a reader should call each copy.
    """

    def __init__(self, moving: Moving, terms: Terms) -> None:
        self.moving = moving
        self.labels: dict[Symbol, str] = {}
        self._copies: dict[tuple[Symbol, str], Symbol] = {}
        self._origins: dict[Symbol, Symbol] = {}
        nodes = [node for _, term in terms for node in in_order([term])]
        self._here = next((node for node in nodes if node.symbol is moving.symbol), None)
        self._there: dict[Expression, Expression] = {}

    def origin(self, symbol: Symbol) -> Symbol:
        """Return what a symbol is a copy of."""
        return self._origins.get(symbol, symbol)

    def signed(self, terms: Terms, corners: Corners) -> Expression:
        """Return the sum of the terms at the given rows and places, with their signs."""
        parts = [(sign * one, self._at(term, row, place)) for one, term in terms for sign, row, place in corners]
        return signed_sum(parts)

    def _at(self, term: Expression, row: int, place: int) -> Expression:
        private = [symbol for symbol in term.symbols if symbol.role in ("row", "joint")]
        term = substituted(term, {symbol: self._copy(symbol, f"row {row}") for symbol in private})
        if place == 0:
            return term
        memo: dict[Expression, Expression] = {}
        for node in in_order([term]):
            touched = node.symbol is not None and self.moving.touches([node.symbol])
            memo[node] = self._second(node) if touched else rebuilt(node, [memo[item] for item in node.inputs])
        return memo[term]

    def _second(self, node: Expression) -> Expression:
        """Return what stands for a leaf at the second place."""
        if node not in self._there:
            meeting = node.symbol
            self._there[node] = self._moved_to(node, meeting) if isinstance(meeting, Meeting) else self._variable(node)
        return self._there[node]

    def _moved_to(self, node: Expression, meeting: Meeting) -> Expression:
        """Return a meeting at the second place: as it was plus what the scalar moves it by; else anything it may be."""
        slopes = None if self.moving.is_chosen(meeting) else self.moving.derivative(meeting)
        if slopes is None:
            return leaf(self._copy(meeting, "place 1"))
        slope = Symbol(name=f"slope of {meeting.name}", low=slopes[0], high=slopes[1], role=meeting.role)
        change = moved("Spread", partial(_spread, len(meeting.shape)), [self._change])
        step = elementwise("Mul", RULES[Mul], [leaf(slope), change])
        there = elementwise("Add", RULES[Add], [node, step])
        if not np.isfinite([meeting.low, meeting.high]).all():
            return there
        return elementwise("Clip", RULES[Clip], [there, constant(meeting.low), constant(meeting.high)])

    def _variable(self, here: Expression) -> Expression:
        """Return the variable at the second place."""
        if not self.moving.scalar:
            return leaf(self._copy(self.moving.symbol, "place 1"))
        return moved("Put", partial(_put, self.moving.entry or 0), [here, self._scalar])

    @cached_property
    def _scalar(self) -> Expression:
        """The scalar that moves, at the second place."""
        symbol, place = self.moving.symbol, self.moving.entry or 0
        name = symbol.name if symbol.size == 1 else f"{symbol.name}[{place}]"
        low, high = self.moving.bounds
        there = Symbol(name=name, low=np.asarray(low), high=np.asarray(high), integer=symbol.integer)
        self.labels[there] = f"{name} (place 1)"
        return leaf(there)

    @cached_property
    def _change(self) -> Expression:
        """How far the scalar moves."""
        if self._here is None:
            name, width = f"change of {self.moving.symbol.name}", np.asarray(self.moving.width)
            return leaf(Symbol(name=name, low=-width, high=width))
        before = moved("Entry", partial(entry_of, self.moving.entry or 0), [self._here])
        return elementwise("Sub", RULES[Sub], [self._scalar, before])

    def _copy(self, symbol: Symbol, label: str) -> Symbol:
        if (symbol, label) not in self._copies:
            fresh = replace(symbol)
            self._copies[symbol, label] = fresh
            self._origins[fresh] = self.origin(symbol)
            before = self.labels.get(symbol)
            self.labels[fresh] = f"{symbol.name} ({label})" if before is None else f"{before[:-1]}, {label})"
        return self._copies[symbol, label]


def _spread(ndim: int, array: Array) -> Array:
    return array.reshape(array.shape[0], *(1,) * ndim)


def _put(place: int, array: Array, one: Array) -> Array:
    count = max(array.shape[0], one.shape[0])
    whole = np.array(np.broadcast_to(array, (count, *array.shape[1:])))
    whole.reshape(count, -1)[:, place] = one
    return whole


__all__ = ["prove_conditional_range", "prove_conditional_ranges"]
