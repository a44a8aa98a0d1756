"""How far one row can move a log-likelihood, proved from its graph: the four numbers of one observed variable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Expression, Symbol, Tape
from pymc_dp.intervals.interval import NAN, Interval
from pymc_dp.proofs.branch_and_bound import MOST_BOXES, Found, maximise, reached
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.differences import Corner, Corners
from pymc_dp.proofs.enclosures import Choice, with_decisions
from pymc_dp.proofs.meeting_points import hull, roles
from pymc_dp.proofs.row_likelihood import RowLikelihood, signed_sum

ROUGH = 1.0
"""Relative tolerance where only the existence of a bound matters."""
Term = tuple[int, Expression]
"""Of a sum, with its sign."""
NOTHING: tuple[str, tuple[Symbol, ...]] = ("nothing bounds it", ())
SLACK = 1 + 1e-6
"""Room for the rounding of compiled densities and of constants that PyMC holds in single precision, relative to the
bound."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """An upper bound and what is known about it.

    Attributes
    ----------
    value : float
        No row, neighbour and parameters exceed it; inf where nothing is proved.
    attained : float
        Largest value met at a point: the gap between the two is what a better search could gain. Linear predictors
        and elements chosen by the row are free within their ranges there, whatever the row and the parameters.
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
    impossible = never_finite(row)
    if impossible is not None:
        return impossible
    if neighbours == "add_remove":
        return _proved(row, [term for term in _terms(row) if _hangs(term)[1]], [(1, 0, 0), (-1, 0, 1)])
    both = [term for term in _terms(row) if all(_hangs(term))]
    return _proved(row, both, [(1, 0, 0), (-1, 1, 0), (-1, 0, 1), (1, 1, 1)])


def never_finite(row: RowLikelihood) -> Proof | None:
    """Refuse rows that are impossible, or certain, whatever the parameters: in differences such terms do not cancel."""
    terms = [term for term in _terms(row) if not _hangs(term)[1]]
    if not terms or np.isfinite(hull(signed_sum(terms))).all():
        return None
    whole = with_decisions(signed_sum(terms))
    for sign in (1, -1):
        total = Corners(whole, [(sign, 0, 0)])
        found = maximise(total, tolerance=ROUGH)
        if math.isinf(found.upper):
            return _said(total, found)
    return None


def prove_sensitivity(row: RowLikelihood, neighbours: Neighbours) -> Proof:
    """Bound Δl: the largest |l(x, θ) - l(x', θ)| under ``replace``, the largest |l(x, θ)| under ``add_remove``."""
    if neighbours == "replace":
        return _proved(row, [term for term in _terms(row) if _hangs(term)[0]], [(1, 0, 0), (-1, 1, 0)])
    return _proved(row, _terms(row), [(1, 0, 0)], [(-1, 0, 0)])


def _proved(row: RowLikelihood, terms: Sequence[Term], *several: Sequence[Corner]) -> Proof:
    """Bound the largest of sums over corners."""
    if row.whole is None:
        return Proof(value=math.inf, attained=0.0, obstacle=row.failure)
    return prove_sums(signed_sum(terms), *several)


def prove_sums(
    expression: Expression, *several: Sequence[Corner], most: int = MOST_BOXES, jumps: bool = False
) -> Proof:
    """Bound the largest of sums of an expression over corners, from above: a negative largest one is said to be 0."""
    whole = with_decisions(expression)
    totals = sorted((Corners(whole, corners, jumps=jumps) for corners in several), key=reached, reverse=True)
    found, enough = [], -math.inf
    for total in totals:
        found.append(maximise(total, enough=enough, most=most))
        enough = max(enough, found[-1].lower)
    largest = max(range(len(totals)), key=lambda place: found[place].upper)
    best = max(found, key=lambda one: one.lower)
    boxes = sum(one.boxes for one in found)
    return _said(totals[largest], replace(found[largest], lower=best.lower, point=best.point, boxes=boxes))


