"""The table inside a model: which of its arrays are row-level columns, and what is public about each."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pytensor.compile import SharedVariable
from pytensor.compile.ops import FromFunctionOp, ViewOp
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.scalar.basic import Cast
from pytensor.tensor.basic import Alloc, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.type import TensorType

from pymc_dp.errors import PrivacyError

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """One discrete row-level column that parameters of a likelihood are indexed by.

    Attributes
    ----------
    name : str
        Name of the ``pm.Data`` or observed variable, or a description of an unnamed array.
    leaf : Variable
        The constant or shared variable that holds the rows.
    stand_ins : tuple of Variable
        What stands for the column in the graphs of the parameters (`leaf`, or the observed variable itself).
    levels : (n_levels,) array
        Every value the column may take, in order. Public.
    outside : {"first", "nearest"}
        Where values outside the levels go: to the first level (an index) or to the nearest one (bounds).
    public : bool
        Whether the values of the column need no protection.
    dim : str or None
        Name of the dimension that the column indexes, if it has one.
    labels : tuple of str
        One text per level. Public.
    """

    name: str
    leaf: Variable
    stand_ins: tuple[Variable, ...]
    levels: Array
    outside: str
    public: bool
    dim: str | None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(f"{self.name}={level.item()}" for level in self.levels))

    def __repr__(self) -> str:
        kind = "public" if self.public else "private"
        return f"Column({self.name!r}, {kind}, {len(self.levels)} levels)"


class HasRows(Protocol):
    """A column of any kind: what holds its rows, and whether they need no protection."""

    @property
    def leaf(self) -> Variable:
        """The constant or shared variable that holds the rows."""

    @property
    def public(self) -> bool:
        """Whether its values need no protection."""


class Unread:
    """A private column that is taken for public, for once: its values cannot be read even so."""


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


def known_rows(column: HasRows) -> Array:
    """Return the array of a public column, without a copy; raise PrivacyError for a private one."""
    readable = column.public and not isinstance(column, Unread)
    return public_values(column.leaf, () if readable else (column.leaf,))


def shape_of(leaf: Variable) -> tuple[int, ...]:
    """Return the shape of the array behind a leaf; no value is looked at."""
    if isinstance(leaf, SharedVariable):
        return tuple(np.shape(leaf.get_value(borrow=True)))
    assert isinstance(leaf, Constant)
    return tuple(np.shape(leaf.data))


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


def opaque(ends: Iterable[Variable], stop: Iterable[Variable] = ()) -> list[str]:
    """Name the operations on the way to `ends` that may hold anything: Python functions, classes of third parties."""
    found: dict[str, None] = {}
    for var in reached(ends, stop):
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


def plainly_made(leaf: Variable) -> bool:
    """Whether an unnamed array is one that code makes of nothing: zeros, ones, an identity, or a triangle of ones."""
    if leaf.name or not isinstance(leaf, Constant):
        return False
    values = np.asarray(leaf.data)
    if (values == 0).all() or (values == 1).all():
        return True
    forms = (np.eye, np.tri, lambda n: np.tri(n).T)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    return square and any(np.array_equal(values, form(len(values))) for form in forms)


def plain_numbers(
    outputs: Iterable[Variable], stop: Sequence[Variable], rows: Collection[Variable] = ()
) -> Iterator[Array]:
    """Yield the constants that reach `outputs` other than through `stop`, for the list of what is assumed public.

    How often a value is repeated that is one of `rows` is the number of rows, and is left out.
    """
    blocked = set(stop)
    seen: set[Variable] = set()
    stack = list(outputs)
    while stack:
        var = stack.pop()
        if var in seen or var in blocked:
            continue
        seen.add(var)
        if var.owner is not None:
            repeated = isinstance(var.owner.op, Alloc) and var in rows
            stack.extend(reversed([*var.owner.inputs[:1], *var.owner.inputs[2:]] if repeated else var.owner.inputs))
        elif isinstance(var, Constant) and isinstance(var.type, TensorType):
            yield np.asarray(var.data)


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
