"""The distribution function of one row: what counts in bins need to know of a likelihood, whatever it is.

A plain distribution has it by its parameters. For mixtures, censored, truncated and hand-written ones it is taken from
the graph of the model, once that is proved to keep rows apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.abstract import _logccdf, _logcdf, _logprob
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type_other import NoneConst

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.finite_gradient import finite_branches, finite_gradient
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.row_density import density, of_any_values, per_row, replaced
from pymc_dp.inspection.rows import reached
from pymc_dp.inspection.taint import trace_rows

SUMMED = ("beta_binomial", "hypergeometric")
"""Plain distributions on 0, 1, ... whose distribution function PyMC knows for one number at a time only."""
MOST_SUMMED = 2048


@dataclass(frozen=True, kw_only=True, eq=False)
class Cumulative:
    """Distribution function of one row as graphs that treat each row by itself; NaN where parameters are invalid.

    Attributes
    ----------
    at : Variable
        (n_rows,) numbers; no part of the model.
    below : Variable
        (n_rows,) log-probability to be at most `at`.
    above : Variable or None
        The same to be above, where PyMC has it in a form of its own: exact in the upper tail.
    inputs : tuple of Variable
        (n_rows,) parameters, for a plain distribution; else the graphs hold the variables of the model.
    numbers : tuple of Variable
        Constants of the likelihood, for the list of what is assumed public.
    """

    at: Variable
    below: Variable
    above: Variable | None = None
    inputs: tuple[Variable, ...] = ()
    numbers: tuple[Variable, ...] = ()


def cumulative_graphs(rv: Variable, at: Variable, axis: RowAxis) -> tuple[Variable, list[Variable]]:
    """Return the distribution function per row, and what has to be free of coupling between rows.

    Raises
    ------
    NotImplementedError
        If PyMC knows no distribution function, or no density.
    """
    below, logp = of_any_values(lambda rv, at: pm.logcdf(rv, at, warn_rvs=False), rv, at), density(rv, at)
    return per_row(below, axis), [below, logp]


def row_wise(below: Variable, levels: Mapping[Variable, int | None], at: Variable) -> Variable:
    """Return a distribution function that raises nothing, and whose derivatives are finite."""
    return finite_branches(with_finite_gradients(invalid_as_nan(below), levels, at.shape[0]))


def invalid_as_nan(graph: Variable) -> Variable:
    """Return a graph that is NaN, and raises nothing, where PyMC's checks of parameters fail."""

    def switched(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        if not isinstance(node.op, CheckAndRaise):
            return None
        return pt.switch(pt.all(list(inputs[1:])), inputs[0], np.nan)

    return replaced(graph, switched)


def with_finite_gradients(graph: Variable, levels: Mapping[Variable, int | None], length: Variable) -> Variable:
    """Return a graph per row in which no row gives a parameter a derivative that is not finite.

    Where a parameter first meets rows it is repeated for each of them, so that their derivatives are added up last.
    """
    flow = trace_rows([graph], levels)
    memo: dict[Variable, Variable] = {}
    for node in toposort([graph], blockers=list(levels)):
        axis = next((flow.axes.get(out) for out in node.outputs), None)
        inputs = [memo.get(var, var) for var in node.inputs]
        if axis is not None and isinstance(node.op, Elemwise):
            inputs = [
                new if flow.axes.get(old) is not None or isinstance(old, Constant) else _repeated(new, axis, length)
                for old, new in zip(node.inputs, inputs, strict=True)
            ]
        first = axis is not None and all(flow.axes.get(var) is None for var in node.inputs[:1])
        if first and not isinstance(node.op, Elemwise) and node.outputs[0].type.dtype.startswith("float"):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo[node.outputs[0]] = finite_gradient(rebuild(node.outputs, changed)[0][0])
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            # One input may occur twice, repeated in one place and not in the other: by place, not by variable.
            memo.update(zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True))
    return memo.get(graph, graph)


def _repeated(parameter: Variable, axis: int, length: Variable) -> Variable:
    if not str(parameter.type.dtype).startswith("float"):
        return parameter
    shape = [length if place == axis else parameter.shape[place] for place in range(parameter.type.ndim)]
    return finite_gradient(pt.broadcast_to(parameter, shape))


def own_numbers(rv: Variable, below: Variable) -> tuple[Variable, ...]:
    """Return the constants that reach a distribution function and were given by the user, not by PyMC."""
    used = set(reached([below]))
    given = reached([var for var in rv.owner.inputs if var in used or var.owner is not None])
    return tuple(var for var in given if isinstance(var, Constant) and var in used)


def of_plain(variable: Variable, parameters: Sequence[Variable]) -> Cumulative | None:
    """Return the distribution function of a plain distribution by its parameters; None if PyMC knows none."""
    at = pt.tensor("at", shape=(None,), dtype=variable.type.dtype)
    inputs = tuple(pt.tensor(shape=(None,), dtype=item.type.dtype) for item in parameters)
    op: Any = variable.owner.op
    if any(getattr(op, "ndims_params", None) or ()):  # vectors, such as the probabilities of a categorical
        return None
    given = (variable.owner.inputs[0], NoneConst, *inputs)  # without a size: a density would be repeated up to it
    try:
        below = _summed(op, at, given) if getattr(op, "name", None) in SUMMED else _logcdf(op, at, *given)
    except NotImplementedError:
        return None
    try:
        above = _logccdf(op, at, *given)
    except NotImplementedError:
        above = None
    above = None if above is None else finite_branches(invalid_as_nan(above))
    return Cumulative(at=at, below=finite_branches(invalid_as_nan(below)), above=above, inputs=inputs)


def _summed(op: Any, at: Variable, given: Sequence[Any]) -> Variable:
    """Return the log-probability of a number on 0, 1, ... to be at most `at`, by the sum of its probabilities."""
    values = pt.arange(pt.clip(at.max(), 0, MOST_SUMMED) + 1)[None, :]
    source, size, *parameters = given
    terms = _logprob(op, [values], source, size, *(item[:, None] for item in parameters))
    return pt.logsumexp(pt.switch(values <= at[:, None], terms, -np.inf), axis=1)


__all__ = ["MOST_SUMMED", "SUMMED", "Cumulative", "cumulative_graphs", "of_plain", "own_numbers", "row_wise"]
