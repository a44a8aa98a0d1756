"""Values that a response may have given its predictors, with weights: expectations over it are sums over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy  # its parts are imported when first used
from pymc.distributions.censored import CensoredRV
from pymc.distributions.continuous import TruncatedNormalRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.mixture import _HurdleRV
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.errors import Problem
from pymc_dp.gradients.vectors import vectors_at
from pymc_dp.gradients.whole_values import MOST_SPREAD, MOST_VALUES, some_within, too_many, values_within, widths_of
from pymc_dp.inspection.findings import Findings, Observed, RowInspection, RowTerm, by_hand
from pymc_dp.inspection.integrated import given_latents, given_points, is_integrated, log_weights_of, of_rows
from pymc_dp.inspection.likelihoods import freeze_dims, static_lengths
from pymc_dp.inspection.made_by_pymc import without_arrays
from pymc_dp.inspection.row_density import ClampedRV, of_any_values, per_row, unchecked
from pymc_dp.inspection.rows import Array, Column, array_leaves, rebuild, shape_of
from pymc_dp.inspection.taint import trace_rows
from pymc_dp.simulation.rows import in_order

MOST_NODES = 4096
"""Values of all responses of a row together that are gone through; of more, some are taken."""
NODES, MANY_NODES = 33, 129
"""Values of a continuous response; many of one that is computed from another, as a censored one, where scores jump."""
FARTHEST = {4: 4.5, 8: 5.5}
"""Standard deviations from the middle of the outermost nodes, by the bytes of a float."""
COUNTED = ("multinomial", "dirichlet_multinomial")
"""Likelihoods of rows of counts of several levels, which add up to a total."""
VALLEYS = 2
"""Places between two peaks that are looked for in the density of a mixture, or of one that is not known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """One observed variable, and how expectations over it are taken.

    Attributes
    ----------
    term : RowTerm
        Its log-likelihood.
    place : int
        Of its column among those of the inspection.
    column : Column
    values : (n_nodes,) array or None
        Of a discrete response: what it may be within its bounds; weights follow from the log-likelihood.
    widths : (n_nodes,) array or None
        For how many values each of `values` stands; None where these are all.
    below : (n_below,) array
        What else it may be: values from 0 that are clamped to the first one.
    levels, weights : (n_nodes,) array or None
        Of a continuous one: probabilities whose quantiles are the values, and the weight of each.
    quantile : RowTerm or None
        The quantile function: the column holds probabilities in it.
    breaks : tuple of RowTerm or None
        Of a continuous one without a quantile function: where its density may jump.
    atoms, valleys : int
        How many of the breaks, the first ones, have a positive probability; places between two peaks to look for.
    before : frozenset of int
        Places of other responses that its likelihood depends on.
    entries : int
        How many there are in a row, each independent of the others given the predictors, and given the latents of the
        row that were integrated out, if `given` is not None.
    points : RowTerm or None
        Of a discrete one with such latents: the log-likelihood with the weight of each point, (n_rows, n_points).
    given, log_weights : RowTerm or None
        Of a discrete one with several entries and such latents: log-likelihoods of the entries at each point of the
        quadrature, (n_rows, n_points, entries), and the logarithms of the weights of these, (n_rows, n_points).
    shares : RowTerm or None
        Of counts of several levels, whose entries add up to a total: one positive number per level, to which its
        probability is proportional, and the total, (n_rows, entries + 1).
    by_hand : bool
        Whether a density was written by hand, and need not end where values do.
    moves : bool
        Whether the bounds of a continuous one without quantiles are moved, row by row, so that its median is in their
        middle.
    varied : bool
        Whether the probabilities of such a row are drawn themselves, from a Dirichlet distribution of these numbers.
    together : bool
        Whether the quantile function is of all entries of a continuous one at independent probabilities; where
        `log_weights` are those of points, at each of these.
    """

    term: RowTerm
    place: int
    column: Column
    values: Array | None = None
    widths: Array | None = None
    below: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    levels: Array | None = None
    weights: Array | None = None
    quantile: RowTerm | None = None
    breaks: tuple[RowTerm, ...] | None = None
    atoms: int = 0
    valleys: int = 0
    before: frozenset[int] = frozenset()
    entries: int = 1
    points: RowTerm | None = None
    given: RowTerm | None = None
    log_weights: RowTerm | None = None
    shares: RowTerm | None = None
    by_hand: bool = False
    moves: bool = False
    varied: bool = False
    together: bool = False

    def clamped(self, values: Array, weights: Array | None) -> Array:
        """Return values in the type of the column, (n_rows, n_values, entries).

        Values that are quantiles stay as they are, also beyond the bounds: without clipping, scores then add up to
        those of the clamped rows. All others are within the bounds.

        Parameters
        ----------
        values : (n_rows, n_values, entries) array
        weights : array of that shape, or None
            None: of a discrete response.
        """
        if self.levels is not None:
            return replace(self.column, bounds=None).clamped(values)
        if not self.moves or weights is None or self.column.bounds is None:
            return self.column.clamped(values)
        order = np.argsort(values, axis=1)
        below = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        middle = np.take_along_axis(order, (below < below[:, -1:] / 2).sum(axis=1, keepdims=True), axis=1)
        low, high = self.column.bounds
        middle, half = np.take_along_axis(values, middle, axis=1), high / 2 - low / 2
        return replace(self.column, bounds=None).clamped(np.clip(values, middle - half, middle + half))

    @property
    def joint(self) -> bool:
        """Whether its entries depend on each other."""
        return self.given is not None or self.shares is not None or self.together

    @property
    def terms(self) -> tuple[RowTerm, ...]:
        """All graphs of it."""
        found = (self.term, self.quantile, *(self.breaks or ()), self.points, self.given, self.log_weights, self.shares)
        return tuple(one for one in found if one is not None)

    @property
    def count(self) -> int:
        """Number of values of an entry."""
        if self.breaks is not None:
            from pymc_dp.gradients.density_nodes import count_of  # Numba, which most models do not need

            return count_of(len(self.breaks) + len(self.limits), self.atoms, self.valleys)
        if self.together:
            from pymc_dp.gradients.joint import TAKEN

            return TAKEN
        found = self.levels if self.values is None else self.values
        assert found is not None
        return len(found)

    @property
    def limits(self) -> tuple[float, ...]:
        """Where its density has a break beside `breaks`: at its bounds, and at 0."""
        return (0.0,) if self.column.bounds is None else (0.0, *self.column.bounds)

    def weighted(self, logps: Array, mass: Array) -> Array:
        """Return the weights of all values, (..., n_nodes), given their log-likelihoods and what is below them.

        What is above the largest value is counted there, as rows are that are clamped to it.
        """
        if self.weights is not None:
            return np.broadcast_to(self.weights, logps.shape)
        if self.widths is not None:
            found = np.exp(logps - logps.max(axis=-1, keepdims=True)) * self.widths
            return np.asarray(found / found.sum(axis=-1, keepdims=True))
        found = np.exp(logps)
        found[..., 0] += mass
        assert self.values is not None
        if self.values[0] < 0:
            return np.asarray(found / found.sum(axis=-1, keepdims=True))
        found[..., -1] = np.clip(1 - found[..., :-1].sum(axis=-1), 0.0, 1.0)
        return found


