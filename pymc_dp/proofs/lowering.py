"""From a PyTensor graph of one row's log-likelihood to an expression over bounded scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import Add, BinaryBitOp, Cast, Second, Sub, Switch, UnaryBitOp
from pytensor.tensor.basic import (
    Alloc,
    ARange,
    ExtractDiag,
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Argmax, Dot
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from pymc_dp.inspection.priors import constant_values
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import narrow_types
from pymc_dp.intervals.expression import (
    Expression,
    UnknownOperation,
    checked,
    constant,
    elementwise,
    moved,
    switch,
)
from pymc_dp.intervals.interval import Interval, Rule, unknown
from pymc_dp.intervals.reductions import REDUCTIONS, reduction_of
from pymc_dp.intervals.rules import RULES, TO_BOOLEAN, TO_INTEGER
from pymc_dp.proofs import meeting_points, recognised_functions, shape_operations
from pymc_dp.proofs.concavity import OF_PARAMETERS
from pymc_dp.proofs.switches import joined


def lowered(graph: Variable, known: Mapping[Variable, Expression], *, whatever: bool = False) -> Expression:
    """Return a scalar graph as an expression.

    Parameters
    ----------
    graph : Variable
        Its leaves are in `known`, or constants, or public shared variables.
    known : mapping of Variable to Expression
    whatever : bool
        Whether operations without a rule may be anything: for densities that are clipped at the end.

    Raises
    ------
    UnknownOperation
        Naming an operation without a rule.
    """
    return Lowering(dict(known), whatever=whatever).of(graph)


@dataclass
class Lowering:
    """Expressions of variables, as they become known."""

    known: dict[Variable, Expression]
    whatever: bool = False
    fixed: dict[Variable, Array] = field(default_factory=dict)
    same: dict[Any, Apply] = field(default_factory=dict)

    def of(self, graph: Variable) -> Expression:
        """Return the expression of a variable."""
        for node in toposort([graph], blockers=list(self.known)):
            if all(out in self.known for out in node.outputs):
                continue
            if self._met_before(node):
                continue
            try:
                self._add(node)
            except UnknownOperation:
                if not self.whatever:
                    raise
                self.known.update({out: self._anything(node, out) for out in node.outputs})
        return self.known[graph] if graph in self.known else self._leaf(graph)

    def _met_before(self, node: Apply) -> bool:
        """Reuse the expression of an equal operation on equal inputs: what is one in truth should be one node."""
        key = node.op, *(self.known.get(var, _signature(var)) for var in node.inputs)
        before = self.same.setdefault(key, node)
        if before is node:
            return False
        self.known.update({out: self.known[old] for out, old in zip(node.outputs, before.outputs, strict=True)})
        return True

    def _leaf(self, var: Variable) -> Expression:
        if var.owner is not None:
            return self.known[var]
        (value,) = constant_values([var]) or (None,)
        if value is None:
            raise UnknownOperation(f"{var} (a variable that is neither of the row nor of the model)")
        self.known[var] = constant(value)
        return self.known[var]

    def _anything(self, node: Apply, out: Variable) -> Expression:
        """Return an expression of which nothing is known but what it depends on."""
        if any(length is None for length in out.type.shape):
            raise UnknownOperation(f"{_name(node.op)} of a shape that is not known beforehand")
        pairs = zip(self.inputs(node), node.inputs, strict=True)
        hidden = [_one_number(item, var.type.ndim, out.type.ndim) for item, var in pairs if item.symbols]
        if not hidden:
            (value,) = constant_values([out]) or (None,)
            if value is None:
                raise UnknownOperation(_name(node.op))
            return constant(value)
        return _filled(elementwise(_name(node.op), ANYTHING, hidden), out.type.shape)

    def _add(self, node: Apply) -> None:
        if len(node.outputs) != 1 and not isinstance(node.op, OpFromGraph | Argmax):
            raise UnknownOperation(_name(node.op))
        rule = next((rule for kind, rule in OPERATIONS if isinstance(node.op, kind)), None)
        if rule is None:
            raise UnknownOperation(_name(node.op))
        found = rule(self, node)
        for out, expression in zip(node.outputs, found if isinstance(found, list) else [found], strict=False):
            self.known[out] = expression

    def input(self, node: Apply, place: int) -> Expression:
        """Return the expression of one input of a node."""
        var = node.inputs[place]
        return self.known[var] if var in self.known else self._leaf(var)

    def inputs(self, node: Apply) -> list[Expression]:
        """Return the expressions of all inputs of a node."""
        return [self.input(node, place) for place in range(len(node.inputs))]

    def moves(self, var: Variable) -> bool:
        """Whether a variable is computed from something that depends on a parameter or on a row."""
        return any(one in self.known and self.known[one].symbols for one in ancestors([var]))

    def number(self, var: Variable) -> Array:
        """Return the value of a variable that is the same for all rows and parameters: shapes, constant indices."""
        if isinstance(var, Constant):
            return np.asarray(var.data)
        if var in self.known and self.known[var].symbols:
            raise UnknownOperation("a shape or an index that depends on a parameter or on a row")
        if var in self.known and (value := self.known[var].constant) is not None:
            return value
        if var not in self.fixed:
            value = _static(var)
            if value is None:
                value = next(iter(constant_values([var]) or ()), None)
            if value is None:
                raise UnknownOperation("a shape or an index that is not known beforehand")
            self.fixed[var] = np.asarray(value)
        return self.fixed[var]


def _one_number(given: Expression, before: int, after: int) -> Expression:
    """Return a number that depends on every entry of an array of some axes, as an array of others."""
    whole = reduction_of("Sum", tuple(range(before)), given) if before else given
    return moved("Axes", partial(_of_axes, after), [whole])


def _of_axes(ndim: int, array: Array) -> Array:
    return array.reshape(array.shape[0], *(1,) * ndim)


def _nothing_known(*inputs: Interval) -> Interval:
    return unknown(np.broadcast_shapes(*(item.shape for item in inputs)))


def _no_slopes(inputs: tuple[Interval, ...], out: Interval) -> tuple[Interval, ...]:
    return tuple(unknown(out.shape) for _ in inputs)


ANYTHING = Rule(_nothing_known, _no_slopes)
"""Of any operation whatever."""


def _signature(var: Variable) -> Any:
    """Return what two equal constants share; other variables stand for themselves."""
    if not isinstance(var, Constant):
        return var
    data = np.asarray(var.data)
    return (str(data.dtype), data.shape, data.tobytes()) if data.dtype != object else var


def _static(var: Variable) -> Array | None:
    """Lengths that types tell."""
    if var.owner is None:
        return None
    op, inputs = var.owner.op, var.owner.inputs
    if isinstance(op, Shape_i):
        length = inputs[0].type.shape[op.i]
        return None if length is None else np.asarray(length)
    if isinstance(op, Shape) and None not in inputs[0].type.shape:
        return np.asarray(inputs[0].type.shape)
    if isinstance(op, Subtensor | ScalarFromTensor | TensorFromScalar | DimShuffle):
        inner = _static(inputs[0])
        if inner is None or any(not isinstance(item, Constant) for item in inputs[1:]):
            return None
        if isinstance(op, Subtensor):
            index = tuple(_index(entry) for entry in indices_from_subtensor(inputs[1:], op.idx_list))
            return np.asarray(inner[index])
        return inner
    return None


def _name(op: Any) -> str:
    inner = getattr(op, "scalar_op", None) or getattr(op, "core_op", None)
    return type(op).__name__ if inner is None else f"{type(inner).__name__}"


def _elementwise(lowering: Lowering, node: Apply) -> Expression:
    scalar, inputs = node.op.scalar_op, lowering.inputs(node)
    if isinstance(scalar, Second):
        return _spread(node, inputs)
    if isinstance(scalar, Cast):
        found = _cast(node, inputs[0])
    elif isinstance(scalar, Switch):
        found = _branch(node, inputs) or _switched(inputs)
    else:
        rule = next((RULES[kind] for kind in type(scalar).__mro__ if kind in RULES), None)
        of_bits = isinstance(scalar, BinaryBitOp | UnaryBitOp) and any(var.type.dtype != "bool" for var in node.inputs)
        if rule is None or of_bits:
            raise UnknownOperation(type(scalar).__name__)
        known = _sum_of_two(scalar, inputs) or recognised_functions.recognised(type(scalar), inputs)
        found = known or recognised_functions.settled(elementwise(type(scalar).__name__, rule, inputs))
    return _rounded(found, node.outputs[0].type.dtype)


def _rounded(found: Expression, dtype: str) -> Expression:
    """Account for what a type does to a result: rounding to single precision, integers that wrap around, truth."""
    if dtype == "float32":
        exact = recognised_functions.number(found)
        return found if exact is not None and float(np.float32(exact)) == exact else narrow_types.single(found)
    if dtype.startswith(("int", "uint")) and found.symbols:
        low, high = meeting_points.hull(found)
        least, most = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
        fits = low.min(initial=0) >= least and high.max(initial=0) <= most
        wide = np.dtype(dtype).itemsize == np.dtype("int64").itemsize and not np.isfinite([low, high]).all()
        return found if fits or wide else narrow_types.wrapped(found, dtype, least, most)
    if dtype == "bool" and found.symbols:
        low, high = meeting_points.hull(found)
        if low.min(initial=0) < -0.5 or high.max(initial=0) > 1.5:  # True + True is True; products are rounded outwards
            raise UnknownOperation("a sum of booleans, which is one again: cast them to integers first")
    if dtype == "float16":
        raise UnknownOperation(f"{found.name} in half precision")
    return found


def _whole(found: Expression, node: Apply) -> Expression:
    """Account for whole numbers that a sum, or a product of matrices, has no room for."""
    dtype = node.outputs[0].type.dtype
    return _rounded(found, dtype) if dtype.startswith(("int", "uint")) else found


def _spread(node: Apply, inputs: list[Expression]) -> Expression:
    """Fill the shape of the first input with the second; nothing depends on the first where types tell the shape."""
    shape = node.outputs[0].type.shape
    if None in shape:
        return elementwise("Second", RULES[Second], inputs)
    return _filled(inputs[1], shape)


def _sum_of_two(scalar: Any, inputs: list[Expression]) -> Expression | None:
    if len(inputs) != 2 or not isinstance(scalar, Add | Sub):
        return None
    return meeting_points.merged(inputs[0], inputs[1], 1 if isinstance(scalar, Add) else -1)


def _branch(node: Apply, inputs: list[Expression]) -> Expression | None:
    """Return the branch that is taken for all rows and parameters, if there is one."""
    low, high = meeting_points.hull(inputs[0])
    shape = node.outputs[0].type.shape
    if None in shape or not low.size or low.min() != high.max() or not np.isfinite(low).all():
        return None
    place = 1 if low.min() else 2
    return inputs[place] if node.inputs[place].type.shape == shape else _filled(inputs[place], shape)


def _filled(given: Expression, shape: Sequence[int | None]) -> Expression:
    lengths = tuple(int(n or 0) for n in shape)
    return moved("Second", lambda array: np.broadcast_to(array, (array.shape[0], *lengths)), [given])


def _switched(inputs: list[Expression]) -> Expression:
    if recognised_functions.same_branches(inputs[1], inputs[2]):
        return inputs[1]
    known = recognised_functions.bounded(*inputs)
    if known is not None:
        return known
    meets = joined(inputs) if meeting_points.roles(inputs[0]) & OF_PARAMETERS else None
    return meets or switch(RULES[Switch], inputs)


def _cast(node: Apply, given: Expression) -> Expression:
    before, after = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    if after == "bool" and before != "bool":
        return elementwise("Cast{bool}", TO_BOOLEAN, [given])
    if before.startswith("float") and not after.startswith("float"):
        return elementwise(f"Cast{{{after}}}", TO_INTEGER, [given])
    return given


def _same(lowering: Lowering, node: Apply) -> Expression:
    return lowering.input(node, 0)


def _index(entry: Any) -> Any:
    if isinstance(entry, slice):
        ends = [getattr(end, "data", end) for end in (entry.start, entry.stop, entry.step)]
        return slice(*(None if end is None else int(end) for end in ends))
    return entry if not isinstance(entry, Variable) else int(entry.data)


def _number(lowering: Lowering, node: Apply) -> Expression:
    return constant(lowering.number(node.outputs[0]))


def _checked(lowering: Lowering, node: Apply) -> Expression:
    value, *conditions = lowering.inputs(node)
    return checked(value, [condition for condition in conditions if condition.symbols] or [])


def _reduction(lowering: Lowering, node: Apply) -> Expression:
    """Return a sum, product, extreme or logical combination over axes."""
    op, given, axes = node.op, lowering.input(node, 0), _axes(node)
    name = next((name for kind, name in REDUCTIONS if isinstance(op, kind)), None)
    if name is None:
        raise UnknownOperation(type(op).__name__)
    if name == "Sum" and (found := meeting_points.product_sum(given, axes)) is not None:
        return found
    return _whole(reduction_of(name, axes, given), node)


def _axes(node: Apply) -> tuple[int, ...]:
    axis, ndim = node.op.axis, node.inputs[0].type.ndim
    return tuple(range(ndim)) if axis is None else tuple(int(a) % max(ndim, 1) for a in np.atleast_1d(axis))


def _softmax(lowering: Lowering, node: Apply) -> Expression:
    return recognised_functions.normalised(type(node.op).__name__, _axes(node), lowering.input(node, 0))


def _product(lowering: Lowering, node: Apply) -> Expression:
    """Matrix product, vectors and batches included."""
    first, second = lowering.inputs(node)
    return _whole(meeting_points.contracted(first, second, node.inputs[0].type.shape, node.inputs[1].type.shape), node)


def _blockwise(lowering: Lowering, node: Apply) -> Expression:
    if isinstance(node.op.core_op, Dot):
        return _product(lowering, node)
    raise UnknownOperation(type(node.op.core_op).__name__)


def _inlined(lowering: Lowering, node: Apply) -> list[Expression]:
    inner = node.op.fgraph
    known = dict(zip(inner.inputs, lowering.inputs(node), strict=True))
    inside = Lowering(known)
    return [inside.of(out) for out in inner.outputs]


OPERATIONS: tuple[tuple[Any, Callable[[Lowering, Apply], Expression | list[Expression]]], ...] = (
    (Elemwise, _elementwise),
    (DimShuffle, shape_operations.dimshuffle),
    ((TensorFromScalar, ScalarFromTensor, SpecifyShape, DeepCopyOp, TypeCastingOp), _same),
    (Reshape, shape_operations.reshape),
    (JoinDims, shape_operations.join_axes),
    (SplitDims, shape_operations.split_axis),
    (Alloc, shape_operations.alloc),
    (Subtensor, shape_operations.subtensor),
    (AdvancedSubtensor, shape_operations.advanced),
    (MakeVector, shape_operations.make_vector),
    (Join, shape_operations.join),
    (ExtractDiag, shape_operations.diagonal),
    ((Shape, Shape_i, ARange), _number),
    (CheckAndRaise, _checked),
    (CAReduce, _reduction),
    ((Softmax, LogSoftmax, LogSumExp), _softmax),
    (Dot, _product),
    (Blockwise, _blockwise),
    (OpFromGraph, _inlined),
)

__all__ = ["lowered"]
