"""What PyMC makes of no rows: arrays that it writes into a graph itself, and graphs that are written anew without any.

An array without a name may be made of rows, so that none is taken for public unless it is one of these. To add one, add
its form to `FORMS`, or a rule to `REWRITTEN` that writes its graph without an array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.multivariate import _LKJCholeskyCovRV
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Mul, Sub, TrueDiv
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor

from pymc_dp.inspection.rows import Array, public_values, rebuild, unwrap

MOST_NODES = 256
"""Of a quadrature, for which an array is compared with its nodes and weights."""


def _square(values: Array) -> bool:
    return values.ndim == 2 and values.shape[0] == values.shape[1]


def _counted(values: Array) -> bool:
    """Whether an array is 0, 1, 2, ... or 1, 2, 3, ..., along one of its axes or on a diagonal."""
    line = np.diagonal(values) if _square(values) else values.ravel() if values.size in values.shape else values
    if line.ndim != 1 or (_square(values) and np.count_nonzero(values) != np.count_nonzero(line)):
        return False
    return any(np.array_equal(line, np.arange(first, first + len(line))) for first in (0, 1))


def _places_in_triangle(values: Array) -> bool:
    """Whether an array is what ``np.tril_indices`` returns, or the places of a diagonal in a packed triangle."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        return False
    size = int(np.sqrt(2 * len(values)))
    diagonal = np.cumsum(np.arange(1, len(values) + 1)) - 1
    return any(np.array_equal(values, one) for one in (*np.tril_indices(size), *np.triu_indices(size), diagonal))


def _frequencies(values: Array) -> bool:
    """Whether an array is π times the numbers of the basis functions of ``pm.gp.HSGP``, of one column per dimension."""
    if values.ndim != 2 or values.dtype.kind != "f":
        return False
    numbers = np.rint(2 * values / np.pi) / 2
    axes = [np.unique(column) for column in numbers.T]
    if np.prod([float(len(axis)) for axis in axes]) != len(values):
        return False
    grid = np.vstack([one.ravel() for one in np.meshgrid(*axes)]).T
    counted = all(axis[0] in (0, 0.5, 1) and (np.diff(axis) == 1).all() for axis in axes)
    return counted and np.array_equal(values, np.pi * grid)


def _nodes(values: Array) -> bool:
    """Whether an array holds the nodes or the weights of a Gauss quadrature."""
    if values.ndim != 1 or values.dtype.kind != "f" or not 1 < len(values) <= MOST_NODES:
        return False
    rules = (np.polynomial.hermite.hermgauss, np.polynomial.hermite_e.hermegauss, np.polynomial.legendre.leggauss)
    return any(np.array_equal(values, one) for rule in rules for one in rule(len(values)))


FORMS: Mapping[str, Callable[[Array], bool]] = {
    "zeros": lambda values: bool((values == 0).all()),
    "ones": lambda values: bool((values == 1).all()),
    "an identity": lambda values: _square(values) and np.array_equal(values, np.eye(len(values))),
    "a triangle of ones": lambda values: (
        _square(values) and any(np.array_equal(values, one) for one in (np.tri(len(values)), np.tri(len(values)).T))
    ),
    "whole numbers in order": _counted,
    "places in a triangle": _places_in_triangle,
    "frequencies of a basis": _frequencies,
    "nodes of a quadrature": _nodes,
}
"""Arrays that are known by their values, which say nothing but their lengths."""


def form_of(values: Array) -> str | None:
    """Return what an array is that code makes of nothing but its lengths; None where it is another one."""
    return next((name for name, fits in FORMS.items() if values.size and fits(values)), None)


def plainly_made(leaf: Variable) -> bool:
    """Whether an unnamed array is one that code makes of nothing but its lengths. Reads its values."""
    return not leaf.name and isinstance(leaf, Constant) and form_of(public_values(leaf, ())) is not None


# Graphs ---------------------------------------------------------------------------------------------------------------


def _triangle(var: Variable) -> Variable | None:
    """Return the triangle of a Cholesky factor, ``pm.LKJCholeskyCov``, by single assignments; None for other graphs.

    What the indices hold by which PyMC fills it is known without them, from the layout of the vector that they spread.
    """
    node: Any = var.owner
    if not isinstance(node.op, AdvancedIncSubtensor) or len(node.inputs) != 4 or not node.op.set_instead_of_inc:
        return None
    zeros, packed, *indices = node.inputs
    size, *others = zeros.type.shape
    if others != [size] or size is None or not isinstance(zeros.owner and zeros.owner.op, Alloc):
        return None
    count = size * (size + 1) // 2
    spread = all(index.type.shape == (count,) and isinstance(index, Constant) for index in indices)
    if not spread or not isinstance(packed.owner and packed.owner.op, _LKJCholeskyCovRV):
        return None
    filled = pt.zeros((size, size), dtype=var.type.dtype)
    for place, (i, j) in enumerate(zip(*np.tril_indices(size), strict=True)):
        filled = pt.set_subtensor(filled[int(i), int(j)], packed[place])
    filled.tag.lower_triangular = True
    return filled


