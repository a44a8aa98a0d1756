"""Likelihoods that depend on the parameters through one linear predictor: what each row adds to the curvature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort

from pymc_dp.draws.log_concave import RowCurvatures
from pymc_dp.inspection.affine import smooth
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.intervals.expression import Expression, Symbol, UnknownOperation, leaf
from pymc_dp.proofs.concavity import shape_of
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.meeting_points import hull
from pymc_dp.samplers.row_function import vectorised


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictor:
    """Each row adds ``f(<z, θ> + o)`` with f concave and ``|f'''| <= bend |f''|``; z, o and f depend on the row alone.

    Parameters
    ----------
    bend : float
    vectors : callable
        Columns to the (n_rows, d) array of all z.
    seconds : callable
        (d,) array θ and columns to the (n_rows,) array of f''.
    """

    bend: float
    vectors: Any
    seconds: Any

    def at(self, point: Array, inverse: float, rows: Sequence[Array], weights: Array) -> RowCurvatures:
        """Return what is known of every row at a point. **Private**."""
        with np.errstate(all="ignore"):
            (vectors,), (seconds,) = self.vectors(*rows), self.seconds(point, *rows)
        curvatures = inverse * weights * np.maximum(-seconds, 0.0)
        return RowCurvatures(vectors=vectors, curvatures=curvatures, bends=np.full(len(weights), self.bend))

    @classmethod
    def of(
        cls,
        total: Variable,
        parameters: Mapping[Variable, Variable],
        known: Mapping[Variable, Expression],
        flat: Variable,
        rows: Mapping[Variable, Variable],
    ) -> Self | None:
        """Find the predictor of a row's log-likelihood and prove what is needed of f; None where that fails.

        Parameters
        ----------
        total : Variable
            Log-likelihood of one row: a scalar over the keys of `known`.
        parameters : mapping of Variable to Variable
            Each parameter as a part of `flat`.
        known : mapping of Variable to Expression
            Parameters and values of one row, and the public set of each.
        flat : Variable
            Vector of all parameters.
        rows : mapping of Variable to Variable
            Values of one row, and of all rows.
        """
        predictor = _only_way(total, list(parameters))
        if predictor is None or not smooth(predictor, list(parameters)):
            return None
        eta = pt.scalar("eta", dtype="float64")
        stand_in = eta.reshape((1,) * predictor.type.ndim).astype(predictor.type.dtype)
        (outer,), _ = rebuild([total], {predictor: stand_in})
        (placed,), _ = rebuild([predictor.sum().astype("float64")], parameters)
        vector = stable(pytensor.grad(placed, flat))
        bend = _bend(outer, eta, predictor, known)
        if bend is None or flat in set(ancestors([vector])):
            return None
        slope = pytensor.grad(stable(outer), eta)
        second = pytensor.grad(slope, eta, disconnected_inputs="ignore", return_disconnected="zero")
        (second,), _ = rebuild([second], {eta: placed})
        table = list(rows.values())
        return cls(
            bend=bend,
            vectors=compiled(table, [vectorised(vector, rows)]),
            seconds=compiled([flat, *table], [vectorised(second, rows)]),
        )


def _only_way(total: Variable, parameters: Sequence[Variable]) -> Variable | None:
    """Return the first single number through which alone the parameters reach an expression."""
    for node in toposort([total]):
        for out in node.outputs:
            single = all(length == 1 for length in out.type.shape) and out.type.dtype.startswith("float")
            if not single or out is total or not set(parameters) & set(ancestors([out])):
                continue
            (without,), _ = rebuild([total], {out: out.type()})
            if not set(parameters) & set(ancestors([without])):
                return out
    return None


def _bend(outer: Variable, eta: Variable, predictor: Variable, known: Mapping[Variable, Expression]) -> float | None:
    """Prove f concave wherever the predictor may be, and bound how fast its curvature changes there."""
    try:
        low, high = hull(lowered(predictor.sum(), known))
        line = leaf(Symbol(name="eta", low=np.min(low).reshape(()), high=np.max(high).reshape(())))
        shape = shape_of(lowered(outer, {eta: line, **known}))
    except UnknownOperation:
        return None
    return shape.self_concordance if shape.concave and math.isfinite(shape.self_concordance) else None


__all__ = ["Predictor"]
