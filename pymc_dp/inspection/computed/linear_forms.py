"""A graph of one row as a sum of coefficients times functions of the row alone.

``b2 * H * Q`` is the coefficient b2 times ``H * Q``; ``stack([x, x**2], axis=1) @ b`` is ``b[0]`` times x and ``b[1]``
times ``x ** 2``. Graphs are followed entry by entry, so that matrices are nothing but several numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Join, MakeVector, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_dp.inspection.computed.expressions import ONE, WRITTEN, Formula, Number, applied, entry_of, range_of
from pymc_dp.inspection.computed.terms import PRODUCTS, SUMS, NotLinear, Terms, multiplied, quotient, summed
from pymc_dp.inspection.priors import constant_values
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.inspection.taint import Axis

MOST_ENTRIES = 20_000
"""Of all graphs on the way."""
WHOLE = ("int32", "int64")
"""Dtypes of whole numbers that sums and products are taken to fit into."""

Place = tuple[int, ...]


@dataclass(kw_only=True)
class LinearForms:
    """Graphs over columns of numbers and parameters.

    Attributes
    ----------
    columns : mapping of Variable to Column
        What stands for columns of numbers.
    axes : mapping of Variable to int or None
        Where rows vary in every variable, as was proved (`taint.trace_rows`).
    given : collection of Variable
        Free variables, and what stands for columns that are indices: coefficients may depend on both.
    hidden : collection of Variable
        What no number may be read from.
    """

    columns: Mapping[Variable, Column]
    axes: Mapping[Variable, Axis]
    given: Collection[Variable]
    hidden: Collection[Variable]
    _known: dict[tuple[Variable, Place], Terms] = field(default_factory=dict, init=False)
    _of_rows: dict[Variable, bool] = field(default_factory=dict, init=False)
    _numbers: dict[Variable, Array | None] = field(default_factory=dict, init=False)

    def of(self, var: Variable) -> Terms:
        """Return what a vector with one number a row is.

        Raises
        ------
        NotLinear
        """
        return self.at(var, (0,))

    def at(self, var: Variable, place: Place) -> Terms:
        """Return an entry of a variable; the place of the row does not matter."""
        key = var, place
        if key not in self._known:
            if len(self._known) > MOST_ENTRIES:
                raise NotLinear
            self._known[key] = self._found(var, place)
        return self._known[key]

    def _found(self, var: Variable, place: Place) -> Terms:
        if var in self.columns:
            column = self.columns[var]
            shape = column.row_shape
            return Terms.of(entry_of(column, int(np.ravel_multi_index(place[1:], shape)) if shape else 0))
        node = var.owner
        if not self._moves(var) and not (node is not None and isinstance(node.op, DimShuffle)):
            return self._coefficient(var, place)
        rule = next((rule for kind, rule in RULES if isinstance(node.op, kind)), None)
        if rule is None:
            raise NotLinear
        return rule(self, node, place)

    def _moves(self, var: Variable) -> bool:
        """Whether a variable depends on a column of numbers."""
        if var not in self._of_rows:
            self._of_rows[var] = bool(set(self.columns) & set(ancestors([var], blockers=list(self.given))))
        return self._of_rows[var]

    def _coefficient(self, var: Variable, place: Place) -> Terms:
        number = self._number(var)
        if number is not None:
            return Terms.of(Number(float(number[place])))
        axis = self.axes.get(var)
        index = tuple(slice(None) if one == axis else entry for one, entry in enumerate(place))
        return Terms(held={ONE: var[index] if index else var})

    def _number(self, var: Variable) -> Array | None:
        """Return the value of a public graph without parameters."""
        if var not in self._numbers:
            above = set(ancestors([var]))
            known = above & {*self.given, *self.hidden}
            held = None if known else [var.data] if isinstance(var, Constant) else constant_values([var])
            self._numbers[var] = None if held is None else np.asarray(held[0])
        return self._numbers[var]


def _elementwise(forms: LinearForms, node: Apply, place: Place) -> Terms:
    kind, dtype = type(node.op.scalar_op), node.outputs[0].type.dtype
    inputs = [forms.at(var, _within(var, place)) for var in node.inputs]
    if kind is ops.Cast:
        return _cast(inputs[0], node.inputs[0].type.dtype, dtype)
    if kind is ops.Identity:
        return inputs[0]
    if kind is ops.Second:
        return inputs[1]
    truth = dtype == "bool" and kind in (ops.Add, ops.Sub, ops.Neg)
    bits = kind in (ops.AND, ops.OR, ops.XOR, ops.Invert) and any(var.type.dtype != "bool" for var in node.inputs)
    alone = all(item.formula is not None for item in inputs)
    narrow = dtype.startswith(("int", "uint")) and dtype not in WHOLE
    if truth or bits or (narrow and not alone) or dtype == "float16":
        raise NotLinear
    found = _operated(forms, node, place, inputs)
    if narrow and not _fits(found.require(), dtype):
        raise NotLinear
    return found


def _fits(formula: Formula, dtype: str) -> bool:
    """Whether whole numbers stay within a dtype, which would wrap around."""
    bounds = range_of(formula)
    return bounds is not None and np.iinfo(dtype).min <= bounds[0] <= bounds[1] <= np.iinfo(dtype).max


def _operated(forms: LinearForms, node: Apply, place: Place, inputs: Sequence[Terms]) -> Terms:
    kind, alone = type(node.op.scalar_op), all(item.formula is not None for item in inputs)
    if kind in SUMS:
        return SUMS[kind](inputs)
    if kind is ops.Mul:
        return multiplied([forms.at(var, entry) for var, entry in _factors(node, place)])
    if kind in PRODUCTS and not alone:
        return PRODUCTS[kind](inputs)
    if kind is ops.TrueDiv and isinstance(inputs[1].formula, Number):
        return Terms(held=quotient(inputs).held, formula=applied(kind, *(item.require() for item in inputs)))
    if not alone or (kind not in WRITTEN and kind is not ops.Sqr):
        raise NotLinear
    formulas = [item.require() for item in inputs]
    if len(formulas) > 2 and kind not in (ops.Switch, ops.Clip):
        return Terms.of(reduce(lambda one, other: applied(kind, one, other), formulas))
    return Terms.of(applied(kind, *formulas))


def _factors(node: Apply, place: Place) -> Iterator[tuple[Variable, Place]]:
    """Yield what is multiplied, products within a product as well: ``b * (x - 3) * (z - 2)``."""
    for var in node.inputs:
        inner, entry = var.owner, _within(var, place)
        if inner is not None and isinstance(inner.op, Elemwise) and isinstance(inner.op.scalar_op, ops.Mul):
            yield from _factors(inner, entry)
        else:
            yield var, entry


def _within(var: Variable, place: Place) -> Place:
    """Return the entry of an input that broadcasts."""
    return tuple(0 if alone else entry for alone, entry in zip(var.type.broadcastable, place, strict=True))


def _cast(given: Terms, before: str, after: str) -> Terms:
    if after.startswith("float") and after != "float16":
        return given
    if after == "bool":
        return given if before == "bool" else Terms.of(applied(ops.NEQ, given.require(), Number(0.0)))
    if before == "bool" or (after in WHOLE and not before.startswith("float")):
        return given
    whole = Terms.of(applied(ops.Trunc, given.require())) if before.startswith("float") else given
    if after not in WHOLE and not _fits(whole.require(), after):
        raise NotLinear
    return whole


def _turned(forms: LinearForms, node: Apply, place: Place) -> Terms:
    order = list(node.op.new_order)
    ndim = node.inputs[0].type.ndim
    return forms.at(node.inputs[0], tuple(place[order.index(axis)] if axis in order else 0 for axis in range(ndim)))


def _same(forms: LinearForms, node: Apply, place: Place) -> Terms:
    return forms.at(node.inputs[0], place)


def _reduced(forms: LinearForms, node: Apply, place: Place) -> Terms:
    given = node.inputs[0]
    if node.op.axis is None:
        raise NotLinear
    axes = {int(axis) % given.type.ndim for axis in node.op.axis}
    left = iter(place)
    entries = [range(_length(forms, given, axis)) if axis in axes else [next(left)] for axis in range(given.type.ndim)]
    return summed([forms.at(given, one) for one in product(*entries)])


def _length(forms: LinearForms, var: Variable, axis: int) -> int:
    """Return the length of an axis that does not count rows."""
    if (length := var.type.shape[axis]) is not None:
        return int(length)
    if var in forms.columns and axis > 0:
        return forms.columns[var].row_shape[axis - 1]
    if var.owner is None or not isinstance(var.owner.op, Elemwise):
        raise NotLinear
    return _length(forms, next(item for item in var.owner.inputs if not item.type.broadcastable[axis]), axis)


def _contracted(forms: LinearForms, node: Apply, place: Place) -> Terms:
    """Return an entry of a product of two matrices, or of a matrix and a vector."""
    first, second = node.inputs
    if not isinstance(node.op, Dot) and not isinstance(node.op.core_op, Dot):
        raise NotLinear
    if first.type.ndim != 2 or second.type.ndim not in (1, 2):
        raise NotLinear
    lengths = {length for length in (first.type.shape[1], second.type.shape[0]) if length is not None}
    if len(lengths) != 1:
        raise NotLinear
    pairs = ((forms.at(first, (place[0], k)), forms.at(second, (k, *place[1:]))) for k in range(lengths.pop()))
    return summed([multiplied(pair) for pair in pairs])


def _joined(forms: LinearForms, node: Apply, place: Place) -> Terms:
    axis = int(node.op.axis) % len(place)
    entry = place[axis]
    for part in node.inputs:
        length = _length(forms, part, axis)
        if entry < length:
            return forms.at(part, (*place[:axis], entry, *place[axis + 1 :]))
        entry -= length
    raise NotLinear


def _stacked(forms: LinearForms, node: Apply, place: Place) -> Terms:
    return forms.at(node.inputs[place[0]], ())


def _taken(forms: LinearForms, node: Apply, place: Place) -> Terms:
    given, left, found = node.inputs[0], list(place), list[int]()
    entries: list[Any] = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    entries += [slice(None)] * (given.type.ndim - len(entries))
    for axis, entry in enumerate(entries):
        if entry == slice(None):
            found.append(left.pop(0))
        elif isinstance(entry, slice):
            ends = [end if end is None else int(_settled(end)) for end in (entry.start, entry.stop, entry.step)]
            found.append(range(_length(forms, given, axis))[slice(*ends)][left.pop(0)])
        else:
            found.append(int(_settled(entry)) % _length(forms, given, axis))
    return forms.at(given, tuple(found))


def _settled(index: Any) -> Any:
    if isinstance(index, Variable) and not hasattr(index, "data"):
        raise NotLinear
    return getattr(index, "data", index)


RULES: tuple[tuple[Any, Callable[[LinearForms, Apply, Place], Terms]], ...] = (
    (Elemwise, _elementwise),
    (DimShuffle, _turned),
    ((ViewOp, SpecifyShape, TensorFromScalar), _same),
    (Sum, _reduced),
    ((Dot, Blockwise), _contracted),
    (Join, _joined),
    (MakeVector, _stacked),
    (Subtensor, _taken),
)


__all__ = ["LinearForms"]
