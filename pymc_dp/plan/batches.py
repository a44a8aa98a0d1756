"""Graphs of a model evaluated at many points at once, by NumPy; and which parts of its density hang together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.logprob.utils import CheckParameterValue
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import All

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.numpy_functions import NUMPY_FORMS
from pymc_dp.inspection.row_density import vectorized
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.simulation.prior import joined, split
from pymc_dp.transforms.released_logp import ReleasedLogp

Shapes = Sequence[tuple[int, ...]]
MOST_NUMBERS = 2_000_000
"""In one array; further points are left for the next call."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """Elements of a point, and the terms of the log density that depend on them and on no others."""

    elements: tuple[int, ...]
    terms: tuple[int, ...]


def at_points(model: Model, graphs: Sequence[Any], shapes: Shapes) -> Callable[[Array], list[Array]]:
    """Return graphs over the value variables of a model as a function of points.

    Parameters
    ----------
    model : pymc.Model
    graphs : sequence of tensors
    shapes : sequence of tuple of int
        Of the value variables, whose raveled elements make up a point.

    Returns
    -------
    callable
        From points, (n_points, n_elements), to one (n_points, *shape) array per graph.
    """
    values = model.value_vars
    many = [
        pt.TensorType(value.type.dtype, (None, *shape))(f"{value.name}_points")
        for value, shape in zip(values, shapes, strict=True)
    ]
    graphs = _opened(graphs)
    outputs = vectorized(graphs, dict(zip(values, many, strict=True)))
    function = plain_function(many, outputs)
    moving = [after.type.ndim > before.type.ndim for before, after in zip(graphs, outputs, strict=True)]

    size = max(1, MOST_NUMBERS // _numbers_a_point(outputs))

    def evaluate(points: Array) -> list[Array]:
        with np.errstate(all="ignore"):
            found = [function(*split(points[start : start + size], shapes)) for start in range(0, len(points), size)]
        return [
            np.concatenate(parts) if own else np.broadcast_to(parts[0], (len(points), *np.shape(parts[0])))
            for parts, own in zip(zip(*found, strict=True), moving, strict=True)
        ]

    return evaluate


def _numbers_a_point(outputs: Sequence[Any]) -> int:
    """Numbers that the largest array on the way to some outputs has for each point, where its shape says so."""
    shapes = [getattr(var.type, "shape", ()) for var in ancestors(list(outputs))]
    return max(prod(length or 1 for length in shape) for shape in shapes)


def _opened(graphs: Sequence[Any]) -> list[Any]:
    """Return graphs of plain operations alone: any other would be called once per point, in Python."""
    memo: dict[Variable, Variable] = {}
    for node in toposort(list(graphs)):
        inputs = [memo.get(var, var) for var in node.inputs]
        form = NUMPY_FORMS.get(type(node.op.scalar_op)) if isinstance(node.op, Elemwise) else None
        if form is not None:
            memo[node.outputs[0]] = form(*inputs).astype(node.outputs[0].type.dtype)
        elif isinstance(node.op, CheckParameterValue):
            memo[node.outputs[0]] = _checked(*inputs)
        elif isinstance(node.op, ReleasedLogp):
            memo[node.outputs[0]] = _opened([node.op.graph(*inputs)])[0]
        elif isinstance(node.op, OpFromGraph):
            inner = inline_ofg_node(node.clone_with_new_inputs(inputs, strict=False))
            memo.update(zip(node.outputs, _opened(inner), strict=True))
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo.update(zip(node.outputs, rebuild(node.outputs, changed)[0], strict=True))
    return [memo.get(graph, graph) for graph in graphs]


def _checked(logp: Any, *conditions: Any) -> Any:
    """A density that is 0 where parameters are invalid, element by element: no bad point is an error for others."""
    for condition in conditions:
        for part in _parts(condition):
            logp = pt.switch(part if part.ndim <= logp.ndim else pt.all(part), logp, -np.inf)
    return logp


def _parts(condition: Any) -> list[Any]:
    """The conditions that PyMC has joined into one for the whole array."""
    node = condition.owner
    if node is not None and isinstance(node.op, All):
        return _parts(node.inputs[0])
    if node is not None and isinstance(node.op, MakeVector):
        return [part for item in node.inputs for part in _parts(item)]
    return [condition]


def density_terms(model: Model, shapes: Shapes) -> Callable[[Array], Array]:
    """Return every term of the log density of a model, as a function of points: (n_points, n_terms) arrays."""
    terms = model.logp(vars=[*model.free_RVs, *model.observed_RVs], sum=False)
    evaluate = at_points(model, terms, shapes)
    return lambda points: joined(evaluate(points))


def components(terms: Callable[[Array], Array], prior: Array) -> tuple[Component, ...]:
    """Find the independent parts of a posterior: which terms change with which elements of a point.

    Parameters
    ----------
    terms : callable
        As `density_terms` returns it.
    prior : (n_points, n_elements) array
        Draws from the prior; the first two are looked at, each element of the first made unknown in turn and replaced
        by that of the second.
    """
    count = prior.shape[1]
    changed = np.concatenate([np.tile(prior[:1], (2 * count + 1, 1))])
    places = np.arange(count)
    changed[1 + places, places] = np.nan
    changed[1 + count + places, places] = prior[1]
    found = terms(changed)
    moved = found[1:] != found[0]  # a NaN differs from anything
    touches = moved[:count] | moved[count:]
    groups: list[tuple[set[int], set[int]]] = []
    for element in range(count):
        own = ({element}, set(np.flatnonzero(touches[element]).tolist()))
        met = [group for group in groups if group[1] & own[1]]
        for group in met:
            own[0].update(group[0])
            own[1].update(group[1])
        groups = [group for group in groups if group not in met] + [own]
    return tuple(Component(elements=tuple(sorted(e)), terms=tuple(sorted(t))) for e, t in groups)


__all__ = ["Component", "at_points", "components", "density_terms"]
