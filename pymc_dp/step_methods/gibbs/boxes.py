"""Bounds of a likelihood's parameters over a public box of free variables, and which element feeds which entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import constant_values
from pymc_dp.inspection.rows import Array, reached

NONE, MANY = -1, -2
"""No element of a free variable, or more than one (or it is not known which)."""
SELECTING = (DimShuffle, SpecifyShape, Subtensor, AdvancedSubtensor, Alloc, Reshape, JoinDims, SplitDims)


class UnknownOperationError(PrivacyError):
    """An operation whose range is not known here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """What is known of one array.

    Attributes
    ----------
    low, high : arrays
        Bounds of every entry, rounded outward.
    feeds : mapping of str to integer array of the same shape
        For each free variable the one element that an entry depends on, else `NONE` or `MANY`.
    """

    low: Array
    high: Array
    feeds: Mapping[str, Array]

    def owner(self, name: str) -> Array:
        """Element of a free variable that feeds each entry."""
        return self.feeds.get(name, np.full(self.low.shape, NONE))


def boxes_of(outputs: Sequence[Variable], free: Mapping[Variable, Box]) -> list[Box]:
    """Bound graphs over free variables by interval arithmetic.

    Parameters
    ----------
    outputs : sequence of Variable
        Graphs that depend on nothing random but `free`.
    free : mapping of Variable to Box
        Public bounds of each free variable.

    Raises
    ------
    UnknownOperationError
        Naming the operation without a rule.
    """
    known: dict[Variable, Box] = dict(free)
    nodes = list(toposort(list(outputs), blockers=list(free)))
    moving = set(free)
    for node in nodes:
        if any(var in moving for var in node.inputs):
            moving.update(node.outputs)
    wanted = {var for node in nodes for var in node.inputs if any(out in moving for out in node.outputs)}
    still = [var for var in {*wanted, *outputs} if var not in moving and hasattr(var.type, "dtype")]
    values = constant_values(still)
    if values is None:
        raise UnknownOperationError("a random number that is no free variable")
    for var, value in zip(still, values, strict=True):
        number = np.asarray(value, dtype=np.float64 if np.asarray(value).dtype.kind == "f" else None)
        known[var] = Box(low=number, high=number, feeds={})
    for node in nodes:
        if not any(out in moving for out in node.outputs):
            continue
        rule = next((rule for kinds, rule in _RULES if isinstance(node.op, kinds)), None)
        if rule is None:
            raise UnknownOperationError(str(node.op))
        if any(var not in known for var in node.inputs):
            raise UnknownOperationError(str(node.op))
        with np.errstate(all="ignore"):
            known[node.outputs[0]] = _representable(node.outputs[0], rule(node, [known[var] for var in node.inputs]))
    return [known[var] for var in outputs]


def _representable(var: Variable, box: Box) -> Box:
    """Refuse results that their type would round or wrap: bounds are those of float64 and of unbounded integers."""
    dtype = np.dtype(getattr(var.type, "dtype", "O"))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not ((box.low >= info.min) & (box.high <= info.max)).all():
            raise UnknownOperationError(f"integers beyond the range of {dtype}")
    elif dtype.kind != "b" and dtype != np.float64:
        raise UnknownOperationError(f"arithmetic in {dtype}")
    return box