def _said(total: Corners, found: Found) -> Proof:
    names = ["" if chosen else scalar.name for scalar, chosen in zip(total.scalars, total.choices, strict=True)]
    if math.isfinite(found.upper):
        return _worded(found, names)
    boxes = [total.box(corner, *found.worst) for corner in range(total.count)]
    obstacles = [obstacle for box in boxes if (obstacle := _obstacle(total.tape, *box))]
    return _worded(found, names, *(obstacles or [NOTHING])[0])


def _terms(row: RowLikelihood) -> list[Term]:
    return [(part.sign, part.expression) for part in row.parts]


def _hangs(term: Term) -> tuple[bool, bool]:
    """Whether a term depends on private values, and whether on parameters; what does not cancels in differences."""
    found = roles(term[1])
    return bool(found & {"row", "joint"}), bool(found & OF_PARAMETERS)


def _worded(found: Found, names: Sequence[str], obstacle: str = "", symbols: tuple[Symbol, ...] = ()) -> Proof:
    """Return a proof of what a search found; scalars without a name are left out."""
    where = tuple(
        (name, float(value)) for name, value in zip(names, found.point, strict=True) if name and np.isfinite(value)
    )
    if not math.isfinite(found.upper):
        return Proof(
            value=math.inf, attained=found.lower, where=where, boxes=found.boxes, obstacle=obstacle, symbols=symbols
        )
    value = max(found.upper, 0.0) * SLACK
    return Proof(value=value, attained=max(found.lower, 0.0), where=where, boxes=found.boxes)


def obstacle_of(tape: Tape, low: Array, high: Array) -> tuple[str, tuple[Symbol, ...]]:
    """Say which operation loses the bound on a box, and what it depends on."""
    return _obstacle(tape, low, high) or ("nothing bounds it", tuple(tape.symbols))


def _obstacle(tape: Tape, low: Array, high: Array) -> tuple[str, tuple[Symbol, ...]] | None:
    known = tape.values(low[None], high[None])
    node = _culprit(tape, known)
    if node is None:
        return None
    free = tuple(sorted(_plain(node.symbols), key=lambda symbol: symbol.name))
    loose = tuple(symbol for symbol in free if np.isinf(symbol.low).any() or np.isinf(symbol.high).any())
    names = ", ".join(dict.fromkeys(repr(symbol.name) for symbol in loose or free))
    if loose:
        return f"{names} has no bounds", loose
    return f"{node.name} of {names} has no bound within their ranges", free


def _culprit(tape: Tape, known: Mapping[Expression, Interval]) -> Expression | None:
    """Return an operation that loses the bound of the end, while nothing that goes into it is lost.

    Of several, one of what has no bounds, or else of parameters, or else one that may be undefined: others may lie in
    branches that are never taken.
    """
    lost = {node for node in tape.nodes if node.inputs and node.symbols and _is_lost(known[node])}
    if tape.ends[0] not in lost:
        return None
    reached, first = [tape.ends[0]], dict[Expression, None]()
    for node in reached:
        inner = [item for item in _used(node, known) if item in lost]
        first |= {} if inner else {node: None}
        reached += [item for item in inner if item not in reached]
    return min(
        first,
        key=lambda node: (not _is_loose(node), not OF_PARAMETERS & roles(node), not (known[node].flags & NAN).any()),
    )


def _is_loose(node: Expression) -> bool:
    return any(np.isinf(symbol.low).any() or np.isinf(symbol.high).any() for symbol in node.symbols)


def _is_lost(value: Interval) -> bool:
    return bool(value.flags.any() or np.isinf(value.low).any() or np.isinf(value.high).any())


def _used(node: Expression, known: Mapping[Expression, Interval]) -> Sequence[Expression]:
    """Return what the value of a node depends on: of a switch that is decided, the branch taken."""
    if node.kind != "switch":
        return () if node.kind == "decision" else node.inputs
    decided = known[node.inputs[0]]
    if decided.low.min() == decided.high.max() and not decided.flags.any():
        return (node.inputs[1 if decided.low.min() else 2],)
    return node.inputs[1:]


def _plain(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    return (symbol for symbol in symbols if not isinstance(symbol, Choice))


__all__ = ["Proof", "never_finite", "obstacle_of", "prove_range", "prove_sensitivity", "prove_sums"]