def responses_of(inspection: RowInspection) -> tuple[tuple[Response, ...], list[Problem]]:
    """Return the responses of a row, each after those that it depends on, and what cannot be done. Reads no row.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.

    Notes
    -----
    Discrete responses are gone through from the least value of their bounds to the greatest; where bounds hold more
    than 256, some values, 512 at most, stand for those around them, by a trapezoidal rule. Continuous ones have the
    quantiles F⁻¹(Φ(z)) at 33 equidistant z with weights φ(z), where PyMC has F⁻¹: a trapezoidal rule, whose error for a
    smooth score is far below a percent. Elsewhere values and weights follow from the log-density (`density_nodes`). No
    draw is made: what one row gives depends on no other, on no order and on no state.

    References
    ----------
    Trefethen, Weideman (2014), doi 10.1137/130932132 (trapezoidal rule).
    """
    problems, found = list[Problem](), list[Response]()
    leaves = [item.leaf for item in inspection.observed]
    for term, item in zip(inspection.terms, inspection.observed, strict=True):
        one = _response(inspection, term, item)
        if isinstance(one, Problem):
            problems.append(one)
        else:
            found.append(one)
        if leaves.count(item.leaf) > 1:
            what = "another likelihood observes the same column, so its values cannot be enumerated"
            problems.append(Problem(where=item.name, what=what, remedy="Observe each column once."))
    ordered, circular = in_order(found, lambda one, others: bool(one.before & {other.place for other in others}))
    if circular:
        what, remedy = "observed variables depend on each other in a circle", "Write the density of one given others."
        problems.append(Problem(where="model", what=what, remedy=remedy))
    return tuple(ordered), problems


