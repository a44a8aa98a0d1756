"""How far one row can move the log-likelihood ratio of two places of a chain, proved from the graph of the model.

The chain moves on the unconstrained scale, and the row may be anything of the public domain.

Values of private columns at which every row is looked at: where the numbers of rows lie that share public values.

Why the range of a step is not proved, and what would do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.transforms import SimplexTransform
from pytensor.graph.basic import Variable

from pymc_dp._column_bounds import each_of
from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.inspection.findings import RowInspection, RowTerm
from pymc_dp.inspection.interpreted import start_of
from pymc_dp.inspection.one_row import of_one_row, placeholder
from pymc_dp.inspection.rows import Array, Column, rebuild, shape_of
from pymc_dp.intervals.expression import Symbol, UnknownOperation, leaf
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.certificates import gradient_norm
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.meeting_points import Meeting
from pymc_dp.proofs.meeting_ranges import Enclosed
from pymc_dp.proofs.row_likelihood import RowLikelihood, parts_of, symbol_of
from pymc_dp.proofs.row_ranges import Proof
from pymc_dp.proofs.row_span import Point, RowSpan, Span, added

MOST = 8
"""Combinations of private values up to which each is looked at."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateReferences:
    """What the private columns of a row are replaced by, in a few ways; public.

    With public columns, neighbours under ``replace`` differ in private ones only. So where the number of a row lies may
    depend on its public values, and only how far it may range about that place is paid for.

    Attributes
    ----------
    rows : tuple of tuples of array or None
        For each way one value per column; None for public columns.
    complete : bool
        Whether these are all values that the private columns may have; else there are two: the ends of their bounds.
    """

    rows: tuple[tuple[Array | None, ...], ...]
    complete: bool

    @classmethod
    def of(cls, columns: Sequence[Column], neighbours: Neighbours) -> Self | None:
        """Choose them; None where no column is public, or where a private one is not limited. Reads no row."""
        if neighbours != "replace" or not any(column.public for column in columns):
            return None
        if not all(column.limited for column in columns):
            return None
        every = _every([column for column in columns if not column.public])
        ends = [[_end(column, high) for column in columns] for high in (False, True)]
        if every is None:
            return cls(rows=tuple(map(tuple, ends)), complete=False)
        chosen = (iter(one) for one in every)
        rows = tuple(tuple(None if column.public else next(one) for column in columns) for one in chosen)
        return cls(rows=rows, complete=True)


def _every(columns: Sequence[Column]) -> list[tuple[Array, ...]] | None:
    """Return all combinations of values of columns; None where they are more than a few."""
    if not all(column.integer and column.bounds is not None and column.norm is None for column in columns):
        return None
    each, count = [], 1.0
    for column in columns:
        low, high = (end.ravel().tolist() for end in column.ends)
        values = [range(math.ceil(one), math.floor(other) + 1) for one, other in zip(low, high, strict=True)]
        count *= math.prod(float(len(one)) for one in values)
        if count > MOST:
            return None
        shape, chosen = shape_of(column.leaf)[1:], itertools.product(*values)
        each.append([np.array(one, dtype=column.leaf.type.dtype).reshape(shape) for one in chosen])
    return list(itertools.product(*each))


def _end(column: Column, high: bool) -> Array | None:
    """Return the lowest or highest value of a private column; 0 where only a norm limits it."""
    if column.public:
        return None
    end = 0.0 if column.bounds is None or column.norm is not None else column.bounds[high]
    value = np.full((1, *shape_of(column.leaf)[1:]), end).astype(column.leaf.type.dtype)
    return np.asarray(column.clamped(value)[0])


OTHERWISE = "bound every row's log-likelihood by dp.clamp(model, low, high), or give BarkerMetropolis(clamp=...)"


def no_rule(name: str, operation: str) -> Problem:
    """Return the problem of an operation without a rule."""
    return Problem(
        where=name,
        what=f"the range of a step cannot be proved: its density contains {operation}, which no rule bounds",
        remedy="Write it with other operations, or give BarkerMetropolis(clamp=...).",
    )


def unproved(name: str, operation: str, symbols: Sequence[Symbol]) -> Problem:
    """Return the problem of an operation whose change between two places is not bounded."""
    known = dict.fromkeys(one for symbol in symbols for one in _sides(symbol))
    loose = [one for one in known if one.role != "parameter" and _unbounded(one)]
    shown = ", ".join(repr(one.name) for one in loose or known)
    if loose:
        lost = f"no row is bounded: {shown} may be anything" if len(loose) > 1 else f"{shown} has no bounds"
    else:
        lost = f"{operation} of {shown} has no bound near the initial point"
    what = f"the range of a step cannot be proved: {lost}"
    remedies = [*_bounds(loose), *_truncation(loose, list(known)), OTHERWISE]
    return Problem(where=name, what=what, remedy=f"{'; or '.join(_capital(remedies))}.")