def check_bounds(
    outputs: Sequence[Variable], free: Mapping[Variable, Box], boxes: Sequence[Box], points: int = 8
) -> None:
    """Hold the bounds against graphs at random public places, as a guard against an error in the rules above.

    Raises
    ------
    PrivacyError
        If a value lies outside of its box, or moves with a variable that is said not to feed it.
    """
    rng, variables = np.random.default_rng(0), list(free)
    inputs = [var.type() for var in variables]
    graphs, _ = rebuild(outputs, dict(zip(variables, inputs, strict=True)))
    function = plain_function(inputs, graphs, few=True)

    def somewhere(var: Variable) -> Array:
        box = free[var]
        low, high = np.where(np.isfinite(box.low), box.low, -3.0), np.where(np.isfinite(box.high), box.high, 3.0)
        if np.dtype(var.type.dtype).kind in "iub":
            return np.asarray(rng.integers(low.astype(int), high.astype(int), endpoint=True), dtype=var.type.dtype)
        return np.asarray(low + (np.maximum(high, low) - low) * rng.random(low.shape), dtype=var.type.dtype)

    with np.errstate(all="ignore"):
        for _ in range(points):
            place = [somewhere(var) for var in variables]
            values = function(*place)
            for value, box in zip(values, boxes, strict=True):
                room = 1e-9 * (1 + np.abs(value))
                inside = (value >= box.low - room) & (value <= box.high + room)
                if np.shape(value) != box.low.shape or not (inside | ~np.isfinite(value)).all():
                    raise PrivacyError("The bounds of a parameter do not hold; this is an error of pymc_dp.")
            for i, var in enumerate(variables):
                moved = function(*place[:i], somewhere(var), *place[i + 1 :])
                for value, other, box in zip(values, moved, boxes, strict=True):
                    changed = ~((value == other) | (np.isnan(value) & np.isnan(other)))
                    if (changed & (box.owner(str(var.name)) == NONE)).any():
                        raise PrivacyError("What feeds a parameter was overlooked; this is an error of pymc_dp.")


def feeds_from(inputs: Sequence[Variable], variable: Variable, others: Sequence[Variable]) -> bool:
    """Whether a free variable reaches some graphs other than through other free variables."""
    return any(var is variable for var in reached(inputs, others))


def _merge(feeds: Sequence[Mapping[str, Array]], shape: tuple[int, ...]) -> dict[str, Array]:
    merged: dict[str, Array] = {}
    for part in feeds:
        for name, places in part.items():
            wide = np.broadcast_to(places, shape)
            before = merged.get(name)
            if before is None:
                merged[name] = wide
            else:
                same = np.where((before == wide) | (wide == NONE), before, np.where(before == NONE, wide, MANY))
                merged[name] = same
    return merged


def _joined(places: Array, axis: int | tuple[int, ...] | None) -> Array:
    """Merge along axes: the one element that all entries name, if any names one."""
    highest = places.max(axis=axis)
    lowest = np.where(places == NONE, highest if axis is None else np.expand_dims(highest, axis), places).min(axis=axis)
    return np.where(highest == lowest, highest, MANY)


def _outward(low: Array, high: Array, ulps: int = 4) -> tuple[Array, Array]:
    for _ in range(ulps):
        low, high = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
    return low, high


def _hull(values: Sequence[Array]) -> tuple[Array, Array]:
    stacked = np.stack(np.broadcast_arrays(*values))
    stacked = np.where(np.isnan(stacked), 0.0, stacked)  # 0 * inf: the limits along each side are among the others
    return stacked.min(axis=0), stacked.max(axis=0)


def _product(a: Box, b: Box) -> tuple[Array, Array]:
    return _hull([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])


def _reciprocal(box: Box) -> Box:
    crosses = (box.low <= 0) & (box.high >= 0)
    low, high = np.where(crosses, -np.inf, 1 / box.high), np.where(crosses, np.inf, 1 / box.low)
    return Box(low=low, high=high, feeds={})


def _square(box: Box) -> tuple[Array, Array]:
    low, high = _hull([box.low**2, box.high**2])
    return np.where((box.low < 0) & (box.high > 0), 0.0, low), high


def _power(base: Box, exponent: Box) -> tuple[Array, Array]:
    if (exponent.low == 2).all() and (exponent.high == 2).all():
        return _square(base)
    low, high = _hull([end**power for end in (base.low, base.high) for power in (exponent.low, exponent.high)])
    return np.where(base.low > 0, low, -np.inf), np.where(base.low > 0, high, np.inf)


def _logistic(values: Array) -> Array:
    return np.where(values >= 0, 1 / (1 + np.exp(-values)), np.exp(values) / (1 + np.exp(values)))


def _switch(condition: Box, yes: Box, no: Box) -> tuple[Array, Array]:
    sure, never = (condition.low > 0) | (condition.high < 0), (condition.low == 0) & (condition.high == 0)
    low, high = np.minimum(yes.low, no.low), np.maximum(yes.high, no.high)
    return (
        np.where(sure, yes.low, np.where(never, no.low, low)),
        np.where(sure, yes.high, np.where(never, no.high, high)),
    )


