"""Proof that a graph is affine in some variables: smooth operations only, and a gradient without the variables."""

from __future__ import annotations

from collections.abc import Sequence

import pytensor
import pytensor.tensor as pt
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar.basic import Add, Cast, Identity, Mul, Neg, Second, Sub, TrueDiv
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.rows import rebuild

SMOOTH = (ViewOp, DimShuffle, SpecifyShape, Reshape, Sum, Dot, Join, MakeVector, Subtensor, AdvancedSubtensor, Alloc)
SMOOTH_SCALARS = (Add, Sub, Neg, Mul, TrueDiv, Cast, Identity, Second)
"""Operations without steps or corners: where a derivative of them is constant they are linear."""


def smooth(end: Variable, sources: Sequence[Variable]) -> bool:
    """Whether only operations without steps or corners lead from some variables to another."""
    moving = set(sources)
    for node in toposort([end], blockers=list(sources)):
        if not moving & set(node.inputs):
            continue
        op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
        plain = isinstance(op, Elemwise) and isinstance(op.scalar_op, SMOOTH_SCALARS)
        exact = all(out.type.dtype.startswith("float") for out in node.outputs)
        if not (exact and (plain or isinstance(op, SMOOTH))):
            return False
        moving.update(node.outputs)
    return True


def slopes_of(end: Variable, sources: Sequence[Variable]) -> list[Variable] | None:
    """Return the derivatives of ``end.sum()`` by some variables, free of them; None where `end` is not affine in them.

    A smooth function whose derivatives do not depend on its variables is affine.
    """
    if not smooth(end, sources):
        return None
    # By a number that is put in afterwards: PyTensor would rewrite a product with constant ones to assignments.
    one = pt.dscalar()
    total = end.sum() * one
    slopes = pytensor.grad(total, list(sources), disconnected_inputs="ignore", return_disconnected="zero")
    slopes = stable([*slopes])
    return None if set(sources) & set(ancestors(slopes)) else rebuild(slopes, {one: pt.constant(1.0)})[0]


__all__ = ["slopes_of", "smooth"]
