"""How far a row can move its log-likelihood per unit of a metric: Lipschitz constants in the data, proved.

How steep a row's log-likelihood is in one column of numbers: by search on its derivative, or by slopes on boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Column, shape_of
from pymc_dp.intervals.derivative import derivative
from pymc_dp.intervals.expression import Expression, Symbol, Tape, substituted
from pymc_dp.metrics import L1, L2, Extent, Geographic, Hamming, Metric
from pymc_dp.proofs.differences import Corner
from pymc_dp.proofs.meeting_points import Chosen, Meeting, columns_behind, longest, once
from pymc_dp.proofs.row_likelihood import Copies, Part, RowLikelihood, copied, signed_sum
from pymc_dp.proofs.row_ranges import SLACK, Proof, never_finite, prove_range, prove_sensitivity, prove_sums
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


FEW = 2
"""Steps of whole numbers up to which it may cost less to count them as different than to measure by how much."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PerUnit:
    """What is proved of one row's log-likelihood under a metric ρ, all observed variables together.

    Attributes
    ----------
    value : float
        Of the range: ``sup_θ d - inf_θ d <= value ρ(x, y)`` for ``d = l(x, θ) - l(y, θ)`` and all rows x, y. Of the
        Lipschitz constant L_ρ: ``|d| <= value ρ(x, y)``.
    diameter : float
        Largest ρ(x, y) of two rows of the domain; inf where values have no bounds.
    parts : tuple of (str, float)
        The same for each summand of the metric, in words; `value` is the largest.
    boxes : int
        Boxes that searches looked at.
    """

    value: float
    diameter: float
    parts: tuple[tuple[str, float], ...]
    boxes: int


def prove_per_unit(
    rows: Sequence[RowLikelihood], columns: Sequence[Column], metric: Metric, *, papers: bool = False
) -> PerUnit:
    """Prove the range per unit of ρ, or with `papers` the Lipschitz constant L_ρ.

    Parameters
    ----------
    rows : sequence of RowLikelihood
    columns : sequence of Column
        Every private one is in the metric (`inspection.metric_columns`).
    metric : Metric
    papers : bool

    Raises
    ------
    UnsupportedModelError
        With what is in the way, where there is no proof.

    Notes
    -----
    From x one comes to y by changing the columns of one summand of ρ after the other, and ranges of differences add. A
    column of numbers goes on a straight line, along which d changes by its slope, so that ``range <= Σ R_k |x_k -
    y_k|`` with R_k the largest difference of slopes at two places of the parameter space; each metric bounds that sum
    by ρ. Whole numbers that differ do so by 1 at least.

    References
    ----------
    Dimitrakakis, Nelson, Zhang, Mitrokotsa, Rubinstein (2017), assumption 1 and theorem 8.1: 2 L_ρ is the range that
    follows from L_ρ alone. Dong, Durfee, Rogers (2020) for the range.
    """
    named = columns_of(metric, columns)
    extents = {name: extent_of(column) for name, column in named.items()}
    work = _Work(rows=tuple(rows), named=named, papers=papers)
    found = [(str(part), work.of_part(part, extents)) for part in metric.parts]
    if work.problems:
        raise UnsupportedModelError(work.problems)
    return PerUnit(
        value=max(value for _, value in found),
        diameter=metric.diameter(extents),
        parts=tuple(found),
        boxes=work.boxes,
    )


def largest_per_unit(
    part: Metric,
    extents: Mapping[str, Extent],
    *,
    slope: Callable[[str], float],
    different: Callable[[str], float],
) -> float:
    """Return what changes per unit of one summand of a metric, at most.

    Parameters
    ----------
    part : Metric
        No sum.
    extents : mapping of str to Extent
    slope : callable
        From a column of numbers to what changes per unit of its Euclidean norm.
    different : callable
        From a column to what changes where it takes another value; from "" where the row is another one.
    """
    match part:
        case Hamming():
            return max(different(name) / weight for name, weight in (part.weights or {"": 1.0}).items())
        case L1():
            return max(slope(name) / weight for name, weight in part.weights.items())
        case L2():
            return math.hypot(*(slope(name) / weight for name, weight in part.weights.items())) * (1 + 1e-12)
        case Geographic():
            return part.steepest(slope(part.latitude), slope(part.longitude), extents)
    raise PrivacyError(f"No rule proves a constant under {part}; this is an error of pymc_dp.")