INCREASING: dict[str, Callable[..., Array]] = {
    "Exp": np.exp,
    "Log": np.log,
    "Log1p": np.log1p,
    "Expm1": np.expm1,
    "Sqrt": np.sqrt,
    "Sigmoid": _logistic,
    "Softplus": lambda x: np.logaddexp(0.0, x),
    "Tanh": np.tanh,
}
EXACT: dict[str, Callable[..., tuple[Array, Array]]] = {
    "Neg": lambda a: (-a.high, -a.low),
    "Identity": lambda a: (a.low, a.high),
    "Sign": lambda a: (np.sign(a.low), np.sign(a.high)),
    "Abs": lambda a: (np.maximum(0.0, np.maximum(a.low, -a.high)), np.maximum(-a.low, a.high)),
    "Second": lambda a, b: (np.broadcast_arrays(b.low, a.low)[0], np.broadcast_arrays(b.high, a.high)[0]),
    "Switch": _switch,
    "Maximum": lambda *boxes: (_reduce(np.maximum, boxes, "low"), _reduce(np.maximum, boxes, "high")),
    "Minimum": lambda *boxes: (_reduce(np.minimum, boxes, "low"), _reduce(np.minimum, boxes, "high")),
    "EQ": lambda a, b: _undecided(a, b),
    "NEQ": lambda a, b: _undecided(a, b),
    "LT": lambda a, b: _undecided(a, b),
    "LE": lambda a, b: _undecided(a, b),
    "GT": lambda a, b: _undecided(a, b),
    "GE": lambda a, b: _undecided(a, b),
}
ROUNDED: dict[str, Callable[..., tuple[Array, Array]]] = {
    "Add": lambda *boxes: (_reduce(np.add, boxes, "low"), _reduce(np.add, boxes, "high")),
    "Sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "TrueDiv": lambda a, b: _product(a, _reciprocal(b)),
    "Reciprocal": lambda a: (_reciprocal(a).low, _reciprocal(a).high),
    "Sqr": _square,
    "Pow": _power,
}


def _reduce(function: Any, boxes: Sequence[Box], end: str) -> Array:
    total = getattr(boxes[0], end)
    for box in boxes[1:]:
        total = function(total, getattr(box, end))
    return np.asarray(total)


def _undecided(a: Box, b: Box) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(a.low.shape, b.low.shape)
    return np.zeros(shape), np.ones(shape)


def _elementwise(node: Any, inputs: Sequence[Box]) -> Box:
    name = type(node.op.scalar_op).__name__
    if name == "Cast":
        low, high = _cast(np.dtype(node.outputs[0].type.dtype), inputs[0])
    elif name in INCREASING:
        low, high = _outward(INCREASING[name](inputs[0].low), INCREASING[name](inputs[0].high))
    elif name == "Mul":
        low, high = inputs[0].low, inputs[0].high
        for box in inputs[1:]:
            low, high = _outward(*_product(Box(low=low, high=high, feeds={}), box))
    elif name in EXACT:
        low, high = EXACT[name](*inputs)
    elif name in ROUNDED:
        low, high = _outward(*ROUNDED[name](*inputs), ulps=4 * len(inputs))
    else:
        raise UnknownOperationError(name)
    shape = np.broadcast_shapes(*(box.low.shape for box in inputs))
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    if np.isnan(low).any() or np.isnan(high).any():
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return Box(low=low, high=high, feeds=_merge([box.feeds for box in inputs], shape))


def _cast(dtype: np.dtype[Any], box: Box) -> tuple[Array, Array]:
    if dtype.kind == "b":
        return np.zeros(box.low.shape), np.ones(box.low.shape)
    return (np.trunc(box.low), np.trunc(box.high)) if dtype.kind in "iu" else (box.low, box.high)


def _select(node: Any, inputs: Sequence[Box]) -> Box:
    """Apply an operation that only moves entries to the bounds and to the places alike."""
    carried, others = inputs[0], inputs[1:]
    if any(box.feeds for box in others):
        return _chosen(node, carried, others)

    def moved(array: Array) -> Array:
        result: list[list[Any]] = [[None]]
        node.op.perform(node, [array, *(box.low for box in others)], result)
        return np.asarray(result[0][0])

    return Box(
        low=moved(carried.low),
        high=moved(carried.high),
        feeds={name: moved(places) for name, places in carried.feeds.items()},
    )


