"""The score of one row as compiled functions: predictors of its responses, their Jacobian, and derivatives at them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.gradients.by_points import ByPoints
from pymc_dp.gradients.covariate_cells import CovariateCells, cells_of
from pymc_dp.gradients.cut import NEVER, least_cut, sizes_of
from pymc_dp.gradients.function import Function
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.joint import MANY, OWN, TAKEN, count_of
from pymc_dp.gradients.responses import MOST_NODES, Response, any_together, in_turn
from pymc_dp.gradients.row_slopes import joined, long_axes, scores_of, slopes_of_entries
from pymc_dp.inspection.findings import RowTerm
from pymc_dp.inspection.one_row import frozen_shared, with_rows
from pymc_dp.inspection.rows import Array, reached, rebuild, shape_of
from pymc_dp.samplers.row_function import RowFunction, vectorised
from pymc_dp.transforms.prior_model import prior_model

MOST_PREDICTORS = 32
"""Predictors of one row: its curvature is gone through in that many dimensions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowScores:
    """Compiled functions over rows, each of which depends on its own row alone. Nothing in them is private.

    The score of a row is Jᵀ r: J, the Jacobian of its predictors with respect to the interface parameters, depends on
    its covariates, and r, the derivative of its log-likelihood with respect to the predictors, on its responses too.

    Attributes
    ----------
    interface : Interface
    count : int
        Number of predictors q.
    predicted : Function
        (position, *columns) to predictors (n, q) and their Jacobian (n, q, d).
    scored : Function
        (predictors, *columns) to derivatives (n, q) and the log-likelihood of each response, (n,) each.
    by_values : Function or None
        Of a single discrete response: (predictors, *columns, values) to derivatives (n, n_values, q) and
        log-likelihoods (n, n_values). What does not depend on the value is computed once for a row, and what does not
        depend on the row once for a value.
    by_points : ByPoints or None
        Of a single discrete response with latents, the same; values may be (n_values, entries), and if they are not
        it is `by_values` too.
    by_own_values : Function or None
        Of a single continuous response, whose values are other ones for each row: the same, of values (n, n_values).
    quantiles : tuple of Function or None
        Of each response, (predictors, *columns) to values (n, *entries); its column holds probabilities. Where latents
        were integrated out, to (n, n_points * (entries + 1)): values at every point, and logarithms of their weights.
    breaks : tuple of Function or None
        Of each response with a density, (predictors, *columns) to where that may jump, (n, entries, n_breaks).
    densities : tuple of Function or None
        Of each such response, (predictors, *columns, values) to the log-likelihood of every entry, (n, n_values,
        entries), of values (n, n_values) or (n, n_values, entries): these are not read from its column.
    separate : tuple of Function
        Of each response, where some of their values are taken: (predictors, *columns) to derivatives (n, entries, q)
        and log-likelihoods (n, entries).
    given : tuple of Function or None
        Of each response with latents: (predictors, *columns) to log-likelihoods (n, n_points * entries) of its entries
        at every point of the quadrature, and logarithms (n, n_points) of the points' weights.
    shares : tuple of Function or None
        Of each response of counts of levels: (predictors, *columns) to what probabilities of levels are proportional
        to, and the total, (n, entries + 1).
    """

    interface: Interface
    count: int
    predicted: Function
    scored: Function
    by_values: Function | ByPoints | None
    by_own_values: Function | None
    by_points: ByPoints | None
    quantiles: tuple[Function | None, ...]
    breaks: tuple[Function | None, ...]
    densities: tuple[Function | None, ...]
    separate: tuple[Function, ...]
    given: tuple[Function | None, ...]
    shares: tuple[Function | None, ...]

    @property
    def nodes(self) -> int:
        """How many values of its responses an expectation of a row is over."""
        responses = self.interface.responses
        if in_turn(responses) and not self.all_patterns:
            vectors = any(one.together for one in responses)
            if self.alike:
                return MANY if vectors else TAKEN
            return OWN if vectors or self.cells is None else TAKEN
        counts = [one.count for one in responses for _ in range(one.entries)]
        return count_of(counts) if self.separate else math.prod(counts)

    @cached_property
    def cells(self) -> CovariateCells | None:
        """Rows of which the model says the same; None where covariates have no end of values.

        What is looked at before the responses of a row are replaced must read none of them: a total that is computed
        from the counts would be that of one row for all. Predictors depend on no response (`_predictors`).
        """
        columns = self.interface.inspection.columns
        before = _read((*self.breaks, *self.shares), len(columns))
        after = _read(
            (self.predicted, self.scored, *self.quantiles, *self.densities, *self.separate, *self.given), len(columns)
        )
        own = {one.place for one in self.interface.responses}
        if before & own:
            return None
        return cells_of(columns, before | after, own)

    @property
    def alike(self) -> bool:
        """Whether rows that are taken in turn differ in their responses alone: the model says the same of all."""
        return in_turn(self.interface.responses) and self.cells is not None and not self.cells.crossed

    @property
    def all_patterns(self) -> bool:
        """Whether all values of the entries of one response with latents are gone through."""
        (one, *more) = self.interface.responses
        return one.given is not None and not more and one.count**one.entries <= (MOST_NODES if self.alike else TAKEN)

    def observed(self, predictors: Array, columns: Sequence[Array]) -> list[Array]:
        """Return what `scored` does, by the function that is compiled anyway."""
        if self.by_own_values is None:
            return self.scored(predictors, *columns)
        (one,) = self.interface.responses
        return [found[:, 0] for found in self.by_own_values(predictors, *columns, columns[one.place][:, None])]

    @classmethod
    def of(cls, interface: Interface, *, mode: str = "NUMBA") -> RowScores:
        """Take the likelihoods apart and compile. Reads no private value.

        Raises
        ------
        UnsupportedModelError
            If an operation has no gradient or no compiled code, if there are too many predictors, or if rows do not
            separate on dummy rows.
        """
        graphs = _graphs(interface)
        predictors = _predictors(interface, graphs)
        width = sum(size for _, size in predictors)
        if width > MOST_PREDICTORS:
            what = f"the likelihood of a row has {width} predictors, but at most {MOST_PREDICTORS} are handled"
            remedy = "Use fewer categories or outputs, or a sampler that sees rows one by one."
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
        return _compiled(interface, graphs, predictors, mode)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Graphs:
    """Of one row: scalars over placeholders of its columns and of the parts of the interface."""

    rows: RowFunction
    logps: tuple[Variable, ...]
    entries: tuple[Variable, ...]
    """Log-likelihoods of each response as a vector."""
    quantiles: tuple[Variable | None, ...]
    breaks: tuple[Variable | None, ...]
    points: tuple[Variable | None, ...]
    """Of each response with latents: log-likelihoods with the weights of points, as vectors."""
    given: tuple[tuple[Variable, Variable] | None, ...]
    """Of each response with latents: log-likelihoods at the points, and the logarithms of weights, as vectors."""
    shares: tuple[Variable | None, ...]

    @property
    def ends(self) -> list[Variable]:
        """All graphs of rows."""
        latents = [graph for pair in self.given if pair is not None for graph in pair]
        found = (*self.logps, *self.entries, *self.quantiles, *self.breaks, *self.points, *latents, *self.shares)
        return [one for one in found if one is not None]


