"""Forms of logarithms that stay finite in floats where the formula that was written does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Log, Log1p, Mul, Neg
from pytensor.scalar.math import Erf, Erfc, Sigmoid
from pytensor.tensor.elemwise import DimShuffle, Elemwise

NEAR = 1e-6
"""Constants of PyMC are held in single precision."""
FAR = 1.0
"""Where log(erfc(u)) begins to be taken from erfcx."""


def stable_form(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
    """Return a stable form of a logarithm of sigmoids and error functions, with new inputs; None where it is none."""
    if not isinstance(node.op, Elemwise):
        return None
    kind = node.op.scalar_op
    if isinstance(kind, Log):
        base, factor = _scaled(inputs[0])
        if factor > 0 and _is(base, Erfc):
            return _log_erfc(_inside(base)) + np.log(factor)
        return None
    if not isinstance(kind, Log1p):
        return None
    base, factor = _scaled(inputs[0])
    if _is(base, Sigmoid) and abs(factor + 1) < NEAR:
        return -pt.softplus(_inside(base))
    if _is(base, Erfc) and abs(factor + 0.5) < NEAR:
        return _log_erfc(-_inside(base)) - np.log(2.0)
    if _is(base, Erf) and abs(abs(factor) - 1) < NEAR:
        return _log_erfc(-np.sign(factor) * _inside(base))
    return None


def _scaled(var: Variable) -> tuple[Variable, float]:
    """Split off constant factors: var = factor times base."""
    factor = 1.0
    while var.owner is not None and isinstance(var.owner.op, Elemwise):
        if isinstance(var.owner.op.scalar_op, Neg):
            factor, var = -factor, var.owner.inputs[0]
            continue
        if not isinstance(var.owner.op.scalar_op, Mul):
            break
        numbers = [_number(item) for item in var.owner.inputs]
        others = [item for item, number in zip(var.owner.inputs, numbers, strict=True) if number is None]
        if len(others) != 1 or others[0].type.ndim != var.type.ndim:
            break
        factor *= float(np.prod([number for number in numbers if number is not None]))
        var = others[0]
    return var, factor


def _number(var: Variable) -> float | None:
    """Return the one number that a constant holds; None where it is none, or has several."""
    while var.owner is not None and isinstance(var.owner.op, DimShuffle):
        var = var.owner.inputs[0]
    return float(var.data.item()) if isinstance(var, Constant) and np.size(var.data) == 1 else None


def _is(var: Variable, kind: type) -> bool:
    return var.owner is not None and isinstance(var.owner.op, Elemwise) and isinstance(var.owner.op.scalar_op, kind)


def _inside(var: Variable) -> Variable:
    return var.owner.inputs[0]


def _log_erfc(u: Variable) -> Variable:
    """log(erfc(u)), which underflows where u > 26: there erfc(u) = erfcx(u) exp(-u^2)."""
    far = pt.maximum(u, FAR)
    return pt.switch(u > FAR, pt.log(pt.erfcx(far)) - far**2, pt.log(pt.erfc(pt.minimum(u, FAR))))


__all__ = ["stable_form"]