def _chosen(node: Any, carried: Box, others: Sequence[Box]) -> Box:
    """``theta[z]`` with a free variable as the only index: any entry along the first axis."""
    if not isinstance(node.op, Subtensor | AdvancedSubtensor) or len(others) != 1:
        raise UnknownOperationError(str(node.op))
    entries = list(indices_from_subtensor(node.inputs[1:], node.op.idx_list))
    # A slice, a mask or an index along another axis would pick other entries than those bounded here.
    plain = len(entries) == 1 and not isinstance(entries[0], slice)
    if not plain or np.dtype(node.inputs[1].type.dtype).kind not in "iu":
        raise UnknownOperationError(f"{node.op}: an index that is a free variable must be a whole number, theta[z]")
    index, length = others[0], carried.low.shape[0] if carried.low.ndim else 0
    if not ((index.low >= -length) & (index.high < length)).all():
        raise UnknownOperationError(f"{node.op}: an index that may leave its axis of length {length}")
    rest = carried.low.shape[1:]
    shape = (*index.low.shape, *rest)
    places = {name: _joined(held, 0) for name, held in carried.feeds.items()}
    pointers = {name: held.reshape(held.shape + (1,) * len(rest)) for name, held in index.feeds.items()}
    return Box(
        low=np.broadcast_to(carried.low.min(axis=0), shape),
        high=np.broadcast_to(carried.high.max(axis=0), shape),
        feeds=_merge([places, pointers], shape),
    )


def _stack(node: Any, inputs: Sequence[Box]) -> Box:
    names = {name for box in inputs for name in box.feeds}
    return Box(
        low=np.stack([box.low for box in inputs]),
        high=np.stack([box.high for box in inputs]),
        feeds={name: np.stack([box.owner(name) for box in inputs]) for name in names},
    )


def _join(node: Any, inputs: Sequence[Box]) -> Box:
    axis = int(node.op.axis)
    names = {name for box in inputs for name in box.feeds}
    return Box(
        low=np.concatenate([box.low for box in inputs], axis=axis),
        high=np.concatenate([box.high for box in inputs], axis=axis),
        feeds={name: np.concatenate([box.owner(name) for box in inputs], axis=axis) for name in names},
    )


def _sum(node: Any, inputs: Sequence[Box]) -> Box:
    if type(node.op.scalar_op).__name__ != "Add":
        raise UnknownOperationError(str(node.op))
    (box,), axis = inputs, node.op.axis
    low, high = _outward(box.low.sum(axis=axis), box.high.sum(axis=axis), ulps=4 * box.low.size)
    return Box(low=low, high=high, feeds={name: _joined(places, axis) for name, places in box.feeds.items()})


def _softmax(node: Any, inputs: Sequence[Box]) -> Box:
    """Each share is least with its own score at its least and all others at their greatest."""
    (box,), axis = inputs, node.op.axis
    ends = []
    for own, other in ((box.low, box.high), (box.high, box.low)):
        top = np.maximum(own, other).max(axis=axis, keepdims=True)
        mine, theirs = np.exp(own - top), np.exp(other - top)
        rest = theirs.sum(axis=axis, keepdims=True) - theirs
        ends.append(mine / (mine + np.maximum(rest, 0.0)))
    low, high = _outward(ends[0], ends[1], ulps=16 * box.low.size)
    feeds = {
        name: np.broadcast_to(
            _joined(places, axis) if axis is None else np.expand_dims(_joined(places, axis), axis), low.shape
        )
        for name, places in box.feeds.items()
    }
    return Box(low=np.maximum(low, 0.0), high=np.minimum(high, 1.0), feeds=feeds)


def _same(node: Any, inputs: Sequence[Box]) -> Box:
    return inputs[0]


_RULES: tuple[tuple[Any, Callable[[Any, Any], Box]], ...] = (
    (SELECTING, _select),
    ((ScalarFromTensor, TensorFromScalar), _same),
    (Elemwise, _elementwise),
    (MakeVector, _stack),
    (Join, _join),
    (Softmax, _softmax),
    (CAReduce, _sum),
)


__all__ = ["MANY", "NONE", "Box", "UnknownOperationError", "boxes_of", "feeds_from"]