def _graphs(interface: Interface) -> _Graphs:
    inspection, responses = interface.inspection, interface.responses
    rows = RowFunction.of(inspection, prior_model(inspection), interface.stands)

    def of_row(term: RowTerm, entries: int) -> Variable:
        graph = raw(term)
        return pt.broadcast_to(graph, (1, entries) if graph.type.ndim == 2 else (entries,)).reshape((entries,))

    def raw(term: RowTerm) -> Any:
        graph = with_rows(term, {leaf: row[None] for leaf, row in rows.one.items()}, interface.stands)
        return frozen_shared(graph, inspection.hidden)

    def quantile(one: Response) -> Variable | None:
        if one.quantile is None or one.log_weights is None:
            return None if one.quantile is None else of_row(one.quantile, one.entries)
        return pt.concatenate([raw(term).ravel() for term in (one.quantile, one.log_weights)])

    found = _Graphs(
        rows=rows,
        logps=tuple(rows.terms[one.term.name] for one in responses),
        entries=tuple(of_row(one.term, 1 if one.joint else one.entries) for one in responses),
        quantiles=tuple(map(quantile, responses)),
        breaks=tuple(
            pt.stack([of_row(term, one.entries) for term in one.breaks], axis=-1) if one.breaks else None
            for one in responses
        ),
        points=tuple(None if one.points is None else raw(one.points).ravel() for one in responses),
        given=tuple(
            None
            if one.given is None or one.log_weights is None
            else (raw(one.given).ravel(), raw(one.log_weights).ravel())
            for one in responses
        ),
        shares=tuple(None if one.shares is None else of_row(one.shares, one.entries + 1) for one in responses),
    )
    if inspection.hidden & set(reached(found.ends)):
        raise PrivacyError("Private data would stay within a compiled function; this is an error of pymc_dp.")
    return found


