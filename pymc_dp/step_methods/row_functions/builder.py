"""One row of a table as a compiled function: the only place where a model's likelihood is taken apart row by row.

Products of the rows of a table with one vector as one operation.

PyTensor would multiply a table by a vector and then add up each row number after number, which takes several times as
long as to read the numbers. A library of linear algebra takes long to compile in, and treats a row by its neighbours.

How rows are evaluated several at a time, so that what a row gives does not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self, override

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile import SharedVariable
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import SequentialGraphRewriter, dfs_rewriter, node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.linker import NumbaLinker
from pytensor.scalar.basic import Mul
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.rewriting.elemwise import local_dimshuffle_lift

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import NUMPY, plain_function, start_of
from pymc_dp.inspection.one_row import frozen_shared, of_one_row, placeholder, with_rows
from pymc_dp.inspection.row_density import vectorized, written_out
from pymc_dp.inspection.rows import Column, reached, rebuild, shape_of
from pymc_dp.inspection.whole_numbers import total_arithmetic
from pymc_dp.simulation.columns import dummy_rows

DUMMY_ROWS = 7
TOLERANCE = 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class RowFunction:
    """The log-likelihood of one row as a graph, and the same over many rows. Nothing in it is private.

    A row enters the graph as a row of placeholders and nothing else of the table does: whatever the model is, what a
    row adds is a function of this row and of the parameters.

    Attributes
    ----------
    columns : tuple of Column
    one : mapping of Variable to Variable
        From the leaf of each column to the placeholder of one row of it.
    many : tuple of Variable
        Placeholders of (n_rows, ...) rows, one per column.
    terms : mapping of str to Variable
        Log-likelihood of one row in each observed variable: scalars over `one` and the parameters.
    total : Variable
        Their sum.
    """

    columns: tuple[Column, ...]
    one: Mapping[Variable, Variable]
    many: tuple[Variable, ...]
    terms: Mapping[str, Variable]
    total: Variable

    @classmethod
    def of(
        cls, inspection: RowInspection, prior_model: Model, parameters: Mapping[Variable, Variable] | None = None
    ) -> Self:
        """Build it, and hold it against the model's own log-likelihood on dummy rows. Reads no private value.

        Parameters
        ----------
        inspection : RowInspection
        prior_model : pymc.Model
            The model without its rows.
        parameters : mapping of Variable to Variable, optional
            What stands for each of ``inspection.stand_ins``; they stand for themselves by default.

        Raises
        ------
        UnsupportedModelError
            If the likelihood does not factorise over rows on dummy rows.
        PrivacyError
            If anything private were left in the graph.
        """
        free = dict(parameters or zip(inspection.stand_ins, inspection.stand_ins, strict=True))
        one = {column.leaf: placeholder(column.leaf, shape_of(column.leaf)[1:]) for column in inspection.columns}
        many = tuple(placeholder(column.leaf, (None, *shape_of(column.leaf)[1:])) for column in inspection.columns)
        terms = {term.name: frozen_shared(of_one_row(term, one, free), inspection.hidden) for term in inspection.terms}
        total = pt.add(*terms.values()) if len(terms) > 1 else next(iter(terms.values()))
        if inspection.hidden & set(reached([total, *prior_model.free_RVs])):
            raise PrivacyError("Private data would stay within a compiled function; this is an error of pymc_dp.")
        if parameters is None:
            free = _over_numbers(inspection, prior_model)
            verify_on_dummy_rows(inspection, free, rebuild([total], free)[0][0], one)
        else:
            verify_on_dummy_rows(inspection, free, total, one)
        return cls(columns=inspection.columns, one=one, many=many, terms=terms, total=total)

    def over_rows(self, graph: Variable) -> Variable:
        """Vectorise a graph over `one` into one over `many`: a new first axis counts rows."""
        return vectorised(graph, dict(zip(self.one.values(), self.many, strict=True)))


def verify_on_dummy_rows(
    inspection: RowInspection,
    free: Mapping[Variable, Variable],
    one_row: Variable,
    one: Mapping[Variable, Variable],
) -> None:
    """Compare the model's log-likelihood of a dummy table with the sum over its rows, at a few random positions.

    Raises
    ------
    UnsupportedModelError
        If they differ, the model's log-likelihood does not separate over rows in this way.
    """
    rng = np.random.default_rng(0)
    tables = dummy_rows(inspection.columns, DUMMY_ROWS, rng)
    held = {column.leaf: pt.constant(table) for column, table in zip(inspection.columns, tables, strict=True)}
    whole = [with_rows(term, held, free).sum() for term in inspection.terms]
    rows = {one[leaf]: table for leaf, table in held.items()}
    separate = vectorize_graph(one_row, rows).sum()
    totals = [pt.add(*whole) if len(whole) > 1 else whole[0], separate]
    names = ", ".join(term.name for term in inspection.terms)
    roots = [var for var in ancestors(totals) if var.owner is None]
    inputs = [var for var in roots if not isinstance(var, Constant | SharedVariable)]
    shapes = [var.type.shape for var in inputs]
    if any(None in shape for shape in shapes):
        start = start_of(inspection.model)
        shapes = [np.shape(start[str(var.name)]) for var in inputs]
    # Composite operations compile what is inside of them, by the default mode or in C, which may take minutes.
    with pytensor.config.change_flags(**NUMPY):
        function = plain_function(inputs, totals, few=True)
        for _ in range(3):
            point = [np.asarray(rng.normal(0, 0.3, shape)) for shape in shapes]
            whole_sum, row_sum = function(*point)
            if not np.allclose(whole_sum, row_sum, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                what = (
                    "on dummy rows its log-likelihood is not the sum of terms of single rows: it does not factorise "
                    "over rows"
                )
                remedy = "Write a density that is a product over rows."
                raise UnsupportedModelError([Problem(where=names, what=what, remedy=remedy)])


def vectorised(graph: Variable, rows: Mapping[Variable, Variable]) -> Variable:
    """Vectorise a graph over one row into one over many; what no row enters is repeated for each."""
    used = {one: many for one, many in rows.items() if one in set(ancestors([graph]))}
    found = vectorized(written_out(graph, used), used) if used else graph
    if found.type.ndim > graph.type.ndim:
        return found
    return pt.broadcast_to(found, (next(iter(rows.values())).shape[0], *_lengths(found)))


def _over_numbers(inspection: RowInspection, prior_model: Model) -> dict[Variable, Variable]:
    """Return what stands for the free variables as graphs over real numbers, any of which lead into their supports."""
    values = {prior_model.rvs_to_values[rv]: _any_number(prior_model.rvs_to_values[rv]) for rv in prior_model.free_RVs}
    points = rebuild(prior_model.replace_rvs_by_values(prior_model.free_RVs), values)[0]
    return dict(zip(inspection.stand_ins, points, strict=True))


def _any_number(value: Variable) -> Any:
    if value.type.dtype.startswith("float"):
        return value
    return pt.TensorType("float64", value.type.shape)(value.name).round().astype(value.type.dtype)


def _lengths(graph: Variable) -> Sequence[Variable]:
    return [graph.shape[axis] for axis in range(graph.type.ndim)]


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
UNDIVIDED = 8192
"""Most entries of rows at a time."""
ROWS_AT_ONCE = ("batched_vector_b_solve_to_matrix_b_solve",)
"""Rewrites that hand all rows to one call of a library of linear algebra, which may treat a row by its neighbours."""


def whole_chunk(entries: int, most: int) -> int:
    """Return how many rows to evaluate at a time, given the entries of one row; a multiple of `ALIKE`.

    Notes
    -----
    Compiled code works off rows in groups, and the few that are left over by other instructions, whose results may
    differ in the last digit; a library of linear algebra does so within the share of each of its threads. A row that is
    added would then change what the rows behind it give. So rows come in whole groups, filled up with others of no
    account, and few enough to be left to one thread: a product of a matrix of less than 9216 entries with a vector is
    not divided by OpenBLAS.
    """
    return max(ALIKE, min(most, UNDIVIDED // max(1, entries)) // ALIKE * ALIKE)


def filled(count: int) -> int:
    """Return the number of rows that so many are filled up to."""
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


__all__ = [
    "ALIKE",
    "BEFORE_FUSION",
    "ROWS_AT_ONCE",
    "RowFunction",
    "RowProducts",
    "compiled_rows",
    "filled",
    "row_products",
    "vectorised",
    "verify_on_dummy_rows",
    "whole_chunk",
]
