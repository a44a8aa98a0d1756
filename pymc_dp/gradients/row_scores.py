"""The score of one row as compiled functions: predictors of its responses, their Jacobian, and derivatives at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.gradients.compiled import Function
from pymc_dp.gradients.cut import NEVER, least_cut, sizes_of
from pymc_dp.gradients.interface import Interface
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.one_row import frozen_shared, of_one_row
from pymc_dp.inspection.rows import reached
from pymc_dp.step_methods.row_functions.builder import RowFunction, vectorised
from pymc_dp.transforms.husk import husk

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
    quantiles : tuple of Function or None
        Of each response, (predictors, *columns) to values (n,); the column of the response holds probabilities.
    """

    interface: Interface
    count: int
    predicted: Function
    scored: Function
    quantiles: tuple[Function | None, ...]

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
            what = f"the likelihood of a row has {width} predictors, and {MOST_PREDICTORS} can be gone through"
            remedy = "Use fewer categories or outputs, or a sampler that sees rows one by one."
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
        return _compiled(interface, graphs, predictors, mode)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Graphs:
    """Of one row: scalars over placeholders of its columns and of the parts of the interface."""

    rows: RowFunction
    logps: tuple[Variable, ...]
    quantiles: tuple[Variable | None, ...]


def _graphs(interface: Interface) -> _Graphs:
    inspection = interface.inspection
    rows = RowFunction.of(inspection, husk(inspection), interface.stands)
    quantiles = tuple(
        None if one.quantile is None else frozen_shared(of_one_row(one.quantile, rows.one, interface.stands))
        for one in interface.responses
    )
    if inspection.hidden & set(reached([graph for graph in quantiles if graph is not None])):
        raise PrivacyError("Private data would stay within a compiled function; this is an error of pymc_dp.")
    return _Graphs(
        rows=rows, logps=tuple(rows.terms[one.term.name] for one in interface.responses), quantiles=quantiles
    )


def _predictors(interface: Interface, graphs: _Graphs) -> list[tuple[tuple[Variable, ...], int]]:
    """Return the fewest numbers of a row through which parameters meet responses: groups alike, and sizes."""
    ends = [graph for graph in (*graphs.logps, *graphs.quantiles) if graph is not None]
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
    stands, start = dict[Variable, Variable](), 0
    for group, size in predictors:
        part = one[start : start + size].reshape(_like(group[0]))
        stands |= {var: part.astype(var.type.dtype) for var in group}
        start += size
    logps, _ = rebuild(list(graphs.logps), stands)
    total = pt.add(*logps) if len(logps) > 1 else logps[0]
    over = dict(zip(rows.one.values(), rows.many, strict=True)) | {one: many}
    scores = _gradients([total], [one])[0][0]
    scored = [vectorised(graph.astype("float64"), over) for graph in (scores, *logps)]
    quantiles = [None if graph is None else rebuild([graph], stands)[0][0] for graph in graphs.quantiles]
    return RowScores(
        interface=interface,
        count=width,
        predicted=_predicted(interface, rows, [group[0] for group, _ in predictors], mode),
        scored=Function([many, *rows.many], scored, mode),
        quantiles=tuple(
            None if graph is None else Function([many, *rows.many], [vectorised(graph, over)], mode)
            for graph in quantiles
        ),
    )


def _like(var: Variable) -> Any:
    return var.type.shape if None not in var.type.shape else var.shape


def _predicted(interface: Interface, rows: RowFunction, cut: Sequence[Variable], mode: str) -> Function:
    """Compile the predictors of rows and their Jacobian."""
    flat = pt.concatenate([var.ravel().astype("float64") for var in cut])
    width = flat.type.shape[0] or sum(int(np.prod(var.type.shape)) for var in cut)
    values = [part.value for part in interface.parts]
    jacobian = pt.stack([pt.concatenate(_raveled(_gradients([flat[k]], values)[0])) for k in range(width)])
    position = pt.tensor("position", shape=(interface.size,), dtype="float64")
    at: Mapping[Variable, Variable] = {
        part.value: position[part.start : part.start + part.size].reshape(part.shape) for part in interface.parts
    }
    outputs = clone_replace([rows.over_rows(flat), rows.over_rows(jacobian)], at, rebuild_strict=False)
    return Function([position, *rows.many], outputs, mode)


def _raveled(graphs: Sequence[Variable]) -> list[Variable]:
    return [graph.ravel().astype("float64") for graph in graphs]


def _gradients(graphs: Sequence[Variable], variables: Sequence[Variable]) -> list[list[Variable]]:
    try:
        return [
            pytensor.grad(graph, list(variables), disconnected_inputs="ignore", return_disconnected="zero")
            for graph in graphs
        ]
    except Exception as error:
        what = f"its log-likelihood has no gradient ({type(error).__name__})"
        remedy = "Use operations that PyTensor can differentiate."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)]) from None


__all__ = ["MOST_PREDICTORS", "RowScores"]
