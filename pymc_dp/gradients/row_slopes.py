"""Derivatives of one row with respect to its predictors, and of these: as graphs that take little compiling.

A derivative with respect to a vector of all numbers would be added up in it entry by entry, and one of a part of a
vector begins in a vector of zeros. Over many rows each of these is a function of its own to compile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Split, get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.special import LogSumExp
from pytensor.tensor.symbolic import FusibleSymbolicOpDerivative

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.cumulative import FiniteGradient, beside_infinities, finite_branches
from pymc_dp.inspection.row_density import replaced


def scores_of(logps: Sequence[Variable], parts: Sequence[Variable]) -> list[Variable]:
    """Return the derivatives of each log-likelihood as a vector over the entries of all parts.

    A branch that is not taken adds nothing, nor does one beyond an infinite bound.

    Parameters
    ----------
    logps : sequence of Variable
        Scalars.
    parts : sequence of Variable
    """
    smooth = (finite_branches(beside_infinities(logp)) for logp in logps)
    return [replaced(joined(_gradient(logp, parts)), _shorter) for logp in smooth]


def _shorter(node: Apply, inputs: Sequence[Any]) -> Variable | list[Variable] | None:
    """Return what stands for a node of a gradient, of many rows too, where it would be a loop over them.

    The derivative of a logsumexp is a graph within the graph, in which a largest term and a sum would be looked for
    once more: its value says both. Parts of known sizes are slices.
    """
    if isinstance(node.op, FiniteGradient):
        return inputs[0]
    if isinstance(node.op, FusibleSymbolicOpDerivative) and len(inputs) == 3:
        value = node.inputs[1].owner
        if value is not None and isinstance(value.op, LogSumExp):
            terms, total, slope = inputs
            total, slope = (pt.expand_dims(one, value.op.axis) for one in (total, slope))
            return [slope * pt.exp(terms - total)]
    if isinstance(node.op, FusibleSymbolicOpDerivative):
        return list(node.op.fgraph.bind(dict(zip(node.op.fgraph.inputs, inputs, strict=True))))
    if not isinstance(node.op, Split):
        return None
    whole, sizes = inputs
    try:
        found = [get_underlying_scalar_constant_value(sizes[i]) for i in range(node.op.len_splits)]
    except NotScalarConstantError:
        return None
    ends = np.cumsum([0, *found]).tolist()
    return [whole[(slice(None),) * node.op.axis + (slice(*part),)] for part in pairwise(ends)]


def slopes_of_entries(var: Variable, size: int, values: Sequence[Variable]) -> list[list[Variable]]:
    """Return the derivatives of each entry of a variable with respect to all values, which may be constants.

    Parameters
    ----------
    var : Variable
    size : int
        Number of its entries.
    values : sequence of Variable
    """
    if None in var.type.shape:
        flat = _raveled(var)
        return [_gradient(flat[place], values) for place in range(size)]
    units = np.eye(size, dtype=var.type.dtype).reshape((size, *var.type.shape))
    return [_gradient(None, values, {var: pt.constant(unit)}) for unit in units]


def joined(graphs: Sequence[Variable]) -> Any:
    """Return all entries as one vector of floats."""
    parts = [_raveled(graph.dimshuffle(long_axes(graph))).astype("float64") for graph in graphs]
    return pt.concatenate(parts) if len(parts) > 1 else parts[0]


def long_axes(var: Variable) -> list[int]:
    """Return the axes that are not known to be of length 1."""
    return [axis for axis, one in enumerate(var.type.broadcastable) if not one]


def _raveled(graph: Any) -> Any:
    if graph.type.ndim == 1:
        return graph
    return graph.ravel() if graph.type.ndim else graph[None]


def _gradient(
    graph: Variable | None, variables: Sequence[Variable], known: Mapping[Variable, Variable] | None = None
) -> list[Variable]:
    options: dict[str, Any] = {"disconnected_inputs": "ignore", "return_disconnected": "zero", "known_grads": known}
    try:
        return list(pytensor.grad(graph, list(variables), **options))
    except Exception as error:
        what = f"its log-likelihood has no gradient ({type(error).__name__})"
        remedy = "Use operations that PyTensor can differentiate."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)]) from None


__all__ = ["joined", "long_axes", "scores_of", "slopes_of_entries"]