def _sides(symbol: Symbol) -> list[Symbol]:
    """Return what a meeting depends on."""
    if not isinstance(symbol, Meeting):
        return [symbol]
    return [one for part in (*symbol.of_row, *(side.parameter for side in symbol.sides)) for one in part.symbols]


def _unbounded(symbol: Symbol) -> bool:
    return bool(np.isinf(symbol.low).any() or np.isinf(symbol.high).any())


def _bounds(loose: Sequence[Symbol]) -> list[str]:
    if not loose:
        return []
    given = ", ".join(f"{one.name!r}: (low, high)" for one in loose)
    norms = ", ".join(f"{one.name!r}: norm" for one in loose if one.shape)
    several = f", or dp.Domain(norms={{{norms}}})" if norms else ""
    each = each_of(1 + max(len(one.shape) for one in loose))
    return [f"give public bounds of its values, dp.Domain(bounds={{{given}}}){each}{several}"]


def _truncation(loose: Sequence[Symbol], known: Sequence[Symbol]) -> list[str]:
    names = [one.name for one in known if one.role == "parameter"]
    if loose or not names:
        return []
    given = ", ".join(f"{name!r}: (low, high)" for name in names)
    return [f"truncate priors by public bounds, dp.truncate(model, {{{given}}})"]


def _capital(remedies: Sequence[str]) -> list[str]:
    first, *rest = remedies
    return [first[0].upper() + first[1:], *rest]


NEAR = 1e-3
"""Step at which a proof is tried at the initial point."""
MOST_SHOWN = 30
"""Values up to which the steepness at the initial point is worth its time."""


