"""Functions over rows, compiled so that what a row gives does not depend on the rows beside it.

Products of the rows of a table with one vector as one operation.

PyTensor would multiply a table by a vector and then add up each row number after number, which takes several times as
long as to read the numbers. A library of linear algebra takes long to compile in, and treats a row by its neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, override

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import SequentialGraphRewriter, dfs_rewriter, node_rewriter
from pytensor.link.numba.linker import NumbaLinker
from pytensor.scalar.basic import Mul
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.rewriting.elemwise import local_dimshuffle_lift

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.whole_numbers import total_arithmetic

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
        import_module("pymc_dp.gradients.row_products_numba")  # numba takes long to import

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


@node_rewriter([Alloc])
def alloc_of_entry(fgraph: Any, node: Any) -> list[Variable] | None:
    """Fill an array with the only entry of a vector: by an array without axes, Numba would compile texts of errors."""
    value, *lengths = node.inputs
    if value.type.ndim or not lengths:
        return None
    vector = pt.constant(value.data[None]) if isinstance(value, Constant) else value.dimshuffle("x")
    return [pt.alloc(vector, *lengths)]


fill_by_entry = dfs_rewriter(alloc_of_entry)
"""A rewrite of whole graphs; it saves seconds of compiling."""


def _long(var: Any) -> list[int]:
    """Return the axes that are not known to be of length 1."""
    return [axis for axis, one in enumerate(var.type.broadcastable) if not one]


def _along(var: Any, axes: Sequence[int]) -> Variable:
    """Return an array without its other axes, which are of length 1; contiguous where it was before it got them."""
    order = list(axes)
    if var.owner is not None and isinstance(var.owner.op, DimShuffle):
        order, var = [var.owner.op.new_order[axis] for axis in order], var.owner.inputs[0]
    return var if order == list(range(var.type.ndim)) else var.dimshuffle(order)


ALIKE = 32
"""Rows are evaluated in multiples of this many."""
ROWS_AT_ONCE = ("batched_vector_b_solve_to_matrix_b_solve",)
"""Rewrites that hand all rows to one call of a library of linear algebra, which may treat a row by its neighbours."""


def filled(count: int) -> int:
    """Return the number of rows that so many are filled up to.

    Compiled code works off rows in groups, and the few that are left over by other instructions, whose results may
    differ in the last digit. A row that is added would then change what the rows behind it give.
    """
    return -(-count // ALIKE) * ALIKE


def compiled_rows(inputs: Sequence[Any], outputs: Any, mode: Mode | str | None = None, **options: Any) -> Any:
    """Compile a function over rows: what it gives for a row depends neither on other rows nor on its place.

    Parameters are those of ``pytensor.function``; the mode is the configured one unless it is given.

    Notes
    -----
    `ROWS_AT_ONCE` are left out, and so is Numba's fast arithmetic, which may add up the terms of every fourth row in
    another order than those of the others: a row that goes would then change the last digits of all rows behind it,
    and of two million rows that such a difference was searched for a sum moved by ten times what one row may.
    Arithmetic on whole numbers is total (`total_arithmetic`): no value of a row makes the function raise. Products of
    rows with a vector are one operation for Numba (`RowProducts`).
    """
    chosen = get_mode(mode).excluding(*ROWS_AT_ONCE).register((total_arithmetic, BEFORE_FUSION))
    if isinstance(chosen.linker, NumbaLinker):
        chosen = chosen.register((row_products, BEFORE_FUSION), (fill_by_entry, BEFORE_FUSION))
    with pytensor.config.change_flags(numba__fastmath=False):
        return pytensor.function(inputs, outputs, mode=chosen, on_unused_input="ignore", **options)


@contextmanager
def without_python() -> Iterator[None]:
    """Refuse to compile operations that would run as Python code: what they warn of or raise may depend on a row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    slow = [str(item.message) for item in caught if "object mode" in str(item.message)]
    if slow:
        raise UnsupportedModelError(
            [
                Problem(
                    where="model",
                    what=f"the gradient of a row holds an operation without compiled code ({text.splitlines()[0]})",
                    remedy="Write the density with other operations.",
                )
                for text in slow
            ]
        )


__all__ = [
    "ALIKE",
    "BEFORE_FUSION",
    "ROWS_AT_ONCE",
    "RowProducts",
    "compiled_rows",
    "filled",
    "row_products",
    "without_python",
]
