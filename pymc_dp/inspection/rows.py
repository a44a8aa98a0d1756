"""The table inside a model: which of its arrays are row-level columns, and what is public about each.

Clone a PyTensor graph with some of its variables replaced, types re-inferred where they change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile import SharedVariable
from pytensor.compile.ops import FromFunctionOp, ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.traversal import toposort
from pytensor.scalar.basic import Cast, ScalarType
from pytensor.tensor.basic import Alloc, ARange, Eye, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax, log_softmax, logsumexp, softmax
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import DenseTensorType, TensorType
from pytensor.tensor.type_other import NoneTypeT, SliceType

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.long_rows import shorten

Array = npt.NDArray[Any]
Bounds = tuple[float, float]
Outside = Literal["first", "nearest"]
FLAG = "_missing"
"""What the column that says which values of another are missing is called, after the name of that."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """An array of the table, axis 0 of which counts rows, and the public set that its values are kept in.

    Attributes
    ----------
    name : str
        Name of the ``pm.Data`` or observed variable, or a description of an unnamed array.
    leaf : Variable
        The constant or shared variable that holds the rows.
    public : bool
        Whether its values need no protection. Without bounds in the domain, they are then the range of those held.
    bounds : (low, high) or None
        Where every value is clamped to, NaN going to the middle; numbers that the dtype of the column can hold. None:
        any number is held, NaN going to 0 and infinities to the largest floats, for proofs know of numbers only.
    ranges : tuple of (low, high)
        One pair for each entry of a row, where these differ. `bounds` then holds all of them, so that what knows of
        these alone takes a row to be anywhere in a wider range than it is. Else empty.
    outside : {"first", "nearest"}
        Where values outside go: to the low bound or first level (an index, a category), or to the nearest one.
    norm : float or None
        Greatest Euclidean norm of a row; longer rows are scaled down to it.
    aliases : tuple of str
        What else it is called in the model.
    stand_ins : tuple of Variable
        What stands for it in the graphs of parameters (`leaf`, or the observed variable itself).
    levels : (n_levels,) array
        Every value that it may take, in order, where parameters are indexed by it; else empty. Public.
    dim : str or None
        Name of the dimension that it indexes, if it has one.
    labels : tuple of str
        One text per level. Public.
    """

    name: str
    leaf: Variable
    public: bool = False
    bounds: Bounds | None = None
    ranges: tuple[Bounds, ...] = ()
    outside: Outside = "nearest"
    norm: float | None = None
    aliases: tuple[str, ...] = ()
    stand_ins: tuple[Variable, ...] = ()
    levels: Array = field(default_factory=lambda: np.zeros(0))
    dim: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(f"{self.name}={level.item()}" for level in self.levels))

    def __repr__(self) -> str:
        kind, levels = "public" if self.public else "private", f", {len(self.levels)} levels" * (len(self.levels) > 0)
        return f"Column({self.name!r}, {kind}{levels})"

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return shape_of(self.leaf)[1:]

    @property
    def width(self) -> int:
        """Entries of a row."""
        return int(np.prod(self.row_shape))

    @property
    def sources(self) -> tuple[Column, ...]:
        """Columns of the table that it is read from: itself, unless the model computes it."""
        return (self,)

    def of(self, values: Callable[[Column], Array]) -> Array:
        """Return its values, from those of its sources."""
        return values(self)

    def range_of(self, entry: int) -> Bounds | None:
        """Return the bounds of one entry of a row; None where there are none."""
        return self.ranges[entry] if self.ranges else self.bounds

    @property
    def ends(self) -> tuple[Array, Array]:
        """Least and greatest values of the entries of a row, each of its shape; infinite without bounds."""
        pairs = np.array([self.range_of(entry) or (-np.inf, np.inf) for entry in range(self.width)], dtype=np.float64)
        low, high = pairs.reshape(self.width, 2).T
        return low.reshape(self.row_shape), high.reshape(self.row_shape)

    @property
    def integer(self) -> bool:
        """Whether values are whole numbers."""
        return np.dtype(self.leaf.type.dtype).kind in "iub"

    @property
    def limited(self) -> bool:
        """Whether something keeps private values from being numbers of any size."""
        return self.public or self.integer or self.bounds is not None or self.norm is not None

    def clamped(self, values: Array) -> Array:
        """Return a contiguous copy of `values` with the dtype of the column, within its bounds and its norm.

        No warning is given, whatever the values: it would show them.
        """
        with np.errstate(all="ignore"):
            held = np.array(self._within(values), dtype=self.leaf.type.dtype, order="C")
            if self.bounds is not None and held.dtype.kind == "f":
                low, high = self._limits()
                clamp_floats(held, low, high)
            if self.norm is not None:
                shorten(held, self.norm)
        return held

    def _within(self, values: Array) -> Array:
        kind = np.dtype(self.leaf.type.dtype).kind
        if self.bounds is None and kind == "f":
            return np.nan_to_num(values)
        if self.bounds is None or kind == "f":
            return values
        low, high = self._limits()
        if self.outside == "first":
            return np.where((values >= low) & (values <= high), values, low)
        return np.clip(values, low, high)

    def _limits(self) -> tuple[Any, Any]:
        """Return the bounds as numbers of the dtype: two, or two arrays of the shape of a row."""
        assert self.bounds is not None
        dtype: Any = np.dtype(self.leaf.type.dtype)
        number = float if dtype.kind == "f" else int
        if not self.ranges:
            return number(self.bounds[0]), number(self.bounds[1])
        low, high = zip(*self.ranges, strict=True)
        return np.array([*map(number, low)], dtype=dtype), np.array([*map(number, high)], dtype=dtype)


class UnreadColumn(Column):
    """A private column that is taken for public, for once, by what is declared of it: its values cannot be read."""


def limits_of(dtype: Any) -> tuple[int, int]:
    """Return the least and the greatest value of an integer or boolean dtype."""
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def fitted(bounds: Bounds, dtype: Any) -> Bounds | None:
    """Bounds moved inwards to values of a dtype; None where it has none between them."""
    low, high = bounds
    if dtype.kind in "iub":
        least, most = limits_of(dtype)
        ends: Bounds = max(math.ceil(low), least), min(math.floor(high), most)
        return ends if ends[0] <= ends[1] else None
    with np.errstate(over="ignore"):
        first, last = dtype.type(low), dtype.type(high)
    if low == high and np.isfinite(first):  # a constant
        return float(first), float(first)
    if float(first) < low:
        first = np.nextafter(first, dtype.type(np.inf))
    if float(last) > high:
        last = np.nextafter(last, dtype.type(-np.inf))
    return (float(first), float(last)) if first <= last else None


def clamp_floats(held: Array, low: Any, high: Any) -> None:
    """Clamp floats in place, NaN to the middle; clipping comes last, for half of the smallest float is 0."""
    np.copyto(held, low / 2 + high / 2, where=np.isnan(held))
    np.clip(held, low, high, out=held)


def fitted_column(column: Column) -> Column | Bounds:
    """Return a column with bounds moved inwards to values of its dtype; those that hold none where some do."""
    dtype = np.dtype(column.leaf.type.dtype)
    if column.bounds is None:
        return column
    found = list[Bounds]()
    for pair in column.ranges or (column.bounds,):
        ends = fitted(pair, dtype)
        if ends is None:
            return pair
        found.append(ends)
    hull = min(low for low, _ in found), max(high for _, high in found)
    return replace(column, bounds=hull, ranges=tuple(found) if column.ranges else ())


def public_values(leaf: Variable, hidden: Container[Variable]) -> Array:
    """Return the array behind a constant or shared variable that is not among those that are hidden, without a copy.

    Raises
    ------
    PrivacyError
        If it is: private values are read by `rows.gate` alone.
    """
    if leaf in hidden:
        raise PrivacyError("Private values would be taken for public ones; this is an error of pymc_dp.")
    if isinstance(leaf, SharedVariable):
        return np.asarray(leaf.get_value(borrow=True))
    assert isinstance(leaf, Constant)
    return np.asarray(leaf.data)


def known_rows(column: Column) -> Array:
    """Return the array of a public column, without a copy; raise PrivacyError for a private one."""
    return column.of(_public_rows)


def _public_rows(column: Column) -> Array:
    readable = column.public and not isinstance(column, UnreadColumn)
    return public_values(column.leaf, () if readable else (column.leaf,))


def shape_of(leaf: Variable) -> tuple[int, ...]:
    """Return the shape of the array behind a leaf; no value is looked at."""
    if isinstance(leaf, SharedVariable):
        return tuple(np.shape(leaf.get_value(borrow=True)))
    assert isinstance(leaf, Constant)
    return tuple(np.shape(leaf.data))


def same_array(leaf: Constant) -> int:
    """Return a number that constants of one array share; no value is looked at."""
    return id(leaf.data)


def reached(ends: Iterable[Variable], stop: Iterable[Variable] = ()) -> Iterator[Variable]:
    """Yield every variable that `ends` depend on other than through `stop`, those inside of composite operations too.

    The constant target of a reshape and the constant size of a random variable are schema, not data, and are left out.
    """
    blocked = set(stop)
    seen: set[Variable] = set()
    stack = list(ends)
    while stack:
        var = stack.pop()
        if var in seen or var in blocked:
            continue
        seen.add(var)
        yield var
        if var.owner is None:
            continue
        schema = 1 if isinstance(var.owner.op, Reshape | RandomVariable) else None
        for place, item in enumerate(var.owner.inputs):
            if not (place == schema and isinstance(item, Constant)):
                stack.append(item)
        stack.extend(_inner_outputs(var.owner.op))


def _inner_outputs(op: Op) -> list[Variable]:
    """Ends of the graphs inside of a composite operation, vectorised ones included."""
    core = getattr(op, "core_op", None)
    inner = list(op.inner_outputs) if isinstance(op, HasInnerGraph) else []
    return inner + (_inner_outputs(core) if isinstance(core, Op) else [])


KINDS = (DenseTensorType, ScalarType, NoneTypeT, SliceType, RandomType)
"""Of variables that can be followed: tensors, numbers, and what says where to look or how to draw."""


def opaque(ends: Iterable[Variable], stop: Iterable[Variable] = ()) -> list[str]:
    """Name what may hold anything on the way to `ends`: Python functions, classes of third parties, sparse arrays."""
    found: dict[str, None] = {}
    for var in reached(ends, stop):
        if not isinstance(var.type, KINDS):
            found[f"on {type(var.type).__name__}"] = None
        if var.owner is None:
            continue
        op = var.owner.op
        core = getattr(op, "core_op", op)
        for item in (op, core):
            root = type(item).__module__.partition(".")[0]
            if root not in ("pytensor", "pymc") or isinstance(item, FromFunctionOp):
                found[str(item)] = None
    return list(found)


def array_leaves(
    ends: Iterable[Variable], stop: Iterable[Variable] = (), *, single: bool = False
) -> Iterator[Variable]:
    """Yield every constant or shared array that reaches `ends` other than through `stop`.

    An unnamed constant of one element counts as a constant number, unless `single` asks for these too (where the table
    may have a single row).
    """
    for var in reached(ends, stop):
        if var.owner is not None or not isinstance(var.type, TensorType) or var.type.ndim == 0:
            continue
        counts = single or not isinstance(var, Constant) or int(np.prod(shape_of(var))) != 1
        if isinstance(var, Constant | SharedVariable) and counts:
            yield var


def plain_numbers(
    outputs: Iterable[Variable],
    stop: Sequence[Variable],
    rows: Collection[Variable] = (),
    *,
    lengths: bool = True,
) -> Iterator[Array]:
    """Yield the constants that reach `outputs`, for the list of what is assumed public; see `values_read`."""
    for var in values_read(outputs, stop, rows, lengths=lengths):
        if isinstance(var, Constant) and isinstance(var.type, DenseTensorType):
            yield np.asarray(var.data)


def values_read(
    outputs: Iterable[Variable],
    stop: Sequence[Variable],
    rows: Collection[Variable] = (),
    *,
    lengths: bool = True,
) -> Iterator[Variable]:
    """Yield the leaves that reach `outputs` other than through `stop`.

    How often a value is repeated that is one of `rows` is the number of rows, and is left out. So is whatever says how
    long something is, unless `lengths`.
    """
    blocked = set(stop)
    seen: set[Variable] = set()
    stack = list(outputs)
    while stack:
        var = stack.pop()
        if var in seen or var in blocked:
            continue
        seen.add(var)
        if var.owner is None:
            yield var
            continue
        repeated = isinstance(var.owner.op, Alloc) and var in rows
        said = set() if lengths else set(_lengths_said(var.owner))
        inputs = [*var.owner.inputs[:1], *var.owner.inputs[2:]] if repeated else var.owner.inputs
        stack.extend(item for item in reversed(inputs) if item not in said)


def _lengths_said(node: Apply) -> list[Variable]:
    """Return the inputs of an operation that say how long its result is."""
    op = node.op
    if isinstance(op, ARange | Eye):
        return list(node.inputs)
    if isinstance(op, Alloc | Reshape | Subtensor | SpecifyShape):
        return list(node.inputs[1:])
    if isinstance(op, RandomVariable):
        return [op.size_param(node)]
    if isinstance(op, SymbolicRandomVariable):
        if op.extended_signature is not None:
            return [op.size_param(node)]
        return [var for var in node.inputs if isinstance(var.type, TensorType) and _may_be_a_size(var.type)]
    return []


def _may_be_a_size(kind: TensorType) -> bool:
    """Whether a vector of whole numbers is the size of what ``pm.Truncated`` and others wrap."""
    return kind.ndim == 1 and kind.dtype == "int64"


def unwrap(variable: Variable) -> Variable:
    """Strip casts that keep every value, views, dimension shuffles and shape checks: the array itself is left."""
    while variable.owner is not None:
        op = variable.owner.op
        cast = isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast)
        if cast and not _keeps_values(variable.owner.inputs[0].type.dtype, variable.type.dtype):
            break
        if cast or isinstance(op, ViewOp | DimShuffle | SpecifyShape | TensorFromScalar):
            variable = variable.owner.inputs[0]
        else:
            break
    return variable


def _keeps_values(source: str, target: str) -> bool:
    """Whether a cast leaves values as they are, but for the rounding of integers above 2**53 to floats."""
    kinds = np.dtype(source).kind, np.dtype(target).kind
    if kinds[1] == "f":
        return kinds[0] in "iub" or np.can_cast(source, target)
    return bool(np.can_cast(source, target))


def rebuild(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], *, clone: bool = False
) -> tuple[list[Variable], dict[Variable, Variable]]:
    """Return `outputs` computed from replaced variables, and the map from old to new.

    Parameters
    ----------
    outputs : sequence of Variable
    replace : mapping of Variable to Variable
        The graph above a replaced variable is not visited.
    clone : bool
        Clone every node, also those that depend on nothing replaced.

    Notes
    -----
    Leaves that are not replaced are shared with the original graph, never copied.
    """
    memo = dict(replace)
    for node in toposort(list(outputs), blockers=list(replace)):
        if all(out in memo for out in node.outputs):
            continue
        inputs = [memo.get(var, var) for var in node.inputs]
        if not clone and all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        new_node = applied(node, inputs)
        for old, new in zip(node.outputs, new_node.outputs, strict=True):
            if old not in memo:
                new.name = old.name
                memo[old] = new
    return [memo.get(var, var) for var in outputs], memo


def applied(node: Apply, inputs: list[Variable]) -> Apply:
    """Apply the operation of a node to other inputs, with output types as narrow as they allow."""
    if isinstance(node.op, Softmax | LogSoftmax):  # its inner graph is made for the types of its first inputs
        function = softmax if isinstance(node.op, Softmax) else log_softmax
        return function(inputs[0], axis=node.op.axis).owner
    if isinstance(node.op, LogSumExp):
        return logsumexp(inputs[0], axis=node.op.axis).owner
    return node.clone_with_new_inputs(inputs, strict=False)
