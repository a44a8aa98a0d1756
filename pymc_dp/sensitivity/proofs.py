"""How far one row can move a log-likelihood, proved from its graph: the four numbers of one observed variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity.expression import Expression, Symbol, Tape
from pymc_dp.sensitivity.row_likelihood import Copies, RowLikelihood, copied, signed_sum
from pymc_dp.sensitivity.search import Found, maximise

SLACK = 1 + 1e-9
"""Room for the rounding of compiled densities, relative to the bound."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """An upper bound and what is known about it.

    Attributes
    ----------
    value : float
        No row, neighbour and parameters exceed it; inf where nothing is proved.
    attained : float
        Largest value met at a point: the gap between the two is what a better proof could gain.
    where : tuple of (str, float)
        That point: name of each scalar, marked by which of two rows or places it belongs to, and its value.
    boxes : int
        Boxes that the search looked at.
    obstacle : str
        What is in the way, where `value` is inf.
    symbols : tuple of Symbol
        What is without bounds, or makes an operation undefined, where `value` is inf.
    """

    value: float
    attained: float
    where: tuple[tuple[str, float], ...] = ()
    boxes: int = 0
    obstacle: str = ""
    symbols: tuple[Symbol, ...] = ()

    @property
    def gap(self) -> float:
        """Relative gap between the bound and the best point."""
        if not math.isfinite(self.value):
            return math.inf
        return (self.value - self.attained) / self.value if self.value > 0 else 0.0


def prove_range(row: RowLikelihood, neighbours: Neighbours) -> Proof:
    """Bound the range R of one row's log-likelihood over the parameter space.

    Under ``replace``: sup over rows x, x' of sup_θ d - inf_θ d with d = l(x, θ) - l(x', θ), that is the largest
    ``l(x, θ) - l(x', θ) - l(x, θ') + l(x', θ')``; under ``add_remove``: the largest ``l(x, θ) - l(x, θ')``.
    """
    corners = [(1, 0, 0), (-1, 1, 0), (-1, 0, 1), (1, 1, 1)] if neighbours == "replace" else [(1, 0, 0), (-1, 0, 1)]

    def needed(private: bool, parameters: bool) -> bool:
        return parameters and (private or neighbours == "add_remove")

    return _proved(row, corners, needed)


def prove_sensitivity(row: RowLikelihood, neighbours: Neighbours) -> Proof:
    """Bound Δl: the largest |l(x, θ) - l(x', θ)| under ``replace``, the largest |l(x, θ)| under ``add_remove``."""
    if neighbours == "replace":
        return _proved(row, [(1, 0, 0), (-1, 1, 0)], lambda private, parameters: private)
    both = [_proved(row, [(sign, 0, 0)], lambda private, parameters: True) for sign in (1, -1)]
    return max(both, key=lambda proof: proof.value)


def _proved(row: RowLikelihood, corners: list[tuple[int, int, int]], needed: Callable[[bool, bool], bool]) -> Proof:
    if row.whole is None:
        return Proof(value=math.inf, attained=0.0, obstacle=row.failure)
    copies: Copies = {}
    kept = [part for part in row.parts if needed(*_hangs(part.expression))]
    terms = [
        (sign * part.sign, copied(part.expression, of_row, place, copies))
        for part in kept
        for sign, of_row, place in corners
    ]
    tape = Tape([signed_sum(terms)])
    labels = {copy: f"{symbol.name} ({label})" for (symbol, label), copy in copies.items()}
    return proof_of(tape, maximise(tape), labels)


def _hangs(expression: Expression) -> tuple[bool, bool]:
    """Whether an expression hangs on private values, and whether on parameters."""
    found = {symbol.role for symbol in expression.symbols}
    return bool(found & {"row", "joint"}), bool(found & {"parameter", "joint", "public joint"})


def proof_of(tape: Tape, found: Found, labels: dict[Symbol, str]) -> Proof:
    """Put what a search found into words."""
    where = tuple(
        (_label(tape, place, labels), float(value)) for place, value in enumerate(found.point) if np.isfinite(value)
    )
    if not math.isfinite(found.upper):
        obstacle, symbols = obstacle_of(tape, *found.worst)
        return Proof(
            value=math.inf, attained=found.lower, where=where, boxes=found.boxes, obstacle=obstacle, symbols=symbols
        )
    value = max(found.upper, 0.0) * SLACK
    return Proof(value=value, attained=max(found.lower, 0.0), where=where, boxes=found.boxes)


def _label(tape: Tape, place: int, labels: dict[Symbol, str]) -> str:
    symbol, entry = tape.owner(place)
    name = labels.get(symbol, symbol.name)
    return name if symbol.size == 1 else f"{name}[{entry}]"


def obstacle_of(tape: Tape, low: Array, high: Array) -> tuple[str, tuple[Symbol, ...]]:
    """Say which operation loses the bound on a box, and what it hangs on."""
    known = tape.values(low[None], high[None])
    for node in tape.nodes:
        if node.symbol is not None or node.kind == "constant":
            continue
        out = known[node]
        if not (out.flags.any() or np.isinf(out.low).any() or np.isinf(out.high).any()):
            continue
        free = tuple(sorted(node.symbols, key=lambda symbol: symbol.name))
        loose = tuple(symbol for symbol in free if np.isinf(symbol.low).any() or np.isinf(symbol.high).any())
        names = ", ".join(dict.fromkeys(repr(symbol.name) for symbol in loose or free))
        if loose:
            return f"{names} has no bounds", loose
        return f"{node.name} of {names} has no bound within their ranges", free
    return "nothing bounds it", tuple(tape.symbols)


__all__ = ["Proof", "obstacle_of", "proof_of", "prove_range", "prove_sensitivity"]
