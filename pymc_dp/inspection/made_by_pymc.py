"""Arrays that PyMC writes into a graph itself.

Some are made of lengths alone: their graph is written again without an array. To add one, add a rule to `REWRITTEN`.
Others PyMC computes from the rows, where nothing shows it: what `placed_by_data` returns is private.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.censored import CensoredRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.multivariate import _LKJCholeskyCovRV
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Add, Sub
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor

from pymc_dp.inspection.rows import rebuild, unwrap


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
    return column if column.type.ndim == 2 and column.type.broadcastable[1] else None


def _tile(var: Variable) -> Variable | None:
    column = _column_of_tile(var)
    if column is None or column.type.broadcastable[0]:
        return None
    return column * pt.ones((1, var.type.shape[1]), dtype=var.type.dtype)


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


def _censored(var: Variable) -> Variable | None:
    """Return a censored variable with the limits that PyMC has left out, for all of an array were infinite.

    Whether nobody is censored is private. None for other graphs.
    """
    node: Any = var.owner
    if not isinstance(node.op, CensoredRV):
        return None
    dist, *limits = node.inputs
    drawn, *held = node.op.fgraph.outputs[0].owner.inputs
    pairs = zip(limits, held, strict=True)
    stand_ins = {
        one: one.type() for one, inner in pairs if inner is drawn and isinstance(one, Constant) and one.type.ndim
    }
    if not stand_ins:
        return None
    found = CensoredRV.rv_op(dist, *(stand_ins.get(one, one) for one in limits))
    return rebuild([found], {stand_in: one for one, stand_in in stand_ins.items()})[0][0]


REWRITTEN: tuple[Callable[[Variable], Variable | None], ...] = (_triangle, _tile, _beside, _censored)
"""Graphs of PyMC in another form of the same values: without arrays, with rows kept apart, or whatever values are."""
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


class Placed(NamedTuple):
    """Numbers by which PyMC places a basis: its centre, and in ``pm.gp.HSGP`` its half-width too."""

    x: Variable
    numbers: list[Constant]
    periodic: bool


def placed_by_data(ends: Sequence[Variable]) -> list[Placed]:
    """Return by which numbers ``pm.gp.HSGP`` and ``pm.gp.HSGPPeriodic`` place their bases.

    PyMC computes them from the first X that it is given. They are known by the graph, and no value is looked at: a
    column is repeated, ``pt.tile``, after a constant vector was subtracted, or before one is added.
    """
    centres, half_widths = defaultdict[Variable, list[Constant]](list), defaultdict[Variable, list[Constant]](list)
    tiles = {var: column for var in ancestors(list(ends)) if var.owner and (column := _column_of_tile(var)) is not None}
    for column in tiles.values():
        for node in (var.owner for var in ancestors([column]) if _is(var.owner, Sub)):
            if _plain(centre := unwrap(node.inputs[1])):
                centres[_source(node.inputs[0])].append(centre)
    for node in (var.owner for var in ancestors(list(ends)) if _is(var.owner, Add)):
        repeated = [tiles[var] for var in node.inputs if var in tiles]
        for half_width in map(_source, node.inputs if repeated else []):
            if _plain(half_width):
                half_widths[_source(_uncentred(repeated[0]))].append(half_width)
    return [
        Placed(x=x, numbers=[*centres[x], *half_widths[x]], periodic=not half_widths[x])
        for x in dict.fromkeys([*centres, *half_widths])
    ]


def _uncentred(column: Variable) -> Variable:
    """Return the column before a centre was subtracted."""
    inner = _source(column)
    return inner.owner.inputs[0] if _is(inner.owner, Sub) else inner


def _plain(var: Variable) -> bool:
    return isinstance(var, Constant) and not var.name and var.type.ndim == 1


def _source(var: Variable) -> Variable:
    """Strip choices of columns and of entries: what they are taken from is left."""
    var = unwrap(var)
    while var.owner is not None and isinstance(var.owner.op, Subtensor | AdvancedSubtensor):
        var = unwrap(var.owner.inputs[0])
    return var


def _is(node: Any, scalar: type) -> bool:
    return node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scalar)


__all__ = ["Placed", "parameters_without_arrays", "placed_by_data", "without_arrays"]
