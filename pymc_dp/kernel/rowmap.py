"""What one row is worth at some parameters: an untrusted graph, compiled so that it sees one row and nothing else.

The compiled loop hands the graph one row at a time, or blocks of rows to the same graph vectorised, so that what a row
adds depends on no other row, whatever the model is. It may be any number, NaN and infinities too; what raises for a row
makes its numbers NaN. Numbers are handed over in memory, and compiled without fast arithmetic.

Only operations that are named here may stand in a graph. Sums of products are written out as such: no BLAS computes a
row's numbers, whose last bits would depend on the machine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, final, override

import numba
import numpy as np
import pytensor
import pytensor.scalar.basic
import pytensor.scalar.math
import pytensor.tensor as pt
from pymc.distributions import dist_math
from pytensor.compile import SharedVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.gradient import DisconnectedGrad, ZeroGrad
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import graph_replace, vectorize_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.raise_op import Assert, CheckAndRaise
from pytensor.scalar.basic import ScalarInnerGraphOp, ScalarOp, ScalarType
from pytensor.tensor import basic, elemwise, extra_ops, subtensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import All, Argmax, Dot, Max, Min, MulWithoutZeros, Prod, ProdWithoutZeros, Sum
from pytensor.tensor.math import Any as AnyOf
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.utils import safe_signature

from pymc_dp.kernel.arguments import finite, flag, positive
from pymc_dp.kernel.errors import ArgumentError

READS = (subtensor.Subtensor, subtensor.AdvancedSubtensor)
WRITES = (subtensor.IncSubtensor, subtensor.AdvancedIncSubtensor)
ALLOWED = frozenset(
    (
        *(elemwise.Elemwise, elemwise.DimShuffle, elemwise.CAReduce, Blockwise, *READS, *WRITES),
        *(Sum, Prod, ProdWithoutZeros, Max, Min, All, AnyOf, Argmax, SortOp, ArgSortOp, extra_ops.CumOp),
        *(basic.Alloc, basic.ARange, basic.ExtractDiag, basic.Eye, basic.Join, basic.MakeVector, basic.Split),
        *(basic.ScalarFromTensor, basic.TensorFromScalar, extra_ops.Repeat, Reshape, Shape, Shape_i, SpecifyShape),
        *(JoinDims, SplitDims, ViewOp, DeepCopyOp, DisconnectedGrad, ZeroGrad),
    )
)
"""Classes of operations, exactly these: functions of their inputs that Numba compiles. Derived classes are others."""
SCALARS = frozenset(
    found
    for module in (pytensor.scalar.basic, pytensor.scalar.math, dist_math)
    for found in (*vars(module).values(), MulWithoutZeros)
    if isinstance(found, type) and issubclass(found, ScalarOp) and not issubclass(found, ScalarInnerGraphOp)
)
"""Classes of operations on single numbers, exactly these; each is one operation, and none has a graph of its own."""
BLOCK, LANES, ENOUGH = 128, 32, 2**22
"""Rows at a time, at most; of what they are a multiple; rows worked off one by one after which compiling that pays."""
MOST_ENTRIES = 32
"""Of a constant that need not be named: an array of more entries could be a column of the table."""


class RowMap:
    """A compiled function of one row and of public parameters; `output` is a vector, a number per candidate or entry.

    Parameters
    ----------
    row : mapping of str to Variable
        Inputs for single rows of columns, by the names of the columns: scalars or vectors, float64 or int64.
    parameters : sequence of Variable
        Public inputs.
    output : Variable
        A vector.
    public : sequence of Constant
        Constants of many entries that are public.
    batches : bool
        Whether it is for walks by batches: what maps rows one by one is compiled where it is needed first.

    Raises
    ------
    ArgumentError
        For what could reach anything but its inputs, keep a memory, or has no compiled form. It names the operation.
    """

    def __init__(
        self,
        row: Mapping[str, Variable],
        parameters: Sequence[Variable],
        output: Variable,
        *,
        public: Sequence[Variable] = (),
        batches: bool = False,
    ) -> None:
        row, parameters, public = dict(row), tuple(parameters), tuple(public)
        if output.type.ndim != 1:
            raise ArgumentError(f"The output of a row map must be a vector, got {output.type.ndim} axes.")
        inputs = [*row.values(), *parameters]
        if any(type(var.type) is not pt.TensorType for var in inputs):  # another class could state other shapes later
            raise ArgumentError("Inputs of a row map must be tensors of PyTensor.")
        if len({*inputs}) < len(inputs):
            raise ArgumentError("Each input of a row map must be a variable of its own.")
        own = [pt.TensorType(var.type.dtype, tuple(var.type.shape))(name=var.name) for var in inputs]
        self._row, self._given = own[: len(row)], own[len(row) :]
        self._types = tuple((name, *_stated(var)) for name, var in zip(row, self._row, strict=True))
        self._wanted = tuple(_stated(var) for var in self._given)
        for name, dtype, entries in self._types:
            if type(name) is not str or dtype not in ("int64", "float64") or None in entries:
                raise ArgumentError(f"The input {name!r} of a row must be float64 or int64, of a shape that is known.")
        mine: dict[Variable, Variable] = dict(zip(inputs, own, strict=True))
        mine |= {var: _copied(var) for var in public if isinstance(var, Constant)}
        self._known = [*own, *(mine[var] for var in public if var in mine)]
        self._output = pt.cast(prepared(output, mine), "float64")
        if flag("batches", batches):
            self._check(self._row, self._output)
        else:
            self._loop  # noqa: B018
        self._blocks: Callable[..., None] | None = None
        self._rows, self._seen = 0.0, False

    @property
    def types(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Types and shapes of the columns that it reads, by their names: a copy."""
        return {name: (dtype, entries) for name, dtype, entries in self._types}

    @cached_property
    def _loop(self) -> Callable[..., None]:
        return self._compiled(self._row, self._output, _LOOP)

    def _check(self, row: Sequence[Variable], output: Variable) -> None:
        check_inputs([*row, *self._given], output, self._known)
        check_operations(output, ALLOWED | {Assert})  # that of `_within`: an empty axis

    def _compiled(self, row: Sequence[Variable], output: Variable, source: str) -> Callable[..., None]:
        self._check(row, output)
        with warnings.catch_warnings(), pytensor.config.change_flags(numba__fastmath=False):
            # Python inside of compiled code: what it raises is not caught there, and it may have a memory.
            warnings.filterwarnings("error", message=".*object mode.*")
            try:
                function = pytensor.function(
                    [*row, *self._given], output, mode="NUMBA", on_unused_input="ignore", trust_input=True
                )
            except UserWarning:
                raise ArgumentError(
                    "A row map must have a compiled form; one of its operations runs as Python."
                ) from None
        for node in function.maker.fgraph.toposort():
            if _core(node.op).__class__ is Dot or ".blas" in type(_core(node.op)).__module__:
                raise ArgumentError(f"A row map was rewritten with {node.op}, whose last bits depend on the machine.")
        loop = _over_rows(function.vm.jit_fn, [len(entries) for _, _, entries in self._types], len(self._given), source)
        none = [np.empty((0, *entries), dtype=dtype) for _, dtype, entries in self._types]
        given = [np.empty([size or 0 for size in entries], dtype=dtype) for dtype, entries in self._wanted]
        try:
            loop(*none, *given, np.empty((0, 1)))  # compiles it, on no rows
        except numba.core.errors.NumbaError:
            raise ArgumentError("A row map must have a compiled form; Numba finds none for this one.") from None
        return loop

    def __call__(self, rows: Sequence[Any], parameters: Sequence[Any], out: Any, *, by_blocks: bool) -> None:
        """Write the numbers of each row into (n_rows, K), NaN where one raises. **Private**, where rows are.

        `by_blocks`: after many rows, `BLOCK` of them at a time, by the same graph vectorised, whose operations treat
        rows apart. The last bit of a row may depend on its place in the block, so that places and how many rows there
        are must not be private: replace alone.
        """
        done = 0
        if by_blocks:
            if self._rows >= ENOUGH:
                self._make_blocks(out.shape[1])
            if self._blocks is not None:
                done = len(out) // LANES * LANES
                self._blocks(*[column[:done] for column in rows], *parameters, out[:done])
            self._rows += len(out)
        self._loop(*[column[done:] for column in rows], *parameters, out[done:])

    def of_batches(self, width: int) -> tuple[Any, Any, int]:
        """Return compiled functions for rows of batches, of one vector of parameters; and of what blocks are multiples.

        One copies some rows of (n_rows, ...) columns to the first places of a block, and its first row to all others.
        The other writes the numbers of its rows. All rows of a walk are mapped by one graph: the vectorised one, in
        blocks of a multiple of `LANES`, where its places are alike; or else row by row.
        """
        if len(self._wanted) != 1 or self._wanted[0][0] != "float64" or [type(n) for n in self._wanted[0][1]] != [int]:
            raise ArgumentError(
                "A row map of batches takes one vector of parameters, float64, of a length that is known."
            )
        self._make_blocks(width)
        whole = self._blocks is not None and self._seen
        fill = _filling([len(one) for _, _, one in self._types])
        return fill, self._blocks if whole else self._loop, LANES if whole else 1

    def _make_blocks(self, width: int) -> None:
        """Compile the graph for blocks, once, unless public rows show that it does not treat rows alike."""
        if self._rows != -math.inf:
            made, self._rows = self._by_blocks(), -math.inf
            self._blocks = made if made is not None and self._alike(made, width) else None

    def _alike(self, blocks: Callable[..., None], width: int) -> bool:
        """Whether public rows have the same bits in each place of a block of any size, whoever stands beside them.

        That shows something if they have numbers: `_seen`, if an eighth of them do.
        """
        rng = np.random.default_rng(0)
        rows = [
            rng.normal(size=(BLOCK, *entries)) if dtype == "float64" else rng.integers(0, 3, (BLOCK, *entries))
            for _, dtype, entries in self._types
        ]
        given = [
            rng.normal(size=[size or 2 for size in shape]).astype(dtype) if shape else np.array(1, dtype=dtype)
            for dtype, shape in self._wanted
        ]

        def found(places: Any) -> Any:
            out = np.full((len(places), width), np.nan)
            blocks(*[np.ascontiguousarray(held[places]) for held in rows], *given, out)
            return out

        places = np.arange(BLOCK)
        first = found(places)
        moved = [
            np.roll(places, shift)[:count] for shift in (1, 6, BLOCK // 2) for count in range(LANES, BLOCK + 1, LANES)
        ]
        moved += [np.full(LANES, place) for place in (0, 5, BLOCK - 1)]
        self._seen = bool(8 * np.isfinite(first).all(axis=1).sum() >= BLOCK)
        return all(np.array_equal(found(some), first[some], equal_nan=True) for some in moved)

    def _by_blocks(self) -> Callable[..., None] | None:
        """Compile the graph for some rows; None where it has no such form."""
        many: dict[Variable, Variable] = {
            var: pt.TensorType(dtype, (None, *entries))()
            for var, (_, dtype, entries) in zip(self._row, self._types, strict=True)
        }
        try:
            output = vectorize_graph(self._output, many)
            return self._compiled(list(many.values()), output, _BLOCKS) if output.type.ndim == 2 else None
        except Exception:  # of the graph alone, which is public; PyTensor names no class for it
            return None

    def on(self, rows: Mapping[str, Any], parameters: Sequence[Any], width: int) -> Any:
        """Return the numbers of public rows, (n_rows, width)."""
        held = [np.ascontiguousarray(rows[name], dtype=dtype) for name, dtype, _ in self._types]
        for values, (name, _, entries) in zip(held, self._types, strict=True):
            if values.shape[1:] != entries or len(values) != len(held[0]):
                raise ArgumentError(f"Rows of {name!r} must be of shape {entries}, as many as of the others.")
        out = np.full((len(held[0]), width), np.nan)
        self(held, self.arguments(parameters), out, by_blocks=False)
        return out

    def arguments(self, parameters: Sequence[Any]) -> list[Any]:
        """Return public parameters in the types and shapes that were compiled: other shapes would be read beyond."""
        if len(parameters) != len(self._wanted):
            raise ArgumentError(f"A row map takes {len(self._wanted)} parameters, got {len(parameters)}.")
        found = []
        for place, (value, (dtype, shape)) in enumerate(zip(parameters, self._wanted, strict=True)):
            held = np.array(value, dtype=dtype, order="C", ndmin=0)
            if held.ndim != len(shape) or any(b not in (None, a) for a, b in zip(held.shape, shape, strict=True)):
                raise ArgumentError(
                    f"The parameter {self._given[place].name or place} has shape {shape}, got {held.shape}."
                )
            found.append(held)
        return found

    def check_columns(self, columns: Mapping[str, Any]) -> None:
        """Refuse columns of other types or shapes than those that were compiled."""
        for name, dtype, entries in self._types:
            if name not in columns:
                raise ArgumentError(f"A row map reads {name!r}, which is no column of the table.")
            if (columns[name].dtype, columns[name].shape) != (dtype, entries):
                raise ArgumentError(
                    f"Column {name!r} holds {columns[name].dtype} of shape {columns[name].shape}; the row map was made "
                    f"for {dtype} of shape {entries}."
                )


@final
class Columns(RowMap):
    """A row map of columns as they are, each number x as (x - centre) / unit: nothing is compiled, rows stay apart.

    Parameters
    ----------
    columns : mapping of str to (float, float)
        Centre and unit of the entries of each column.
    """

    def __init__(self, columns: Mapping[str, tuple[float, float]]) -> None:
        columns = dict(columns)
        if not columns or any(type(name) is not str for name in columns):
            raise ArgumentError("Columns need a column, each with a finite centre, and a finite unit > 0.")
        self._scales = {name: (finite("centre", c), *positive(unit=unit)) for name, (c, unit) in columns.items()}
        self._types, self._wanted = tuple((name, "", ()) for name in self._scales), ()

    @override
    def __call__(self, rows: Sequence[Any], parameters: Sequence[Any], out: Any, *, by_blocks: bool) -> None:
        wide = [held.reshape(len(held), -1) for held in rows]
        ends = np.cumsum([0, *(held.shape[1] for held in wide)])
        if ends[-1] != out.shape[1]:
            out[:] = np.nan
            return
        for held, start, stop, (centre, unit) in zip(wide, ends[:-1], ends[1:], self._scales.values(), strict=True):
            np.multiply(held - centre, 1 / unit, out=out[:, start:stop])

    @override
    def check_columns(self, columns: Mapping[str, Any]) -> None:
        if not set(self.types) <= set(columns):
            raise ArgumentError(f"{sorted(set(self.types) - set(columns))} are no columns of the table.")


def check_inputs(inputs: Sequence[Variable], output: Variable, public: Sequence[Variable]) -> None:
    """Refuse a graph that reaches anything but its inputs and public constants."""
    known, named = {*inputs}, {*public}
    for var in ancestors([output]):
        if var.owner is not None or var in known:
            continue
        if not isinstance(var, Constant):
            kind = "shared variable" if isinstance(var, SharedVariable) else "variable"
            raise ArgumentError(f"A row map depends on the {kind} {var.name!r}, which is no input of it.")
        if not var.type.is_valid_value(var.data, strict=True):
            raise ArgumentError(f"A row map holds a constant that is not of its type {var.type}.")
        if var not in named and np.size(var.data) > MOST_ENTRIES:
            raise ArgumentError(
                f"A row map holds a constant of {np.size(var.data)} numbers. Name it in public=, or make it a column."
            )


def _stated(var: Variable) -> tuple[str, tuple[Any, ...]]:
    return str(var.type.dtype), tuple(var.type.shape)


def _copied(var: Variable) -> Variable:
    """Return a constant of the same numbers, which nobody else can change."""
    if not var.type.is_valid_value(var.data, strict=True):
        raise ArgumentError(f"A row map holds a constant that is not of its type {var.type}.")
    if isinstance(var.data, np.ndarray):
        return pt.TensorConstant(pt.TensorType(str(var.data.dtype), var.data.shape), np.array(var.data))
    return var.clone()


def prepared(output: Variable, mine: Mapping[Variable, Variable] | None = None) -> Variable:
    """Return a graph of allowed operations alone: inner graphs laid open, no checks, no BLAS, indices within axes.

    Its nodes and constants are new, and its inputs are those of `mine`: whoever holds the graph given cannot change it.
    """
    changes = (_inlined, _without_check, _without_dot)
    while True:
        for node in toposort([output]):
            new = next((found for change in changes if (found := change(node)) is not None), None)
            if new is not None:
                output = graph_replace([output], dict(zip(node.outputs, new, strict=True)), strict=False)[0]
                break
        else:
            break
    check_operations(output)
    output = rebuilt(output, mine or {})
    check_operations(output)
    return within_axes(output)


def rebuilt(output: Variable, mine: Mapping[Variable, Variable]) -> Variable:
    """Return the same graph with each operation applied anew: what it says of its shape is then inferred, not stated.

    An index is held within the length that a graph states; one made by hand may state any.
    """
    new = dict(mine)
    for var in ancestors([output]):
        if isinstance(var, Constant) and var not in new:
            new[var] = _copied(var)
    for node in toposort([output]):
        op = node.op
        try:
            if type(op) is Blockwise:  # which axes are alike is inferred too
                op = Blockwise(op.core_op, signature=_alike(op))
            again = type(op).make_node(op, *(new.get(var, var) for var in node.inputs))
        except Exception:  # of the graph alone, which is public; PyTensor names no class for it
            raise ArgumentError(f"A row map applies {type(node.op).__name__} to what it does not go with.") from None
        for old, found in zip(node.outputs, again.outputs, strict=True):
            if (old.type.dtype, old.type.ndim) != (found.type.dtype, found.type.ndim):
                raise ArgumentError(f"A row map states {old.type} of {type(node.op).__name__}, which is {found.type}.")
            new[old] = found
    return new.get(output, output)


def check_operations(output: Variable, allowed: frozenset[type] = ALLOWED) -> None:
    """Refuse what is not named: it may have effects, a memory, or read beyond its inputs."""
    for node in toposort([output]):
        core = _core(node.op)
        if type(core) not in allowed or type(node.op) not in allowed:
            raise ArgumentError(
                f"A row map may not contain {type(core).__name__}: it is not among what is known to be safe."
            )
        if node.op.destroy_map or core.destroy_map:
            raise ArgumentError("A row map may not overwrite its inputs: what one row leaves, the next would find.")
        scalar = getattr(core, "scalar_op", None)
        if scalar is not None and type(scalar) not in SCALARS:
            raise ArgumentError(f"A row map may not contain the scalar operation {type(scalar).__name__}.")
        if isinstance(core, Reshape) and node.inputs[1].type.shape[-1] != core.ndim:
            raise ArgumentError("A row map may reshape to a shape of known length alone.")


def _alike(op: Blockwise) -> str:
    return safe_signature([len(axes) for axes in op.inputs_sig], [len(axes) for axes in op.outputs_sig])


def _core(op: Any) -> Any:
    return op.core_op if isinstance(op, Blockwise) else op


def _inlined(node: Apply) -> list[Variable] | None:
    """Return what a graph within the graph computes, whatever class it is of; of a vectorised one likewise."""
    op = _core(node.op)
    if not isinstance(op, OpFromGraph):
        return None
    if op is node.op:
        return list(op.fgraph.bind(dict(zip(op.fgraph.inputs, node.inputs, strict=True))))
    inner = op.fgraph.unfreeze()
    return list(vectorize_graph(list(inner.outputs), dict(zip(inner.inputs, node.inputs, strict=True))))


def _without_check(node: Apply) -> list[Variable] | None:
    """Return NaN where a check fails: raised in a block, an error of one row would be that of others."""
    if not isinstance(node.op, CheckAndRaise):
        return None
    value, *conditions = node.inputs
    if not (conditions and value.type.dtype.startswith("float")):
        return [value]  # of whole numbers there is no NaN; indices are held within their axes anyway
    met = [pt.as_tensor_variable(condition).all() for condition in conditions]
    return [pt.switch(pt.all(pt.stack(met)), value, np.nan).astype(value.type.dtype)]


def _without_dot(node: Apply) -> list[Variable] | None:
    """Return sums of products, one by one, in place of BLAS."""
    if type(_core(node.op)) is not Dot:
        return None
    x, y = node.inputs
    if x.type.ndim == 1 or y.type.ndim == 1:
        return [(x * y).sum(axis=-1)] if y.type.ndim == 1 else [(x[:, None] * y).sum(axis=0)]
    return [(x[..., :, :, None] * y[..., None, :, :]).sum(axis=-2)]


def within_axes(output: Variable) -> Variable:
    """Hold every computed index within its axis: compiled code does not check, and would read what lies beside it.

    Where the length of an axis is not known, it is checked to be above 0; index arrays that go together, and what is
    written, have to be of known shapes that fit.
    """
    new: dict[Variable, Variable] = {}
    for node in toposort([output]):  # each rebuilt on what was rebuilt before it: an index may be read by an index
        inputs = [new.get(var, var) for var in node.inputs]
        again = node if inputs == node.inputs else node.clone_with_new_inputs(inputs, strict=False)
        if isinstance(_core(again.op), READS + WRITES):
            again = again.clone_with_new_inputs(_held(again, _core(again.op)), strict=False)
        new.update(zip(node.outputs, again.outputs, strict=True))
    return new.get(output, output)


def _held(node: Apply, op: Any) -> list[Variable]:
    """Return the inputs of a reading or writing operation, each index held within its own axis."""
    write, inputs = isinstance(op, WRITES), list(node.inputs)
    source = inputs[0]
    batch = node.outputs[0].type.ndim - len(node.op.outputs_sig[0]) if op is not node.op else 0
    if write and None in (*source.type.shape, *inputs[1].type.shape):
        raise ArgumentError("A row map may write only what is of known shape, into what is.")
    arrays = []
    for axis, entry in enumerate(op.idx_list, start=batch):
        if isinstance(entry, slice):  # cut to the axis by itself
            ends = [inputs[1 + write + end] for end in (entry.start, entry.stop, entry.step) if end is not None]
            if write and not all(isinstance(end, Constant) for end in ends):
                raise ArgumentError("A row map may not write to a slice that is computed.")
            continue
        index = inputs[1 + write + entry]
        if index.type.dtype == "bool":
            raise ArgumentError("A row map may not choose by a mask: what comes out would have another shape.")
        if not isinstance(index.type, ScalarType) and index.type.ndim > batch:
            arrays.append(index)
        inputs[1 + write + entry] = _within(index, source, axis)
    if len(arrays) > 1 and any(None in index.type.shape for index in arrays):
        raise ArgumentError("A row map may index by several arrays together only where their shapes are known.")
    if write:
        core = subtensor.Subtensor if isinstance(op, subtensor.IncSubtensor) else subtensor.AdvancedSubtensor
        place = core(op.idx_list)(source, *inputs[2:]).type.shape if op is node.op else (None,)
        value = inputs[1].type.shape
        if any(b not in (1, a) for a, b in zip(place[::-1], value[::-1], strict=False)) or len(value) > len(place):
            raise ArgumentError("A row map may write only what is of the shape of its place.")
    return inputs


def _within(index: Variable, source: Variable, axis: int) -> Variable:
    known = source.type.shape[axis]
    if isinstance(index, Constant) and known is not None:
        at = np.asarray(index.data)
        if at.size and not -known <= at.min() <= at.max() < known:
            raise ArgumentError(f"A row map reads place {at} of an axis of length {known}.")
        return index
    if known == 0:
        raise ArgumentError("A row map indexes an axis of length 0.")
    held, length = pt.as_tensor_variable(index).astype("int64"), pt.as_tensor_variable(known or source.shape[axis])
    if known is None:
        length = Assert("An axis is empty.")(length, pt.gt(length, 0))  # raises for this row: its numbers become NaN
    found = pt.clip(pt.switch(held < 0, held + length, held), 0, length - 1).astype("int64")
    return pt.scalar_from_tensor(found) if isinstance(index.type, ScalarType) else found


_LOOP = """
def single(ROWS, GIVEN, out, i):
    found = jit(ONE, GIVEN)[0]
    good = found.size == out.shape[1]
    for k in range(out.shape[1]):
        out[i, k] = found[k] if good else np.nan

def tried(ROWS, GIVEN, out, i):
    try:
        single(ROWS, GIVEN, out, i)
    except Exception:
        for k in range(out.shape[1]):
            out[i, k] = np.nan

def loop(ROWS, GIVEN, out):
    for i in range(out.shape[0]):
        tried(ROWS, GIVEN, out, i)
"""
_BLOCKS = """
def single(ROWS, GIVEN, out, first, last):
    found = jit(ROWS, GIVEN)[0]
    if found.shape[0] == out.shape[0] and found.shape[1] == out.shape[1]:
        for i in range(first, last):
            for k in range(out.shape[1]):
                out[i, k] = found[i, k]
    else:
        for i in range(first, last):
            for k in range(out.shape[1]):
                out[i, k] = np.nan

def tried(ROWS, GIVEN, out, first, last):
    try:
        single(ROWS, GIVEN, out, first, last)
        return True
    except Exception:
        return False

def loop(ROWS, GIVEN, out):
    first = np.int64(0)  # as a literal it would be a type of its own, and all above compiled twice
    for start in range(0, out.shape[0], BLOCK):
        here = out[start : start + BLOCK]
        if not tried(SOME, GIVEN, here, first, len(here)):  # one raises: each in its place, among copies of itself
            for i in range(len(here)):
                if not tried(ALIKE, GIVEN, here, i, i + 1):
                    here[i] = np.nan
"""


def _over_rows(jit: Any, axes: Sequence[int], parameters: int, source: str) -> Callable[..., None]:
    """Compile a loop that hands rows to a compiled function, and catches what it raises."""
    rows, given = [f"r{i}" for i in range(len(axes))], [f"p{i}" for i in range(parameters)]
    one = [f"{name}[i]" if axis else f"np.asarray({name}[i])" for name, axis in zip(rows, axes, strict=True)]
    some = [f"{name}[start : start + here.shape[0]]" for name in rows]
    alike = [f"same_{'vectors' if axis else 'numbers'}({part}, i)" for part, axis in zip(some, axes, strict=True)]
    source = source.replace(", GIVEN", "".join(f", {name}" for name in given))
    for word, parts in {"ROWS": rows, "ONE": one, "SOME": some, "ALIKE": alike}.items():
        source = source.replace(word, ", ".join(parts))
    space: dict[str, Any] = {"np": np, "jit": jit, "BLOCK": BLOCK}
    space |= {"same_numbers": _same_numbers, "same_vectors": _same_vectors}
    exec(source, space)
    for name in ("single", "tried", "loop"):
        space[name] = numba.njit(nogil=True, error_model="numpy")(space[name])
    return space["loop"]


def _filling(axes: Sequence[int]) -> Any:
    """Compile what copies rows of a batch into a block."""
    copies = [
        f"copy_{'vectors' if axis else 'numbers'}(rows[{i}], places, begin, count, filled, columns[{i}])"
        for i, axis in enumerate(axes)
    ]
    source = "def fill(rows, places, begin, count, filled, columns):\n    " + "\n    ".join(copies or ["pass"])
    space: dict[str, Any] = {"copy_numbers": _copy_numbers, "copy_vectors": _copy_vectors}
    exec(source, space)
    return numba.njit(nogil=True, error_model="numpy")(space["fill"])


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _same_numbers(rows, i):  # type: ignore[no-untyped-def]
    copies = np.empty_like(rows)
    for k in range(rows.size):
        copies[k] = rows[i]
    return copies


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _same_vectors(rows, i):  # type: ignore[no-untyped-def]
    copies = np.empty_like(rows)  # number after number: to assign an array takes seconds to compile
    for k in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            copies[k, j] = rows[i, j]
    return copies


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _copy_numbers(source, places, begin, count, filled, target):  # type: ignore[no-untyped-def]
    for i in range(count):
        target[i] = source[places[begin + i]]
    for i in range(count, filled):
        target[i] = target[0]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _copy_vectors(source, places, begin, count, filled, target):  # type: ignore[no-untyped-def]
    for i in range(count):
        place = places[begin + i]
        for j in range(target.shape[1]):
            target[i, j] = source[place, j]
    for i in range(count, filled):
        for j in range(target.shape[1]):
            target[i, j] = target[0, j]
