"""Gradients of the log-likelihood row by row, as one compiled function over a batch, and the gradient of the prior.

Compiled gradients, kept for models that differ in rows alone: compiling takes longer than most chains.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile.io import In, Out
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.scalar.basic import Mul
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import start_of
from pymc_dp.inspection.one_row import frozen_shared
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.row_function import RowFunction
from pymc_dp.step_methods.row_functions.builder import ROWS_AT_ONCE, compiled_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """The gradient of every row of a batch with respect to consecutive parameters: factor times vector.

    Attributes
    ----------
    start : int
        First place in the position.
    factors : Variable
        (n_batch,) graph.
    vectors : Variable
        (n_batch, n) graph. For a linear predictor these are the covariates themselves: no gradient is ever written out.
    """

    start: int
    factors: Variable
    vectors: Variable


class Slope(NamedTuple):
    """The gradient of one row's log-likelihood with respect to consecutive parameters."""

    start: int
    size: int
    gradient: Variable


@dataclass(frozen=True, kw_only=True, eq=False)
class RowGradients:
    """Graphs over a flat position and a batch of rows; nothing in them is private.

    Attributes
    ----------
    position : Variable
        (n_parameters,) vector of the prior model's value variables, one after the other.
    shapes : tuple of (name, shape, dtype)
        Of the value variables.
    row : RowFunction
        The log-likelihood of one row.
    slopes : tuple of Slope
        Its gradient with respect to each value variable that has one.
    flat_values : mapping of Variable to Variable
        The value variables as parts of the position.
    prior_model : pymc.Model
    units : (n_parameters,) array, optional
        Gradients are per unit of each parameter; 1 by default.

    Notes
    -----
    `blocks` and `prior` are made when they are first asked for: to see whether gradients fit a model takes neither.
    """

    position: Variable
    shapes: tuple[tuple[str, tuple[int, ...], str], ...]
    row: RowFunction
    slopes: tuple[Slope, ...]
    flat_values: Mapping[Variable, Variable]
    prior_model: Model
    units: Array | None = None

    @property
    def rows(self) -> tuple[Variable, ...]:
        """One batch input per column of the table."""
        return self.row.many

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Gradients of all rows of a batch."""
        return tuple(map(self._block, self.slopes))

    def _block(self, slope: Slope) -> Block:
        matrix = _as_matrix(self.row.over_rows(slope.gradient), slope.size)
        (table,) = clone_replace([matrix], self.flat_values, rebuild_strict=False)
        if self.units is not None:
            table = table * self.units[slope.start : slope.start + slope.size]
        return _factored(slope.start, table.astype("float64"), self.rows[0].shape[0])

    @cached_property
    def prior(self) -> Variable:
        """Gradient of the log prior, Jacobians and Potentials included: (n_parameters,)."""
        found = _prior(self.prior_model, self.flat_values)
        return found if self.units is None else found * self.units

    @property
    def starts(self) -> Array:
        """First place of every block."""
        return np.array([slope.start for slope in self.slopes], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(int(np.prod(shape)) for _, shape, _ in self.shapes)

    def flat(self, point: Mapping[str, Array]) -> Array:
        """Return the value variables of a point as a new vector of float64."""
        return np.concatenate([np.ravel(point[name]).astype(np.float64) for name, _, _ in self.shapes])

    def point(self, position: Array, like: Mapping[str, Array]) -> dict[str, Array]:
        """Return a vector as a point with the keys of `like`, in the shapes and dtypes of the value variables."""
        new, start = dict(like), 0
        for name, shape, dtype in self.shapes:
            size = int(np.prod(shape))
            new[name] = position[start : start + size].reshape(shape).astype(dtype)
            start += size
        return new


def row_gradients(inspection: RowInspection, prior_model: Model) -> RowGradients:
    """Vectorise the gradient of one row's log-likelihood (`RowFunction`) over a batch of rows.

    Raises
    ------
    UnsupportedModelError
        If a free variable is discrete, an operation has no gradient, or the density of dummy rows does not factorise.
    """
    refuse_discrete(prior_model)
    values = list(prior_model.value_vars)
    shapes = _shapes(prior_model)
    sizes = [int(np.prod(shape)) for _, shape, _ in shapes]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    position = pt.vector("position", shape=(sum(sizes),), dtype="float64")
    free = dict(zip(inspection.stand_ins, prior_model.replace_rvs_by_values(prior_model.free_RVs), strict=True))

    one_row = RowFunction.of(inspection, prior_model, free)
    flat = {
        value: position[start : start + size].reshape(shape).astype(value.type.dtype)
        for value, start, size, (_, shape, _) in zip(values, starts, sizes, shapes, strict=True)
    }
    found = zip(map(int, starts), sizes, _differentiated(one_row.total, values), strict=True)
    slopes = tuple(Slope(start, size, gradient) for start, size, gradient in found if gradient is not None and size)
    if not slopes:
        what = "no free variable reaches its likelihoods"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Sample the prior, which is public.")])
    return RowGradients(
        position=position, shapes=shapes, row=one_row, slopes=slopes, flat_values=flat, prior_model=prior_model
    )


def _shapes(prior_model: Model) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    point = start_of(prior_model)
    return tuple(
        (str(value.name), tuple(np.shape(point[value.name])), str(value.type.dtype)) for value in prior_model.value_vars
    )


def refuse_discrete(prior_model: Model) -> None:
    """Refuse free variables without a gradient."""
    discrete = [var for var in prior_model.free_RVs if np.dtype(var.type.dtype).kind != "f"]
    if discrete:
        raise UnsupportedModelError(
            [
                Problem(
                    where=str(var.name),
                    what=f"it is discrete (dtype {var.type.dtype}), so there is no gradient to follow",
                    remedy="Sum it out (pm.Mixture), or use dp.TemperedGibbs or dp.OPS.",
                )
                for var in discrete
            ]
        )


def _differentiated(total: Variable, values: Sequence[Variable]) -> Sequence[Variable | None]:
    try:
        return pytensor.grad(total, values, disconnected_inputs="ignore", return_disconnected="none")
    except Exception as error:
        raise UnsupportedModelError(
            [
                Problem(
                    where="model",
                    what=f"its log-likelihood has no gradient ({type(error).__name__})",
                    remedy="Use operations that PyTensor can differentiate.",
                )
            ]
        ) from None


def _as_matrix(table: Variable, size: int) -> Variable:
    """Return the (n_batch, size) gradients of all rows of a batch."""
    if table.type.ndim == 1:
        return table[:, None]
    return table if table.type.ndim == 2 else table.reshape((table.shape[0], size))


def _factored(start: int, table: Variable, n_batch: Variable) -> Block:
    """Split (n_batch, n) gradients into a factor per row times a vector per row where the graph is such a product."""
    table = rewrite_graph(table, include=("canonicalize", "stabilize", "specialize"), exclude=ROWS_AT_ONCE)
    factors, vectors = pt.ones((n_batch,)), table
    node = table.owner
    if table.type.shape[1] == 1:
        factors, vectors = table[:, 0], pt.ones((n_batch, 1))
    elif node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Mul):
        wide = [var for var in node.inputs if not var.type.broadcastable[1]]
        narrow = [var for var in node.inputs if var.type.broadcastable[1]]
        if wide and narrow:
            product = pt.mul(*narrow) if len(narrow) > 1 else narrow[0]
            factors = pt.broadcast_to(product[:, 0], (n_batch,)) if product.type.broadcastable[0] else product[:, 0]
            vectors = pt.mul(*wide) if len(wide) > 1 else wide[0]
            if vectors.type.broadcastable[0]:
                vectors = pt.broadcast_to(vectors, (n_batch, vectors.shape[1]))
    return Block(start=start, factors=factors.astype("float64"), vectors=vectors.astype("float64"))


def _prior(prior_model: Model, flat: Mapping[Variable, Variable]) -> Variable:
    values = list(prior_model.value_vars)
    density = frozen_shared(prior_model.logp(), ())
    gradients = pytensor.grad(density, values, disconnected_inputs="ignore", return_disconnected="zero")
    joined = pt.concatenate([gradient.ravel().astype("float64") for gradient in gradients])
    return clone_replace([joined], dict(flat), rebuild_strict=False)[0]


KEPT = 8
"""Models whose compiled gradients a process keeps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Compiled:
    """Functions, and the graphs that they were made of. There is no row in either: rows enter as arguments."""

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    functions: tuple[Any, Any]

    def fits(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> bool:
        """Say whether other graphs compute the same: constants are compared by value, ops by their properties."""
        ours = [var.type for var in (*self.inputs, *self.outputs)]
        theirs = [var.type for var in (*inputs, *outputs)]
        return ours == theirs and equal_computations([*outputs], [*self.outputs], [*inputs], [*self.inputs])


_kept: deque[Compiled] = deque(maxlen=KEPT)


def compiled(gradients: RowGradients) -> tuple[Any, Any]:
    """Return compiled functions: (position, *rows) -> factors and vectors by turns; position -> (prior,).

    The same two for every model whose graphs are equal, so that loops which take them are compiled once as well.
    """
    inputs = (gradients.position, *gradients.rows)
    outputs = tuple(graph for block in gradients.blocks for graph in (block.factors, block.vectors))
    for known in tuple(_kept):
        if known.fits(inputs, (*outputs, gradients.prior)):
            return known.functions
    with without_python():
        rows = _made(inputs, outputs, borrow=True)
    made = rows, _made((gradients.position,), (gradients.prior,), borrow=False)
    _kept.append(Compiled(inputs=inputs, outputs=(*outputs, gradients.prior), functions=made))
    return made


def _made(inputs: tuple[Variable, ...], outputs: tuple[Variable, ...], *, borrow: bool) -> Any:
    function = compiled_rows(
        [In(var, borrow=True) for var in inputs],
        [Out(graph, borrow=borrow) for graph in outputs],
        mode="NUMBA",
        trust_input=True,
    )
    return function.vm.jit_fn


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


__all__ = ["Block", "RowGradients", "compiled", "refuse_discrete", "row_gradients", "without_python"]