def _column_of_tile(var: Variable) -> Variable | None:
    """Return what ``pt.tile`` repeats beside itself, (n, 1), as bases of ``pm.gp.HSGP`` do; None for other graphs."""
    node: Any = var.owner
    repeated = node.inputs[0].owner if isinstance(node.op, Reshape) and var.type.ndim == 2 else None
    if repeated is None or not isinstance(repeated.op, Alloc):
        return None
    wide, shape = repeated.inputs[0].owner, repeated.outputs[0].type.shape
    if len(shape) != 4 or (shape[0], shape[3]) != (1, 1) or shape[2] is None or shape[2] != var.type.shape[1]:
        return None
    if wide is None or not isinstance(wide.op, DimShuffle) or tuple(wide.op.new_order) != ("x", 0, "x", 1):
        return None
    column: Variable = wide.inputs[0]
    return column if column.type.broadcastable == (False, True) else None


def _tile(var: Variable) -> Variable | None:
    column = _column_of_tile(var)
    return None if column is None else column * pt.ones((1, var.type.shape[1]), dtype=var.type.dtype)


def _beside(var: Variable) -> Variable | None:
    """Return columns side by side, of which some are one number, ``pt.zeros((n, 1))``, as long as the others are.

    So a category is written that others are compared with. None for other graphs.
    """
    node: Any = var.owner
    if not isinstance(node.op, Join) or node.op.axis not in (0, 1) or var.type.ndim != 2:
        return None
    axis = node.op.axis
    filled = [_one_number(item, axis) for item in node.inputs]
    others = [item for item, one in zip(node.inputs, filled, strict=True) if one is None and item.type.shape[axis] != 0]
    if not others or len(others) == len(filled):
        return None
    first = others[0][:, :1] if axis else others[0][:1]
    like = pt.zeros_like(first, dtype=var.type.dtype)
    pairs = zip(node.inputs, filled, strict=True)
    return pt.join(axis, *(item if one is None else like + one for item, one in pairs))


def _one_number(var: Variable, axis: int) -> Variable | None:
    """Return one row, or one column, of an array of several that are filled with one number; None for other graphs."""
    node, count = var.owner, var.type.shape[axis]
    if (
        node is not None
        and isinstance(node.op, DimShuffle)
        and tuple(node.op.new_order) == ((0, "x") if axis else ("x", 0))
    ):
        node = node.inputs[0].owner
    made = node is not None and isinstance(node.op, Alloc) and not node.inputs[0].type.ndim
    if not made or count is None:
        return None
    return pt.full((1, count) if axis else (count, 1), node.inputs[0])


REWRITTEN: tuple[Callable[[Variable], Variable | None], ...] = (_triangle, _tile, _beside)
"""Graphs of PyMC in another form of the same values: one without arrays, or one in which rows are kept apart."""
_FOUND: WeakKeyDictionary[Variable, tuple[Variable, ...]] = WeakKeyDictionary()
"""By random variable: whoever asks twice is given the same graphs."""