def in_turn(responses: Sequence[Response]) -> bool:
    """Whether responses are taken one after the other, because they depend on each other and are too many together."""
    return any(one.joint for one in responses) or (any(one.before for one in responses) and not any_together(responses))


def any_together(responses: Sequence[Response]) -> bool:
    """Whether all values that responses may have together are gone through; else some are taken."""
    count = math.prod(one.count for one in responses)
    return count <= MOST_NODES and all(one.entries == 1 for one in responses)


def _response(inspection: RowInspection, term: RowTerm, item: Observed) -> Response | Problem:
    rv, name = item.variable, item.name
    place, column = next((k, one) for k, one in enumerate(inspection.columns) if one.leaf is item.leaf)
    others = {one.leaf: k for k, one in enumerate(inspection.columns) if k != place}
    seen = set(ancestors([term.logp]))
    observed = {one.leaf for one in inspection.observed}
    shared: dict[str, Any] = {
        "term": term,
        "place": place,
        "column": column,
        "before": frozenset(k for leaf, k in others.items() if leaf in seen and leaf in observed),
    }
    if isinstance(rv.owner.op, ClampedRV):
        return Problem(where=name, what="its log-likelihood is clamped by dp.clamp", remedy="Leave dp.clamp out.")
    mixed = is_integrated(rv) and rv.type.ndim == 2 and given_latents(rv).owner.op.ndim_supp == 0
    if rv.type.ndim == 2 and getattr(rv.owner.op, "name", "") in COUNTED:
        return _counts(inspection, term, rv, shared)
    if rv.type.ndim == 2:
        shared["entries"] = shape_of(item.leaf)[1]
    apart = term.logp.type.ndim == rv.type.ndim < 3
    if not apart and not (mixed and np.dtype(rv.type.dtype).kind in "iub"):
        return _vectors(inspection, term, rv, shared)
    if np.dtype(rv.type.dtype).kind in "iub":
        values = values_within(column)
        if values is None:
            many = None if mixed else some_within(column)
            if many is not None:
                return Response(values=many, widths=widths_of(many), **shared)
            return too_many(name, column, MOST_VALUES if mixed else MOST_SPREAD)
        assert column.bounds is not None
        kept = values >= column.bounds[0]
        if is_integrated(rv):
            shared["points"] = _of_rows(inspection, term, rv, _with_weights)
        if mixed:
            shared["given"] = _of_rows(inspection, term, rv, _by_points)
            shared["log_weights"] = _of_rows(inspection, term, rv, _weights_of_points)
        return Response(values=values[kept], below=values[~kept], **shared)
    quantile = None if _is_truncated(rv) else _of_rows(inspection, term, rv, _icdf)
    if quantile is None or quantile.flow.problems:
        return _by_density(inspection, term, rv, shared)
    count = NODES if isinstance(rv.owner.op, RandomVariable) else MANY_NODES
    z = np.linspace(-1, 1, count) * FARTHEST[np.dtype(item.leaf.type.dtype).itemsize]
    weights = np.exp(-(z**2) / 2)
    return Response(levels=scipy.special.ndtr(z), weights=weights / weights.sum(), quantile=quantile, **shared)


def _counts(inspection: RowInspection, term: RowTerm, rv: Variable, shared: Mapping[str, Any]) -> Response | Problem:
    """Return the response of a likelihood of counts of several levels."""
    column = shared["column"]
    values = values_within(column)
    if values is None or column.bounds is None or column.bounds[0] != 0:
        return too_many(term.name, column, MOST_VALUES)
    shares = _of_rows(inspection, term, rv, _shares)
    if shares is None or shares.flow.problems:
        what = "how its rows are distributed is not known to follow from each row alone"
        return Problem(where=term.name, what=what, remedy="Give n and the probabilities as columns and parameters.")
    varied = rv.owner.op.name == "dirichlet_multinomial"
    return Response(values=values, entries=shape_of(column.leaf)[1], shares=shares, varied=varied, **shared)


def _vectors(inspection: RowInspection, term: RowTerm, rv: Variable, shared: Mapping[str, Any]) -> Response | Problem:
    """Return a continuous response whose entries depend on each other."""
    made = _of_rows(inspection, term, rv, vectors_at) if rv.type.ndim == 2 else None
    if made is None or made.flow.problems:
        what = "the values of a row depend on each other, or have several dimensions"
        return Problem(where=term.name, what=what, remedy="Write the density of each value given those before it.")
    weights = _of_rows(inspection, term, rv, _weights_of_points) if is_integrated(rv) else None
    return Response(quantile=made, log_weights=weights, together=True, **shared)


