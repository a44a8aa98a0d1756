"""Products of the rows of a table with one vector as one operation.

PyTensor would multiply a table by a vector and then add up each row number after number, which takes several times as
long as to read the numbers. A library of linear algebra takes long to compile in, and treats a row by its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import SequentialGraphRewriter, dfs_rewriter, node_rewriter
from pytensor.scalar.basic import Mul
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.rewriting.elemwise import local_dimshuffle_lift

BEFORE_FUSION = 47.5
"""Where among PyTensor's rewrites: later ones make products a part of larger loops."""


class RowProducts(Op):
    """Products of rows, (n, k), with a vector, (k,), of floats.

    Notes
    -----
    **Guarantee.** What a row gives is a function of this row and of the vector: terms are added in an order that k
    alone determines, and the compiler is allowed no other.
    """

    __props__ = ()

    def __init__(self) -> None:
        import_module("pymc_dp.step_methods.row_functions.row_products_numba")  # numba takes long to import

    @override
    def make_node(self, *inputs: Any) -> Apply[Any, Any]:
        return Apply(self, list(inputs), [pt.tensor(dtype="float64", shape=inputs[0].type.shape[:1])])

    @override
    def infer_shape(self, node: Any, shapes: Any) -> Any:
        return [shapes[0][:1]]

    @override
    def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
        rows, vector = inputs
        output_storage[0][0] = np.sum(rows * vector, axis=1)


@node_rewriter([Sum])
def sum_of_products(fgraph: Any, node: Any) -> list[Variable] | None:
    """Replace the sum of the products of a table and a vector, whatever axes of length 1 they have beside."""
    product = node.inputs[0].owner
    if product is None or not isinstance(product.op, Elemwise) or not isinstance(product.op.scalar_op, Mul):
        return None
    if len(product.inputs) != 2 or node.op.axis is None or len(node.op.axis) != 1:
        return None
    axis, dtypes = node.op.axis[0], {var.type.dtype for var in (*product.inputs, *node.outputs)}
    vector, table = sorted(product.inputs, key=lambda var: len(_long(var)))
    width = table.type.shape[axis]
    if dtypes != {"float64"} or _long(vector) != [axis] or width is None or width != vector.type.shape[axis]:
        return None
    rows = [place for place in _long(table) if place != axis]
    if len(rows) != 1:
        return None
    found = RowProducts()(_along(table, [rows[0], axis]), _along(vector, [axis]))
    place = rows[0] - (rows[0] > axis)
    return [found.dimshuffle([0 if i == place else "x" for i in range(node.outputs[0].type.ndim)])]


row_products = SequentialGraphRewriter(dfs_rewriter(sum_of_products), dfs_rewriter(local_dimshuffle_lift))
"""A rewrite of whole graphs: products, then axes of length 1 that are added and taken away."""


def _long(var: Any) -> list[int]:
    """Return the axes that are not known to be of length 1."""
    return [axis for axis, one in enumerate(var.type.broadcastable) if not one]


def _along(var: Any, axes: Sequence[int]) -> Variable:
    """Return an array without its other axes, which are of length 1; contiguous where it was before it got them."""
    order = list(axes)
    if var.owner is not None and isinstance(var.owner.op, DimShuffle):
        order, var = [var.owner.op.new_order[axis] for axis in order], var.owner.inputs[0]
    return var if order == list(range(var.type.ndim)) else var.dimshuffle(order)


__all__ = ["BEFORE_FUSION", "RowProducts", "row_products"]
