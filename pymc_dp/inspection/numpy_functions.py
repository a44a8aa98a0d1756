"""Functions of large arrays without a compiler: stable formulas, made of operations that NumPy knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import toposort
from pytensor.scalar.basic import Clip, Pow
from pytensor.scalar.math import Log1mexp, Softplus, TriGamma
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import discrete_dtypes

from pymc_dp.inspection.interpreted import plain_function, stable
from pymc_dp.inspection.rows import rebuild
from pymc_dp.inspection.whole_numbers import power

NUMPY_FORMS: dict[type, Callable[..., Any]] = {
    Clip: lambda x, low, high: pt.minimum(pt.maximum(x, low), high),
    Log1mexp: lambda x: pt.switch(x > -np.log(2), pt.log(-pt.expm1(x)), pt.log1p(-pt.exp(x))),
    Softplus: lambda x: pt.maximum(x, 0.0) + pt.log1p(pt.exp(-pt.abs(x))),
    Pow: lambda x, k: power(x, k, pt.pow(x, k).dtype) if k.dtype in discrete_dtypes else x**k,
    TriGamma: lambda x: pt.polygamma(1, x),
}
"""Scalar operations that would be called once per number in Python, or that NumPy refuses for some numbers."""


def compiled(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Any:
    """Return a function that NumPy evaluates."""
    return plain_function(inputs, _for_numpy(stable(list(outputs))))


def _for_numpy(outputs: Sequence[Variable]) -> list[Variable]:
    memo: dict[Variable, Variable] = {}
    for node in toposort(list(outputs)):
        inputs = [memo.get(var, var) for var in node.inputs]
        form = NUMPY_FORMS.get(type(node.op.scalar_op)) if isinstance(node.op, Elemwise) else None
        if form is not None:
            memo[node.outputs[0]] = form(*inputs).astype(node.outputs[0].type.dtype)
        elif any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            changed = {old: new for old, new in zip(node.inputs, inputs, strict=True) if old is not new}
            memo.update(zip(node.outputs, rebuild(node.outputs, changed)[0], strict=True))
    return [memo.get(out, out) for out in outputs]


__all__ = ["compiled", "stable"]