def parameters_without_arrays(rv: Variable, parameters: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the parameters of a random variable as `without_arrays` does, the same ones each time."""
    if rv not in _FOUND:
        draws = RandomVariable | SymbolicRandomVariable
        _FOUND[rv] = without_arrays(
            parameters, [var for var in ancestors(list(parameters)) if var.owner and isinstance(var.owner.op, draws)]
        )
    return _FOUND[rv]


def without_arrays(outputs: Sequence[Variable], stop: Collection[Variable] = ()) -> tuple[Variable, ...]:
    """Return graphs in which what `REWRITTEN` knows is written anew; the same ones where there is nothing of it.

    What is above `stop` is not visited: variables of a model whose prior has a triangle stay the same variables.
    """
    kept = {var: var for var in stop}
    while found := _rewritten(outputs, kept):
        outputs = rebuild(list(outputs), {**kept, **found})[0]
    return tuple(outputs)


def _rewritten(outputs: Sequence[Variable], stop: Collection[Variable]) -> dict[Variable, Variable]:
    inner = [var for var in ancestors(list(outputs), blockers=list(stop)) if var.owner and var not in stop]
    return {var: new for var in inner for rule in REWRITTEN if (new := rule(var)) is not None}


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """Where the basis functions of ``pm.gp.HSGP`` live, computed by PyMC from the first X that it is given.

    Attributes
    ----------
    x : Variable
        What it is a basis of.
    centre, half_width : Variable
        Constants, (n_dimensions,).
    arrays : tuple of Variable
        These, and the frequencies.
    """

    x: Variable
    centre: Variable
    half_width: Variable
    arrays: tuple[Variable, ...]

    def problem(self, bounds: tuple[Array, Array] | None) -> tuple[str, str] | None:
        """Return what is wrong with a box, given bounds of x that anyone may know, and what to write; else None."""
        shown = repr(self.x.name) if self.x.name else "a column"
        size = np.asarray(self.centre.data).size
        ends = f"[[{', '.join(['low'] * size)}], [{', '.join(['high'] * size)}]]"
        if bounds is not None:
            low, high = (np.ravel(end) for end in bounds)
            centre, half_width = np.asarray(self.centre.data), np.asarray(self.half_width.data)
            ends, half = f"[{low.tolist()}, {high.tolist()}]", (high - low) / 2
            if centre.shape != half_width.shape or low.size not in (1, centre.size):
                what = f"the basis of {shown} is of some of its columns, so that its box is not known from bounds"
                return what, "Give the covariance function an X of its own columns alone, without active_dims."
            if (centre == (low + high) / 2).all() and (half_width >= half).all():
                return None
            if (centre == (low + high) / 2).all():
                what = f"the half-width L of the basis of {shown} is less than that of its bounds"
                return what, f"Give pm.gp.HSGP(..., L={half.tolist()}) or more."
        return (
            f"pm.gp.HSGP places the basis of {shown} by the X that it sees first, which are rows",
            f"Let it see public bounds first, after gp = pm.gp.HSGP(...): gp.prior_linearized(np.array({ends}))",
        )

    @property
    def columns(self) -> list[Variable]:
        """What its x is: one array, or columns side by side."""
        node = self.x.owner
        side_by_side = node is not None and isinstance(node.op, Join) and node.op.axis == 1
        return [unwrap(var) for var in node.inputs] if side_by_side else [self.x]

    @property
    def ends(self) -> Array:
        """Its lower and its upper ends, (2, n_dimensions)."""
        centre, half_width = np.asarray(self.centre.data), np.asarray(self.half_width.data)
        return np.stack(np.broadcast_arrays(centre - half_width, centre + half_width))

    @property
    def line(self) -> str:
        """What is assumed public of it."""
        low, high = self.ends.tolist()
        return f"the box of the basis of {self.x.name or 'a column'}: from {low} to {high}, chosen without the rows"


def boxes(ends: Sequence[Variable], stop: Collection[Variable] = ()) -> Iterator[Box]:
    """Yield the boxes of all bases of ``pm.gp.HSGP`` in a graph. Reads nothing but what is divided by a half-width."""
    nodes = [var.owner for var in ancestors(list(ends), blockers=list(stop)) if var.owner]
    divided = [node.inputs for node in nodes if _is(node, TrueDiv) and isinstance(node.inputs[0], Constant)]
    for node in nodes:
        repeated = [column for var in node.inputs if (column := _repeated(var)) is not None]
        moved = [half for var in node.inputs if _plain(half := _source(var))]
        if not _is(node, Add) or len(repeated) != 1 or len(moved) != 1:
            continue
        centred, (half_width,) = _source(repeated[0]), moved
        x, centre = (unwrap(var) for var in centred.owner.inputs) if _is(centred.owner, Sub) else (centred, centred)
        if _plain(centre):
            tops = [top for top, below in divided if half_width in ancestors([below])]
            own = [top for top in tops if _frequencies(np.asarray(top.data))]
            yield Box(
                x=x, centre=centre, half_width=half_width, arrays=(centre, half_width, *own, *_chosen(repeated[0]))
            )


def _chosen(column: Variable) -> Iterator[Variable]:
    """Yield the numbers of the columns that a covariance function takes, ``active_dims``."""
    for var in ancestors([column]):
        if var.owner is not None and isinstance(var.owner.op, AdvancedSubtensor):
            yield from (one for one in var.owner.inputs[1:] if _plain(one) and one.type.dtype.startswith("int"))


def _plain(var: Variable) -> bool:
    return isinstance(var, Constant) and not var.name and var.type.ndim == 1


def _repeated(var: Variable) -> Variable | None:
    """Return the column, (n, 1), that ``pt.tile`` or `_tile` repeats; None for other graphs."""
    if var.owner is None:
        return None
    if _is(var.owner, Mul) and len(var.owner.inputs) == 2:
        column, ones = var.owner.inputs
        made = ones.owner is not None and isinstance(ones.owner.op, Alloc)
        return column if made and column.type.broadcastable == (False, True) else None
    return _column_of_tile(var)


def _source(var: Variable) -> Variable:
    """Strip choices of columns and of entries: what they are taken from is left."""
    var = unwrap(var)
    while var.owner is not None and isinstance(var.owner.op, Subtensor | AdvancedSubtensor):
        var = unwrap(var.owner.inputs[0])
    return var


def _is(node: Any, scalar: type) -> bool:
    return node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scalar)


__all__ = ["Box", "boxes", "form_of", "parameters_without_arrays", "plainly_made", "without_arrays"]
