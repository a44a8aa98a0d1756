"""Values that a response may have given its predictors, with weights: expectations over it are sums over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from scipy.special import ndtr

from pymc_dp.errors import Problem
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.clamped import ClampedRV
from pymc_dp.inspection.findings import Findings, Observed
from pymc_dp.inspection.likelihoods import freeze_dims
from pymc_dp.inspection.row_columns import RowColumn
from pymc_dp.inspection.row_density import of_any_values, per_row, unchecked
from pymc_dp.inspection.row_terms import RowInspection, RowTerm
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.taint import trace_rows
from pymc_dp.inspection.triangular import filled

MOST_VALUES = 256
"""Values of one discrete response that are gone through."""
MOST_NODES = 4096
"""Values of all responses of a row together."""
NODES, MANY_NODES = 33, 129
"""Values of a continuous response; many of one that is computed from another, as a censored one, where scores jump."""
FARTHEST = {4: 4.5, 8: 5.5}
"""Standard deviations from the middle of the outermost nodes, by the bytes of a float."""
DRAWN = "Use a sampler that sees rows one by one, step=dp.SGLD() or dp.OPS()."


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """One observed variable, and how expectations over it are taken.

    Attributes
    ----------
    term : RowTerm
        Its log-likelihood.
    place : int
        Of its column among those of the inspection.
    column : RowColumn
    values : (n_nodes,) array or None
        Of a discrete response: all that it may be within its bounds; weights follow from the log-likelihood.
    below : (n_below,) array
        What else it may be: values from 0 that are clamped to the first one.
    levels, weights : (n_nodes,) array or None
        Of a continuous one: probabilities whose quantiles are the values, and the weight of each.
    quantile : RowTerm or None
        The quantile function: the column holds probabilities in it.
    before : frozenset of int
        Places of other responses that its likelihood depends on.
    """

    term: RowTerm
    place: int
    column: RowColumn
    values: Array | None = None
    below: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    levels: Array | None = None
    weights: Array | None = None
    quantile: RowTerm | None = None
    before: frozenset[int] = frozenset()

    @property
    def count(self) -> int:
        """Number of values."""
        found = self.levels if self.values is None else self.values
        assert found is not None
        return len(found)

    def weighted(self, logps: Array, mass: Array) -> Array:
        """Return the weights of all values, (..., n_nodes), given their log-likelihoods and what is below them.

        What is above the largest value is counted there, as rows are that are clamped to it.
        """
        if self.weights is not None:
            return np.broadcast_to(self.weights, logps.shape)
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
    Discrete responses are gone through from the least value of their bounds to the greatest. Continuous ones have the
    quantiles F⁻¹(Φ(z)) at 33 equidistant z with weights φ(z): a trapezoidal rule, whose error for a smooth score is far
    below a percent. No draw is made: what one row gives depends on no other, on no order and on no state.

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
            what = "another likelihood observes the same column, so that its values cannot be gone through"
            problems.append(Problem(where=item.name, what=what, remedy="Observe each column once."))
    ordered = _ordered(found)
    if len(ordered) < len(found):
        what, remedy = "observed variables depend on each other in a circle", "Write the density of one given others."
        problems.append(Problem(where="model", what=what, remedy=remedy))
    together = int(np.prod([one.count for one in ordered]))
    if together > MOST_NODES:
        what = f"its responses have {together} values together, and {MOST_NODES} can be gone through"
        problems.append(Problem(where="model", what=what, remedy="Give counts narrower bounds, or split the model."))
    return tuple(ordered), problems


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
    if rv.type.ndim != 1:
        what = f"it has {rv.type.ndim} dimensions, and expectations are taken over one value per row"
        return Problem(where=name, what=what, remedy="Write one observed variable for each value.")
    if np.dtype(rv.type.dtype).kind in "iub":
        values = _values(column)
        if values is None:
            what = f"its values cannot be gone through: it needs bounds of at most {MOST_VALUES} values"
            return Problem(where=name, what=what, remedy=f"Give them: dp.Domain(bounds={{{column.name!r}: (0, 60)}}).")
        assert column.bounds is not None
        kept = values >= column.bounds[0]
        return Response(values=values[kept], below=values[~kept], **shared)
    quantile = _quantile(inspection, term, rv)
    if quantile is None or quantile.flow.problems:
        what = f"PyMC has no quantile function for its distribution, {item.title}, with which to take expectations"
        return Problem(where=name, what=what, remedy=DRAWN)
    count = NODES if isinstance(rv.owner.op, RandomVariable) else MANY_NODES
    z = np.linspace(-1, 1, count) * FARTHEST[np.dtype(item.leaf.type.dtype).itemsize]
    weights = np.exp(-(z**2) / 2)
    return Response(levels=ndtr(z), weights=weights / weights.sum(), quantile=quantile, **shared)


def _values(column: RowColumn) -> Array | None:
    if column.bounds is None or not column.integer:
        return None
    low, high = map(int, column.bounds)
    values = np.arange(min(low, 0), high + 1)
    return values if 0 < len(values) <= MOST_VALUES else None


def _quantile(inspection: RowInspection, term: RowTerm, rv: Variable) -> RowTerm | None:
    model = inspection.model
    frozen = freeze_dims(Findings(model, inspection.domain))
    lengths = {length: frozen[length] for length in model.dim_lengths.values() if length in frozen}
    others = {other: model.rvs_to_values[other] for other in model.observed_RVs if other is not rv}
    free = dict(zip(model.free_RVs, inspection.stand_ins, strict=True))
    try:
        (plain,), _ = rebuild(list(filled([rv])), {**lengths, **others, **free})
        whole = of_any_values(lambda one, value: pm.icdf(one, value, warn_rvs=False), plain, model.rvs_to_values[rv])
    except NotImplementedError:
        return None
    graph = unchecked(per_row(whole, inspection.axis))
    leaves = {column.leaf: 0 for column in inspection.columns}
    known = {var: axis for var, axis in term.flow.axes.items() if var.owner is None}
    flow = trace_rows([graph], {**known, **leaves, **dict.fromkeys(inspection.stand_ins)})
    return RowTerm(name=term.name, logp=graph, checked=graph, flow=flow)


def _ordered(responses: list[Response]) -> list[Response]:
    """Order responses such that each comes after those it depends on; fewer, where there is no such order."""
    waiting, found = list(responses), list[Response]()
    while ready := [one for one in waiting if not one.before & {other.place for other in waiting}]:
        found.append(ready[0])
        waiting.remove(ready[0])
    return found


__all__ = ["MOST_NODES", "MOST_VALUES", "Response", "responses_of"]