class StepProof:
    """Proved spans between places on the unconstrained scale.

    With g(x) = l(x, θ') - l(x, θ), the reach is sup g - inf g over the rows of the domain under ``replace`` (of g less
    its middle at the `references` for the public values of a row, where that is less), and sup |g| under
    ``add_remove``. It is a function of the two places and of public numbers, the same both ways.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    prior_model : pymc.Model
        Of the inspected model; the chain is what its value variables are.

    Attributes
    ----------
    start : (n_values,) array
        The initial point of a chain.
    problems : tuple of Problem
        What is in the way of a proof near the initial point, with what would do; empty if there is one.
    unchecked : tuple of str
        Observed variables whose parameter checks were left out, because they are not proved.
    references : PrivateReferences or None
        Where a row's public values are known to its neighbours: what the middle of g is taken of.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model) -> None:
        start = start_of(prior_model)
        places = [np.asarray(start[str(value.name)]) for value in prior_model.value_vars]
        self._symbols = tuple(
            Symbol(name=str(rv.name), low=np.full(place.shape, -np.inf), high=np.full(place.shape, np.inf))
            for rv, place in zip(prior_model.free_RVs, places, strict=True)
        )
        self._edges = np.cumsum([0, *(place.size for place in places)])
        self.start = np.concatenate([np.zeros(0), *(np.ravel(place).astype(float) for place in places)])
        self._neighbours = inspection.domain.neighbours
        self.references = PrivateReferences.of(inspection.columns, self._neighbours)
        one = {column.leaf: placeholder(column.leaf, shape_of(column.leaf)[1:]) for column in inspection.columns}
        pairs = list(zip(prior_model.value_vars, self._symbols, strict=True))
        sized = {value: pt.TensorType(value.type.dtype, item.low.shape)(value.name) for value, item in pairs}
        free = dict(zip(inspection.stand_ins, rebuild(_at_values(prior_model), sized)[0], strict=True))
        self._known = {sized[value]: item for value, item in pairs}
        of_rows = [symbol_of(column) for column in inspection.columns]
        self._known |= {one[column.leaf]: item for column, item in zip(inspection.columns, of_rows, strict=True)}
        self._points = _points(of_rows, self.references)
        self._graphs, self._terms, problems = list[tuple[Variable, bool]](), list[RowSpan](), list[Problem]()
        for term in inspection.terms:
            ways = [(of_one_row(replace(term, logp=graph), one, free), graph is term.checked) for graph in _ways(term)]
            problem = self._problem(term.name, ways)
            problems += [problem] if problem else []
        self.problems = tuple(problems)
        checked = zip(inspection.terms, self._graphs, strict=False)
        self.unchecked = () if problems else tuple(term.name for term, (_, whole) in checked if not whole)

    def _problem(self, name: str, ways: Sequence[tuple[Variable, bool]]) -> Problem | None:
        """Prove one observed variable, with its parameter checks if these are proved; else say what is in the way."""
        problem = None
        for graph, whole in ways:
            try:
                found = self._row_span(graph)
            except UnknownOperation as error:
                problem = no_rule(name, str(error))
                continue
            around = self._around
            if math.isfinite(found.span(around).reach):
                self._graphs.append((graph, whole))
                self._terms.append(found)
                return None
            problem = unproved(name, *found.obstacle(around))
        return problem

    def _row_span(self, graph: Variable) -> RowSpan:
        known = {var: leaf(symbol) for var, symbol in self._known.items()}
        complete = self.references is not None and self.references.complete
        whole = lowered(graph, known)
        return RowSpan(whole, self._neighbours, self._around, references=self._points, complete=complete)

    @property
    def _around(self) -> Mapping[Symbol, Enclosed]:
        return self._given(self.start, self.start + NEAR)

    def __getstate__(self) -> dict[str, Any]:
        """Leave expressions behind, whose rules cannot be pickled: a copy makes its own from the graphs."""
        return {name: value for name, value in vars(self).items() if name != "_terms"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make expressions anew."""
        vars(self).update(state)
        self._terms = [self._row_span(graph) for graph, _ in self._graphs]

    def between(self, here: Array, there: Array) -> Span:
        """Return what one row can do between two places, flat vectors of all values."""
        if tuple(there) < tuple(here):
            return self.between(there, here).back()
        given = self._given(here, there)
        return added([term.span(given) for term in self._terms])

    def _given(self, here: Array, there: Array) -> Mapping[Symbol, Enclosed]:
        """Enclose every value variable and its change."""
        found = {}
        for symbol, first, last in zip(self._symbols, self._edges[:-1], self._edges[1:], strict=True):
            one, two = (item[first:last].reshape(1, *symbol.shape) for item in (here, there))
            value = Interval.of(np.minimum(one, two), np.maximum(one, two))
            found[symbol] = Enclosed(value, Interval.point(two) - Interval.point(one))
        return found

    def gradient_norm(self, units: dict[str, Array] | None = None) -> Proof:
        """Bound the norm of a row's gradient by all values, each over its unit, at any place; infinite without a proof.

        Parameters
        ----------
        units : dict of str to array, optional
            Of the values of each free variable, by its name.
        """
        known = {var: leaf(symbol) for var, symbol in self._known.items()}
        wholes = [lowered(graph, known) for graph, _ in self._graphs]
        rows = [RowLikelihood(name="", whole=whole, parts=tuple(parts_of(whole))) for whole in wholes]
        return gradient_norm(rows, units)

    def steepness(self) -> float | None:
        """Bound reach over distance for short steps from the initial point; None if that would take long."""
        if self.start.size > MOST_SHOWN:
            return None
        reaches = [self.between(self.start, self.start + NEAR * unit).reach for unit in np.eye(self.start.size)]
        return math.hypot(*reaches) / NEAR


def _points(symbols: Sequence[Symbol], references: PrivateReferences | None) -> Sequence[Point]:
    """Return the references by the symbols of private columns."""
    rows = () if references is None else references.rows
    return [
        {symbol: value.astype(float) for symbol, value in zip(symbols, row, strict=True) if value is not None}
        for row in rows
    ]


def _ways(term: RowTerm) -> Sequence[Variable]:
    """The density with PyMC's parameter checks, and without."""
    return list(dict.fromkeys([term.checked, term.logp]))


def _at_values(prior_model: Model) -> list[Variable]:
    """Return the free variables as functions of their values; those of a simplex by one operation that has a rule."""
    found = list(prior_model.replace_rvs_by_values(prior_model.free_RVs))
    for place, rv in enumerate(prior_model.free_RVs):
        if isinstance(prior_model.rvs_to_transforms[rv], SimplexTransform):
            value = prior_model.rvs_to_values[rv]
            whole = pt.concatenate([value, -pt.sum(value, axis=-1, keepdims=True)], axis=-1)
            found[place] = pt.special.softmax(whole, axis=-1)
    return found


__all__ = ["PrivateReferences", "Span", "StepProof", "no_rule", "unproved"]
