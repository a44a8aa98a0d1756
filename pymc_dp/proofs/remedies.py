"""What to bound so that a proof becomes possible: tried before it is proposed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Expression, Symbol, substituted
from pymc_dp.proofs.branch_and_bound import FINITE_IS_ENOUGH
from pymc_dp.proofs.meeting_points import Meeting
from pymc_dp.proofs.row_likelihood import SIMPLEX, Part, RowLikelihood
from pymc_dp.proofs.row_ranges import Proof

INSIDE = 0.01
ROUNDS = 6


def problem_of(row: RowLikelihood, prove: Callable[[RowLikelihood], Proof], proof: Proof) -> Problem:
    """Say why one row's log-likelihood has no proved bound, and which bounds of parameters or values would do."""
    if row.whole is None:
        return Problem(
            where=row.name,
            what=f"its density contains {row.failure}, which no rule bounds",
            remedy="Write it with other operations, or bound every row by dp.clamp(model, low, high).",
        )
    before = FINITE_IS_ENOUGH.set(True)
    try:
        chosen = _enough(row, prove, proof)
    finally:
        FINITE_IS_ENOUGH.reset(before)
    what = f"one row can move its log-likelihood by any amount, as far as can be proved: {proof.obstacle}"
    if not chosen:
        return Problem(where=row.name, what=what, remedy="Bound every row by dp.clamp(model, low, high).")
    return Problem(where=row.name, what=what, remedy=_written(chosen))


def _enough(
    row: RowLikelihood, prove: Callable[[RowLikelihood], Proof], proof: Proof
) -> dict[Symbol, tuple[float, float]]:
    """Bound what stands in the way, again and again, until there is a proof; nothing if that does not help."""
    chosen: dict[Symbol, tuple[float, float]] = {}
    tried, current = row, proof
    origins: dict[Symbol, Symbol] = {symbol: symbol for symbol in row.symbols}
    for _ in range(ROUNDS):
        if math.isfinite(current.value):
            return chosen
        blamed = {_origin(symbol, tried) for symbol in current.symbols}
        sides = {side for symbol in blamed if symbol is not None for side in _sides(symbol)}
        fresh = {origins.get(one, one) for one in sides}
        left = {symbol: _next(symbol, chosen.get(symbol)) for symbol in sorted(fresh, key=lambda one: one.name)}
        chosen |= {symbol: ends for symbol, ends in left.items() if ends is not None}
        if not any(left.values()):
            return {}
        if any(isinstance(symbol, Meeting) for symbol in blamed):
            return chosen  # its range is computed from both sides when the model is read again
        tried, renamed = _narrowed(row, chosen)
        origins = {new: old for old, new in renamed.items()}
        current = prove(tried)
    return chosen if math.isfinite(current.value) else {}


def _origin(symbol: Symbol, row: RowLikelihood) -> Symbol | None:
    """Return the symbol of the row's expression that a copy stands for."""
    same = [one for one in row.symbols if one.name == symbol.name and one.shape == symbol.shape]
    return same[0] if same else None


def _sides(symbol: Symbol) -> list[Symbol]:
    if not isinstance(symbol, Meeting):
        return [symbol]
    inner = [one for side in symbol.sides for one in side.parameter.symbols]
    inner += [one for side in symbol.of_row for one in side.symbols]
    loose = [one for one in inner if not (np.isfinite(one.low) & np.isfinite(one.high)).all() and not one.norm]
    return loose or [one for one in inner if one.role == "parameter"]


