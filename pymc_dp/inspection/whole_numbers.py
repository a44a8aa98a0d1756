"""Arithmetic on whole numbers that has a result for every value: compiled code raises, or ends the process, for some.

Numba's power with an integer exponent raises ``ZeroDivisionError`` where a base is 0 and its exponent negative, the
processor stops at the least integer modulo -1, and NumPy has no negative powers of integers. Whether a release is made
would then depend on a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.basic import WalkingGraphRewriter, node_rewriter
from pytensor.scalar.basic import Mod, Pow
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import discrete_dtypes


@node_rewriter([Elemwise])
def in_total_arithmetic(fgraph: Any, node: Any) -> list[Variable] | None:
    """Take powers of whole numbers by floats, and remainders by 0 and -1 as 0."""
    operation, dtype = node.op.scalar_op, node.outputs[0].type.dtype
    if isinstance(operation, Pow) and node.inputs[1].type.dtype in discrete_dtypes:
        base, exponent = node.inputs
        return [power(base, exponent, dtype)]
    if isinstance(operation, Mod) and dtype in discrete_dtypes:
        value, divisor = node.inputs
        return [remainder(value, divisor, dtype)]
    return None


total_arithmetic = WalkingGraphRewriter(in_total_arithmetic, ignore_newtrees=True)
"""A rewrite of whole graphs, before operations are made one loop."""


def power(base: Any, exponent: Any, dtype: str) -> Variable:
    """Return a power taken by floats; 0 where a whole number of this dtype does not hold it."""
    found = pt.cast(base, "float64") ** pt.cast(exponent, "float64")
    if dtype not in discrete_dtypes:
        return pt.cast(found, dtype)
    limits = np.iinfo(dtype)
    held = (found >= float(limits.min)) & (found < float(limits.max))  # so is no NaN
    return pt.cast(pt.switch(held, found, 0.0), dtype)


def remainder(value: Any, divisor: Any, dtype: str) -> Variable:
    """Return the remainder of whole numbers, 0 where the divisor is 0 or -1."""
    divides_all = pt.eq(divisor, 0) | pt.eq(divisor, -1)
    return pt.cast(value % pt.switch(divides_all, pt.ones_like(divisor), divisor), dtype)


__all__ = ["in_total_arithmetic", "power", "remainder", "total_arithmetic"]
