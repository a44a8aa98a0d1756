"""Derivatives of a density beside infinite bounds, which PyMC writes as numbers like others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Add, Cast, Mul, Neg, Sub, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from pymc_dp.inspection.finite_gradient import FiniteGradient
from pymc_dp.inspection.row_density import replaced


def beside_infinities(graph: Variable) -> Variable:
    """Return a graph in which what is computed of an infinite constant has finite derivatives by all else.

    With b infinite the derivative of ``(b - m) / s`` by s would be 0 times infinity, and spoil all others.
    """
    infinite, number = set[Variable](), 0

    def rule(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
        nonlocal number
        held = [_is_infinite(var) or var in infinite for var in inputs]
        if not any(held):
            return None
        if isinstance(node.op, DimShuffle):
            return noted(node.clone_with_new_inputs(list(inputs)))
        if not (
            isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Add | Cast | Mul | Neg | Sub | TrueDiv)
        ):
            return None
        if isinstance(node.op.scalar_op, TrueDiv) and not held[0]:
            return None
        number += 1
        guarded = [
            var if known or isinstance(var, Constant) else FiniteGradient(-len(inputs) * number - place)(var)
            for place, (var, known) in enumerate(zip(inputs, held, strict=True))
        ]
        return noted(node.clone_with_new_inputs(guarded))

    def noted(node: Apply) -> Variable:
        infinite.add(node.outputs[0])
        return node.outputs[0]

    return replaced(graph, rule)


def _is_infinite(var: Variable) -> bool:
    return isinstance(var, Constant) and np.ndim(var.data) == 0 and var.type.dtype[:5] == "float" and np.isinf(var.data)


__all__ = ["beside_infinities"]