def _predictors(interface: Interface, graphs: _Graphs) -> list[tuple[tuple[Variable, ...], int]]:
    """Return the fewest numbers of a row through which parameters meet responses: groups alike, and sizes."""
    ends = graphs.ends
    held = list(graphs.rows.one.values())
    responses = [graphs.rows.one[interface.inspection.columns[one.place].leaf] for one in interface.responses]
    after = _descendants(ends, responses)
    shapes = {var: tuple(var.type.shape) for var in held} | {part.value: part.shape for part in interface.parts}

    def costs(variables: Sequence[Variable]) -> dict[Variable, int]:
        smooth = [var for var in variables if np.dtype(getattr(var.type, "dtype", "bool")).kind == "f"]
        return dict.fromkeys(variables, NEVER) | sizes_of(smooth, shapes)

    values = [part.value for part in interface.parts]
    cut = least_cut(ends, values, within=lambda var: var not in after, costs=costs)
    sizes = sizes_of([group[0] for group in cut.groups], shapes)
    return [(group, sizes[group[0]]) for group in cut.groups]


def _read(calls: Sequence[Function | None], count: int) -> set[int]:
    """Return the places of the columns that functions read: inputs after the first, and before values."""
    places = set[int]().union(*(call.places for call in calls if call is not None))
    return {place - 1 for place in places if 0 < place <= count}


def _descendants(ends: Sequence[Variable], sources: Sequence[Variable]) -> set[Variable]:
    found = set(sources)
    for node in toposort(list(ends)):
        if not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found | set(ends)


def _compiled(
    interface: Interface, graphs: _Graphs, predictors: list[tuple[tuple[Variable, ...], int]], mode: str
) -> RowScores:
    rows, width = graphs.rows, sum(size for _, size in predictors)
    one = pt.tensor("predictors", shape=(width,), dtype="float64")
    many = pt.tensor("predictors", shape=(None, width), dtype="float64")
    stands, parts, start = dict[Variable, Variable](), dict[Variable, Variable](), 0
    for group, size in predictors:
        part = pt.tensor(dtype="float64", shape=group[0].type.shape)
        parts[part] = _part(one, start, size, group[0])
        stands |= {var: part.astype(var.type.dtype) for var in group}
        start += size
    over = dict(zip(rows.one.values(), rows.many, strict=True)) | {one: many}

    def ends(*outputs: Variable) -> list[Variable]:
        return list(clone_replace([graph.astype("float64") for graph in outputs], parts, rebuild_strict=False))

    def compiled(*outputs: Variable, later: bool = False) -> Function:
        return Function([many, *rows.many], [vectorised(graph, over) for graph in ends(*outputs)], mode, later=later)

    def each(found: Sequence[Variable | None]) -> tuple[Function | None, ...]:
        return tuple(None if graph is None else compiled(rebuild([graph], stands)[0][0]) for graph in found)

    logps = rebuild(list(graphs.logps), stands)[0]
    total = pt.add(*logps) if len(logps) > 1 else logps[0]
    slopes = scores_of([total], list(parts))[0]
    responses = interface.responses
    along = partial(_along_values, rows, {one: many}, mode=mode)
    by_points: ByPoints | None = None
    by_values: Function | ByPoints | None = None
    by_own_values: Function | None = None
    (first, *more), (points, *_) = responses, graphs.points
    if points is not None and not more:
        terms = rebuild([points], stands)[0][0]
        shares = pt.tensor("shares", shape=terms.type.shape, dtype="float64")
        weighed = scores_of([(shares * terms).sum()], list(parts))[0]
        logs, slopes_by_shares = along(first, ends(terms)), along(first, ends(weighed), shares)
        by_points = ByPoints(logs=logs, slopes=slopes_by_shares, points=int(terms.type.shape[0] or 1))
    if by_points is not None and first.entries == 1:
        by_values = by_points
    elif not more and not first.joint and first.entries == 1:
        if first.values is not None:
            by_values = along(first, ends(slopes, *logps))
        elif rows.one[first.column.leaf].type.ndim == 0:
            by_own_values = along(first, ends(slopes, *logps))
    return RowScores(
        interface=interface,
        count=width,
        predicted=_predicted(interface, rows, [(group[0], size) for group, size in predictors], mode),
        scored=compiled(
            slopes, *logps, later=by_own_values is not None or (by_values is not None and first.widths is None)
        ),
        by_values=by_values,
        by_own_values=by_own_values,
        by_points=by_points,
        quantiles=each(graphs.quantiles),
        breaks=each(graphs.breaks),
        densities=tuple(
            None if one.breaks is None else along(one, ends(rebuild([own], stands)[0][0]))
            for one, own in zip(responses, graphs.entries, strict=True)
        ),
        separate=()
        if in_turn(responses) or any_together(responses)
        else tuple(_separate(own, stands, list(parts), compiled) for own in graphs.entries),
        given=tuple(None if pair is None else compiled(*rebuild(pair, stands)[0]) for pair in graphs.given),
        shares=each(graphs.shares),
    )


