"""Observed variables whose latents are integrated out: draws at a point of a quadrature, and the density over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.shape_utils import _change_dist_size, change_dist_size
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.compile.mode import optdb
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter, out2in

from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.row_density import density, guarded, per_row, replaced, vectorized
from pymc_dp.inspection.rows import rebuild


class Chosen(Op):
    """A latent of every row, at the point of the quadrature that was chosen for it.

    Takes (n_points, n_rows, ...) points, of which one row may stand for all, and (n_rows,) places of points. An
    operation of its own, so that what is computed from the latent can be found, and computed at every point instead.
    """

    __props__ = ()

    @override
    def make_node(self, *inputs: Any) -> Apply[Any, Any]:
        points, place = inputs
        shape = (place.type.shape[0], *points.type.shape[2:])
        return Apply(self, [points, place], [pt.TensorType(points.type.dtype, shape)()])

    @override
    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return [(shapes[1][0], *shapes[0][2:])]

    @override
    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        points, place = inputs
        rows = np.arange(len(place)) if points.shape[1] != 1 else 0
        output_storage[0][0] = points[place, rows]


class IntegratedRV(MeasurableOp, Op):
    """A random variable with rows, its latents summed over the points of a quadrature.

    Its inputs are the variable given its latents as drawn, the logarithms of the points' weights, (n_points, n_rows) or
    (n_points, 1), and these latents (`Chosen`). A draw is that of the first input. The log-density has one number per
    row: the entries of a row are independent given the latents.
    """

    __props__ = ("ndim_supp",)
    _print_name = ("Integrated", "\\operatorname{Integrated}")
    view_map = {0: [0]}  # noqa: RUF012  (PyTensor's own declaration)

    def __init__(self, ndim_supp: int) -> None:
        self.ndim_supp = ndim_supp

    @override
    def make_node(self, *inputs: Any) -> Apply[Any, Any]:
        return Apply(self, list(inputs), [inputs[0].type()])

    @override
    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return [shapes[0]]

    @override
    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = inputs[0]

    def batch_ndim(self, node: Any) -> int:
        """Return how many axes do not belong to one row."""
        return int(node.outputs[0].type.ndim) - self.ndim_supp


def integrated(given: Variable, log_weights: Variable, latents: Sequence[Variable]) -> Variable:
    """Return a random variable, given latents that were drawn, with these integrated out."""
    found: Variable = IntegratedRV(given.type.ndim - 1)(given, log_weights, *latents)
    return found


def given_latents(rv: Variable) -> Variable:
    """Return the random variable itself, or what it is given the latents that were integrated out of it."""
    return rv.owner.inputs[0] if is_integrated(rv) else rv


def given_points(rv: Variable, value: Variable) -> Variable:
    """Return the log-density of every value at every point: (n_points, n_rows, ...), an entry for each of a row."""
    given, _, *latents = rv.owner.inputs
    return at_points(given, value, latents)


def log_weights_of(rv: Variable) -> Variable:
    """Return the logarithms of the weights of the points, (n_points, n_rows) or (n_points, 1)."""
    found: Variable = rv.owner.inputs[1]
    return found


def at_points(
    given: Variable,
    value: Variable,
    latents: Sequence[Variable],
    of: Callable[[Variable, Variable], Variable] = density,
) -> Variable:
    """Return the log-density of a variable, or what else is made `of` it, with its latents at every point.

    Checks of parameters that data or latents enter are left out, as one row would decide for all others.
    """
    stand_ins = {one: one.type() for one in latents}
    (plain,), _ = rebuild([given], stand_ins)
    points = {stand_in: one.owner.inputs[0] for one, stand_in in stand_ins.items()}
    axis = RowAxis(known=dict.fromkeys([value, *stand_ins.values()], True), n_rows=None)
    terms = replaced(per_row(guarded(of(plain, value), points), axis), _without_copies)
    found: Variable = vectorized(terms, points)
    return found


def _without_copies(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
    return inputs[0] if isinstance(node.op, ViewOp) else None


def of_rows(terms: Any) -> Any:
    """Add up the entries of rows: (n_points, n_rows, ...) to (n_points, n_rows)."""
    return terms.sum(axis=tuple(range(2, terms.type.ndim))) if terms.type.ndim > 2 else terms


def is_integrated(rv: Variable) -> bool:
    """Whether latents of a random variable were integrated out."""
    return rv.owner is not None and isinstance(rv.owner.op, IntegratedRV)


@_logprob.register(IntegratedRV)
def _summed(
    op: IntegratedRV, values: Sequence[Variable], given: Variable, log_weights: Variable, *latents: Variable, **_: Any
) -> Variable:
    found: Variable = pt.logsumexp(log_weights + of_rows(at_points(given, values[0], latents)), axis=0)
    return found


@_change_dist_size.register(IntegratedRV)
def _resized(op: IntegratedRV, rv: Variable, new_size: Any, expand: bool) -> Variable:
    if expand:
        raise NotImplementedError("A variable with latents of rows has one axis of rows.")
    given, log_weights, *latents = rv.owner.inputs
    n_rows = tuple(new_size)[:1]
    places = {one.owner.inputs[1] for one in latents}
    new_places = {place: change_dist_size(place, n_rows) for place in places}
    drawn = {one: Chosen()(one.owner.inputs[0], new_places[one.owner.inputs[1]]) for one in latents}
    (own,), _ = rebuild([given], drawn)
    batch = [own.shape[axis] for axis in range(1, own.type.ndim - own.owner.op.ndim_supp)]
    return integrated(change_dist_size(own, (*n_rows, *batch)), log_weights, list(drawn.values()))


@node_rewriter([IntegratedRV])
def _drawn(fgraph: Any, node: Apply) -> list[Variable]:
    return [node.inputs[0]]


@node_rewriter([Chosen])
def _taken(fgraph: Any, node: Apply) -> list[Variable]:
    points, place = node.inputs
    return [points[place, 0] if points.type.broadcastable[1] else points[place, pt.arange(place.shape[0])]]


# For compiled draws; PyMC derives log-densities by other rewrites, before these.
optdb.register("draw_integrated", out2in(_drawn, _taken), "fast_run", "fast_compile", position=0.05)

__all__ = [
    "Chosen",
    "IntegratedRV",
    "at_points",
    "given_points",
    "integrated",
    "is_integrated",
    "log_weights_of",
    "of_rows",
]