def _next(symbol: Symbol, tried: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return bounds that were not tried yet: what has no bounds of its own may have to be positive, or below 1."""
    tries = [_inside(symbol)]
    if np.isinf(symbol.low).all() and np.isinf(symbol.high).all():
        tries += [(1.0, 10.0)] if symbol.integer else [(0.1, 10.0), (INSIDE, 1 - INSIDE)]
    return next(iter(tries[tries.index(tried) + 1 :]), None) if tried is not None else tries[0]


def _inside(symbol: Symbol) -> tuple[float, float]:
    """Return bounds strictly inside of a support, of a size that many models would bear."""
    low, high = float(symbol.low.min()), float(symbol.high.max())
    if math.isfinite(low) and math.isfinite(high):
        room = INSIDE * (high - low) * (min(1.0, 10 / symbol.size) if symbol.note == SIMPLEX else 1.0)
        if not symbol.integer:
            return low + room, high - room
        inner = math.ceil(low + room), math.floor(high - room)
        return inner if inner[0] < inner[1] else (low, high)
    if math.isfinite(low):
        return low + (0.0 if symbol.integer else 0.1), low + 10
    if math.isfinite(high):
        return high - 10, high - (0.0 if symbol.integer else 0.1)
    return (0.0, 10.0) if symbol.integer else (-10.0, 10.0)


def _narrowed(
    row: RowLikelihood, chosen: dict[Symbol, tuple[float, float]]
) -> tuple[RowLikelihood, dict[Symbol, Symbol]]:
    assert row.whole is not None
    renamed = {
        symbol: Symbol(
            name=symbol.name,
            low=_raised(symbol.low, low),
            high=np.minimum(symbol.high, high),
            integer=symbol.integer,
            role=symbol.role,
            norm=symbol.norm,
        )
        for symbol, (low, high) in chosen.items()
    }

    def changed(expression: Expression) -> Expression:
        return substituted(expression, renamed)

    parts = tuple(Part(sign=part.sign, expression=changed(part.expression)) for part in row.parts)
    return RowLikelihood(name=row.name, whole=changed(row.whole), parts=parts), renamed


def _raised(low: Array, least: float) -> Array:
    return np.maximum(low, least)


def _written(chosen: dict[Symbol, tuple[float, float]]) -> str:
    """Return the calls that set these bounds."""
    truncated = {symbol: ends for symbol, ends in chosen.items() if symbol.role == "parameter"}
    bounded = {symbol: ends for symbol, ends in chosen.items() if symbol.role != "parameter"}
    calls = []
    if truncated:
        calls.append(f"truncate the prior by public bounds, for example dp.truncate(model, {{{_pairs(truncated)}}})")
    if bounded:
        pairs = ", ".join(f"{symbol.name!r}: (low, high)" for symbol in bounded)
        calls.append(f"give public bounds of its values, Domain(bounds={{{pairs}}}){_conditions(bounded)}")
    text = " and ".join(calls)
    return f"{text[0].upper()}{text[1:]}."


def _conditions(bounded: dict[Symbol, tuple[float, float]]) -> str:
    """Say which bounds would do: numbers that were tried are no knowledge of a column, and are not proposed."""
    found = []
    for symbol, (low, high) in bounded.items():
        least, most = float(symbol.low.min()), float(symbol.high.max())
        positive = math.isinf(least) and low > 0
        least, most = 0.0 if positive else least, 1.0 if positive and high < 1 else most
        ends = [f"low > {least:g}"] * (math.isfinite(least) and low > least)
        ends += [f"high < {most:g}"] * (math.isfinite(most) and high < most)
        if ends:
            found.append(f"{symbol.name!r} with {' and '.join(ends)}")
    return f", {', '.join(found)}" if found else ""


def _pairs(chosen: dict[Symbol, tuple[float, float]]) -> str:
    """Return names and ends; of a simplex the lower ones, from which the upper ones follow."""
    return ", ".join(
        f"{symbol.name!r}: ({low:g}, {'None' if symbol.note == SIMPLEX else format(high, 'g')})"
        for symbol, (low, high) in chosen.items()
    )


def problems_of(
    rows: Sequence[RowLikelihood], proofs: Sequence[Proof], prove: Callable[[RowLikelihood], Proof]
) -> list[Problem]:
    """Return one problem per observed variable without a proof."""
    return [
        problem_of(row, prove, proof) for row, proof in zip(rows, proofs, strict=True) if not math.isfinite(proof.value)
    ]


__all__ = ["problem_of", "problems_of"]