def _along_values(
    rows: RowFunction,
    over: Mapping[Variable, Any],
    response: Response,
    graphs: Sequence[Variable],
    *more: Variable,
    mode: str,
) -> Function:
    """Compile graphs of one row over pairs of rows and values of a response: along two new axes.

    Values of a discrete response are the same ones for all rows, those of a continuous one are of each row. What `more`
    there is belongs to a row and a value.
    """
    leaf, own = response.column.leaf, response.values is None
    shape: tuple[int | None, ...] = (None, *shape_of(leaf)[1:])
    values = pt.tensor("values", shape=(None, *shape) if own else shape, dtype=leaf.type.dtype)
    columns = dict(zip(rows.one.values(), rows.many, strict=True))
    along = {one: _with_axis(many, 1) for one, many in (columns | dict(over)).items()}
    along[rows.one[leaf]] = values if own else values[None]
    along |= {one: pt.tensor(shape=(None, None, *one.type.shape), dtype=one.type.dtype) for one in more}
    outputs = [vectorised(graph, along) for graph in graphs]
    return Function([*over.values(), *rows.many, values, *(along[one] for one in more)], outputs, mode)


def _with_axis(graph: Any, axis: int) -> Variable:
    order: list[Any] = list(range(graph.type.ndim))
    found: Variable = graph.dimshuffle([*order[:axis], "x", *order[axis:]])
    return found


def _separate(
    entries: Variable, stands: Mapping[Variable, Variable], parts: Sequence[Variable], compiled: Callable[..., Function]
) -> Function:
    """Compile the derivatives of each entry."""
    logps = rebuild([entries], stands)[0][0]
    return compiled(pt.stack(scores_of([logps[place] for place in range(entries.type.shape[0])], parts)), logps)


def _part(flat: Variable, start: int, size: int, like: Variable) -> Any:
    """Take some of the numbers of a vector in the shape of a variable.

    Axes of length 1 are added, and not reached by a reshape: over rows that would ask for checks of lengths.
    """
    axes = long_axes(like)
    if not axes:
        part = flat.dimshuffle() if flat.type.shape == (1,) else flat[start]
    elif len(axes) == 1:
        part = flat[start : start + size]
    else:
        return flat[start : start + size].reshape(like.type.shape if None not in like.type.shape else like.shape)
    return part.dimshuffle([axes.index(axis) if axis in axes else "x" for axis in range(like.type.ndim)])


def _predicted(interface: Interface, rows: RowFunction, cut: Sequence[tuple[Variable, int]], mode: str) -> Function:
    """Compile the predictors of rows and their Jacobian."""
    flat = joined([var for var, _ in cut])
    values = [part.value for part in interface.parts]
    slopes = [of_entry for var, size in cut for of_entry in slopes_of_entries(var, size, values)]
    jacobian = joined([slope for of_entry in slopes for slope in of_entry])
    jacobian = jacobian.reshape((len(slopes), interface.size)) if len(slopes) > 1 else jacobian[None]
    position = pt.tensor("position", shape=(interface.size,), dtype="float64")
    at: Mapping[Variable, Variable] = {
        part.value: position[part.start : part.start + part.size].reshape(part.shape) for part in interface.parts
    }
    outputs = clone_replace([rows.over_rows(flat), rows.over_rows(jacobian)], at, rebuild_strict=False)
    return Function([position, *rows.many], outputs, mode)


__all__ = ["MOST_PREDICTORS", "RowScores"]