def _with_weights(rv: Variable, value: Variable) -> Variable:
    return (log_weights_of(rv) + of_rows(given_points(rv, value))).dimshuffle(1, 0)


def _weights_of_points(rv: Variable, value: Variable) -> Variable:
    return log_weights_of(rv).T


def _shares(rv: Variable, value: Variable) -> Variable:
    """Return the numbers that probabilities of levels are proportional to, and the total."""
    total, own = rv.owner.op.dist_params(rv.owner)
    parts = own + pt.zeros_like(total)[..., None], total[..., None] + pt.zeros_like(own[..., :1])
    return pt.concatenate([part.astype("float64") for part in parts], axis=-1)


def _by_density(inspection: RowInspection, term: RowTerm, rv: Variable, shared: Mapping[str, Any]) -> Response:
    """Return a response whose values follow from its log-density."""
    op = rv.owner.op
    censored = isinstance(op, CensoredRV)
    ends = [place for place in (1, 2) if _is_finite(rv.owner.inputs[place])] if censored else []
    found = [_of_rows(inspection, term, rv, partial(_end, place)) for place in ends]
    breaks = tuple(one for one in found if one is not None and not one.flow.problems)
    return Response(
        breaks=breaks,
        atoms=1 if isinstance(op, _HurdleRV) else len(breaks),
        valleys=0 if isinstance(op, RandomVariable) and not isinstance(op, CustomDistRV) else VALLEYS,
        by_hand=isinstance(op, CustomDistRV),
        **shared,
    )


def _by_points(rv: Variable, value: Variable) -> Variable:
    """Return the log-likelihoods of entries at each point of a quadrature, rows first."""
    return given_points(rv, value).dimshuffle(1, 0, 2)


def _is_truncated(rv: Variable) -> bool:
    """Whether it is truncated: PyMC's quantiles of such need bounds that are constants, where any arrays are taken."""
    return isinstance(rv.owner.op, TruncatedRV | TruncatedNormalRV)


def _is_finite(end: Variable) -> bool:
    return not (isinstance(end, Constant) and end.type.ndim == 0 and np.isinf(end.data))


def _icdf(rv: Variable, levels: Variable) -> Variable:
    return pm.icdf(rv, levels, warn_rvs=False)


def _end(place: int, rv: Variable, value: Variable) -> Variable:
    """Return where a variable is censored."""
    return rv.owner.inputs[place].astype(value.type.dtype)


def _of_rows(
    inspection: RowInspection, term: RowTerm, rv: Variable, made: Callable[[Variable, Variable], Variable]
) -> RowTerm | None:
    """Return what is made of an observed variable and its column, as a graph over rows; None where PyMC has none."""
    model = inspection.model
    frozen = freeze_dims(Findings(model, inspection.domain, row_dims=inspection.row_dims))
    lengths = static_lengths(model, frozen)
    others = {other: model.rvs_to_values[other] for other in model.observed_RVs if other is not rv}
    free = dict(zip(model.free_RVs, inspection.stand_ins, strict=True))
    try:
        (plain,), _ = rebuild(list(without_arrays([rv], [*others, *free])), {**lengths, **others, **free})
        whole = of_any_values(made, plain, model.rvs_to_values[rv])
    except NotImplementedError:
        return None
    graph = unchecked(per_row(whole, inspection.axis))
    leaves = {column.leaf: 0 for column in inspection.columns}
    if inspection.n_rows == 1 and by_hand(rv, [*free, *others]) and _numbers(graph, inspection).difference(leaves):
        return None  # a function in Python may have written the only row into it
    known = {var: axis for var, axis in term.flow.axes.items() if var.owner is None}
    flow = trace_rows([graph], {**known, **leaves, **dict.fromkeys(inspection.stand_ins)})
    return RowTerm(name=term.name, logp=graph, checked=graph, flow=flow)


def _numbers(graph: Variable, inspection: RowInspection) -> set[Variable]:
    """Return the constant arrays of a graph, of one element too."""
    return {one for one in array_leaves([graph], inspection.stand_ins, single=True) if isinstance(one, Constant)}


__all__ = ["MOST_NODES", "Response", "any_together", "in_turn", "responses_of"]