def columns_of(metric: Metric, columns: Sequence[Column]) -> dict[str, Column]:
    """Return the private columns by the names that the metric gives them; all of them where it is of whole rows."""
    private = [column for column in columns if not column.public]
    if not metric.columns:
        return {column.name: column for column in private}
    found = {name: column for name in metric.columns for column in private if name in (column.name, *column.aliases)}
    if len(found) < len(metric.columns) or len({id(column) for column in found.values()}) < len(private):
        raise PrivacyError("A private column is not in the metric; this is an error of pymc_dp.")
    return found


def extent_of(column: Column) -> Extent:
    """Return what the values of a column in one row can be."""
    low, high = (-math.inf, math.inf) if column.bounds is None else column.bounds
    size = int(np.prod(shape_of(column.leaf)[1:], dtype=int))
    return Extent(low=float(low), high=float(high), size=size, norm=column.norm)


class _Work:
    """Proofs for the summands of one metric."""

    def __init__(self, *, rows: tuple[RowLikelihood, ...], named: Mapping[str, Column], papers: bool) -> None:
        self.rows, self.named, self.papers = rows, named, papers
        self.problems: list[Problem] = []
        self.boxes = 0

    def of_part(self, part: Metric, extents: Mapping[str, Extent]) -> float:
        """Bound the range, or |d|, per unit of one summand; note a problem where columns have slopes and ρ no use."""
        before, value = len(self.problems), self.constant(part, extents)
        if math.isinf(value) and len(self.problems) == before:
            what = f"no number of units per unit of {part} bounds how far it goes"
            remedy = (
                "For locations give bounds (Domain) that span less than once around the Earth and stay away from the "
                "poles; measure other columns in another unit."
            )
            self.problems.append(Problem(where=", ".join(part.columns), what=what, remedy=remedy))
        return value

    def constant(self, part: Metric, extents: Mapping[str, Extent]) -> float:
        """Bound the range, or |d|, per unit of one summand."""
        return largest_per_unit(part, extents, slope=self._slope, different=self._different)

    def _slope(self, name: str) -> float:
        """Bound the change per unit of one column of numbers, for each row's whole log-likelihood."""
        column = self.named[name]
        by_slope = self._total([prove_slope(row, column, papers=self.papers) for row in self.rows])
        steps = extent_of(column).high - extent_of(column).low
        if column.integer and (math.isinf(by_slope.value) or steps <= FEW):
            by_slope = min(by_slope, self._total(self._differing(name)), key=lambda proof: proof.value)
        return self._known(name, by_slope)

    def _different(self, name: str) -> float:
        """Bound the change where one column takes another value, or the row is another one (no name)."""
        return self._known(name or "row", self._total(self._differing(name)))

    def _differing(self, name: str) -> list[Proof]:
        rows = [_sharing_all_but(row, self.named[name]) if name else row for row in self.rows]
        prove = prove_sensitivity if self.papers else prove_range
        return [prove(row, "replace") for row in rows]

    def _total(self, proofs: Sequence[Proof]) -> Proof:
        self.boxes += sum(proof.boxes for proof in proofs)
        lost = next((proof for proof in proofs if math.isinf(proof.value)), None)
        return lost or replace(proofs[0], value=sum(proof.value for proof in proofs))

    def _known(self, name: str, proof: Proof) -> float:
        if math.isinf(proof.value):
            what = f"no Lipschitz constant of a row's log-likelihood is proved in it: {proof.obstacle}"
            remedy = (
                "Give public bounds of its values (Domain) and of the parameters (dp.truncate); where the density "
                "jumps in it, measure it by dp.metrics.Hamming."
            )
            self.problems.append(Problem(where=name, what=what, remedy=remedy))
        return proof.value


def _sharing_all_but(row: RowLikelihood, column: Column) -> RowLikelihood:
    """Return the log-likelihood for two rows that agree in every column but one."""
    if row.whole is None:
        return row
    shared = {symbol: _shared(symbol) for symbol in row.symbols if not _moves(symbol, column)}
    parts = tuple(Part(sign=part.sign, expression=substituted(part.expression, shared)) for part in row.parts)
    return RowLikelihood(name=row.name, whole=substituted(row.whole, shared), parts=parts)


def _moves(symbol: Symbol, column: Column) -> bool:
    """Whether a symbol may change where a column does."""
    return any(one.role == "row" and one.name == column.name for one in columns_behind(symbol))


def _shared(symbol: Symbol) -> Symbol:
    return replace(symbol, role={"row": "public", "joint": "public joint"}.get(symbol.role, symbol.role))


__all__ = ["PerUnit", "column_norm", "columns_of", "extent_of", "largest_per_unit", "prove_per_unit", "prove_slope"]
