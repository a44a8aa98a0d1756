"""The rows of a model as the kernel takes them: a table of columns, and the log-likelihood of one row at a state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.gradient import grad
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace, graph_replace, vectorize_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.basic import AllocEmpty

from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import stable, start_of
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import parts_of
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.row_density import clamped, vectorized
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import Column as Stored
from pymc_dp.kernel import RowMap, Table
from pymc_dp.kernel.rowmap import MOST_ENTRIES
from pymc_dp.rows.gate import read
from pymc_dp.samplers.row_function import RowFunction

WIDE = {"int64": 2.0**53, "float64": 1e300}
"""Bounds of columns that have none."""


class ModelRows:
    """Columns of a model's rows, and graphs of one of them. Holds no row.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
        Whose value variables, one after the other, are a state.
    natural : bool
        Whether a state is of the free variables themselves instead, and not of real numbers that lead to them.

    Attributes
    ----------
    columns : mapping of str to Column
    inputs : mapping of str to Variable
        A row, by the names of its columns in the kernel: scalars or vectors, int64 or float64.
    at : Variable
        A state: a vector.
    logp : Variable
        Log-likelihood of the row at the state: a scalar.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model, *, natural: bool = False) -> None:
        if natural:
            found = RowFunction.of(inspection, prior_model)
            values, shapes = list(inspection.stand_ins), [prior.shape for prior in priors_of(prior_model)]
        else:
            over = prior_model.replace_rvs_by_values(prior_model.free_RVs)
            found = RowFunction.of(inspection, prior_model, dict(zip(inspection.stand_ins, over, strict=True)))
            start, values = start_of(prior_model), prior_model.value_vars
            shapes = [np.shape(start[str(value.name)]) for value in values]
        self.at = pt.vector("at", shape=(sum(int(np.prod(shape)) for shape in shapes),))
        self._neighbours: Neighbours = inspection.domain.neighbours
        self._clamped = bool(clamped(inspection.model))
        self.columns: Mapping[str, Column] = {f"{i} {one.name}": one for i, one in enumerate(found.columns)}
        self.inputs: dict[str, Variable] = {}
        held: dict[Variable, Variable] = dict(parts_of(self.at, values, shapes))
        for name, own in zip(self.columns, found.one.values(), strict=True):
            dtype = "float64" if own.type.dtype.startswith("float") else "int64"
            shape = own.type.shape if own.type.ndim < 2 else (int(np.prod(own.type.shape)),)
            self.inputs[name] = pt.TensorType(dtype, shape)(name)
            held[own] = self.inputs[name].reshape(own.type.shape).astype(own.type.dtype)
        self._total, self._values, self._held = found.total, values, held
        self.logp: Variable = clone_replace([found.total], held, rebuild_strict=False)[0]

    def over(self, place: int, shape: tuple[int, ...]) -> tuple[Variable, Variable]:
        """Return the log-likelihood with one of the values, by its place, apart from the state; and that value."""
        value = self._values[place]
        own = pt.TensorType("float64", shape)("own")
        held = {**self._held, value: own.astype(value.type.dtype)}
        return clone_replace([self._total], held, rebuild_strict=False)[0], own

    def reaches(self, place: int) -> bool:
        """Whether the log-likelihood depends on one of the values, by its place."""
        return self._values[place] in set(ancestors([self._total]))

    def slope(self) -> Variable:
        """Return the gradient of the log-likelihood of the row in the state: a vector.

        Raises
        ------
        UnsupportedModelError
            If no value of the state reaches the log-likelihood, or an operation has no gradient.
        """
        try:
            found = grad(stable(self._total), self._values, disconnected_inputs="ignore", return_disconnected="none")
        except Exception as error:  # of the graph alone: operations say in their own ways that they have none
            what = f"its log-likelihood has no gradient ({type(error).__name__})"
            remedy = "Use operations that PyTensor can differentiate."
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)]) from None
        if all(one is None for one in found):
            what, remedy = "no free variable reaches its likelihoods", "Sample the prior, which is public."
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
        parts = [
            (pt.zeros_like(value) if one is None else one).ravel().astype("float64")
            for value, one in zip(self._values, found, strict=True)
        ]
        joined = parts[0] if len(parts) == 1 else pt.concatenate(parts)
        return clone_replace([joined], self._held, rebuild_strict=False)[0]

    def row_map(self, output: Variable, parameters: Sequence[Variable], *, width: int | None = None) -> RowMap:
        """Compile a vector of one row's numbers; for batches of rows, if their `width` is given.

        Raises
        ------
        UnsupportedModelError
            Where the kernel takes no such graph; it names the operation.
        """
        output = _without_old_memory(output)
        known = set(ancestors([output]))
        row = {name: var for name, var in self.inputs.items() if var in known}
        # Nothing private is among these: a graph of one row that held any was refused (`RowFunction.of`).
        public = [var for var in known if isinstance(var, Constant) and np.size(var.data) > MOST_ENTRIES]
        try:
            made = RowMap(row, parameters, output, public=public, batches=width is not None)
            if width is not None:
                made.of_batches(width)
            return made
        except ArgumentError as error:
            what = f"the log-likelihood of a row is no function that rows can be mapped by. {error}"
            problem = Problem(where="model", what=what, remedy="Write it with other operations.")
            raise UnsupportedModelError([problem]) from None

    def at_points(self, graph: Variable, points: Variable, count: int) -> Variable:
        """Return a number of the row at `count` public points, the rows of a matrix: a vector.

        What no point enters is the same at all of them.
        """
        found = vectorize_graph(graph, {self.at: points})
        return found if found.type.ndim else pt.alloc(found, count)

    def slopes(self, names: Sequence[str]) -> Variable:
        """Return the derivatives of the log-likelihood in the numbers of some columns: one vector."""
        own = [self.inputs[name] for name in names]
        found = grad(self.logp, own, disconnected_inputs="ignore", return_disconnected="zero")
        return pt.concatenate([one.ravel() for one in found])

    def at_ends(self, public: Sequence[str]) -> list[Variable]:
        """Return the log-likelihoods of the rows whose private values are all at their lower ends, or upper ends."""
        private = [name for name in self.columns if name not in public]
        sides = [{self.inputs[name]: pt.constant(self.ends_of(name)[side]) for name in private} for side in (0, 1)]
        return [clone_replace([self.logp], held, rebuild_strict=False)[0] for held in sides]

    def middle_of_ends(self, public: Sequence[str]) -> Variable:
        """Return the mean of both: a function of the public values of a row."""
        return pt.add(*self.at_ends(public)) / 2

    def ends_of(self, name: str) -> list[Array]:
        """Return the lowest and the highest value of a column; 0 where only a norm limits it."""
        column, var = self.columns[name], self.inputs[name]
        sides = (
            [np.zeros(column.row_shape)] * 2
            if column.norm is not None
            else [np.clip(e, -1e3, 1e3) for e in column.ends]
        )
        return [np.reshape(side, var.type.shape).astype(var.type.dtype) for side in sides]

    def require_limits(self, otherwise: str = "") -> None:
        """Refuse rows that may be anything, unless the model clamps what they add: no range would be found.

        Parameters
        ----------
        otherwise : str
            What else there is to do, for the error.
        """
        loose = [one for one in self.columns.values() if not one.limited and not self._clamped]
        if loose:
            names = ", ".join(repr(one.name) for one in loose)
            given = ", ".join(f"{one.name!r}: (low, high)" for one in loose)
            have = "have" if len(loose) > 1 else "has"
            remedy = (
                f"Give public bounds of its values, dp.Domain(bounds={{{given}}}); or bound every row's log-likelihood "
                f"by dp.clamp(model, low, high){otherwise}."
            )
            what = f"how far a row moves its likelihood has no limit: {names} {have} no bounds"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])

    def table(self) -> Table:
        """Read the rows, once. The budget must have been charged."""
        stored = {}
        for name, column in self.columns.items():
            values, var = read(column), self.inputs[name]
            low, high = _bounds(column, var.type.dtype)
            # A source hands over values as they are; the kernel clamps them.
            wide = np.ascontiguousarray(values.reshape(len(values), *var.type.shape), dtype=var.type.dtype)
            stored[name] = Stored(wide, low, high, public=column.public and self._neighbours == "replace")
        return Table(stored, neighbours=self._neighbours)


def _without_old_memory(output: Variable) -> Variable:
    """Return the same graph, whose arrays begin as zeros: those that PyTensor fills anyway begin as any memory."""
    empty = {
        node.outputs[0]: pt.zeros(node.inputs, dtype=node.op.dtype)
        for node in toposort([output])
        if isinstance(node.op, AllocEmpty)
    }
    return graph_replace([output], empty, strict=False)[0] if empty else output


class OfPublicRows:
    """Numbers of public rows by NumPy: what a row map says of them, without compiling one.

    Parameters
    ----------
    rows : ModelRows
    output : Variable
        Of one row at a state.
    several : bool
        Whether states come several at a time: one more axis, the first.
    over : (Variable, Variable), optional
        Likewise, of what the numbers depend on beside the state: one of it, and many.
    given : sequence of Variable
        More that they depend on.
    columns : collection of str, optional
        Those that they depend on; all by default.
    """

    def __init__(
        self,
        rows: ModelRows,
        output: Variable,
        *,
        several: bool = False,
        over: tuple[Variable, Variable] | None = None,
        given: Sequence[Variable] = (),
        columns: Collection[str] | None = None,
    ) -> None:
        self._names = [name for name in rows.inputs if columns is None or name in columns]
        inputs = [rows.inputs[name] for name in self._names]
        many = {one: pt.TensorType(one.type.dtype, (None, *one.type.shape))() for one in inputs}
        found = _repeated(vectorized(output, dict(many)), output, next(iter(many.values())).shape[0])
        states = pt.TensorType(rows.at.type.dtype, (None, *rows.at.type.shape))() if several else rows.at
        if several:
            found = _repeated(vectorized(found, {rows.at: states}), found, states.shape[0])
        if over is not None:
            found, given = _repeated(vectorized(found, dict([over])), found, over[1].shape[0]), [over[1], *given]
        self._function = compiled([states, *given, *many.values()], [found])

    def at(self, rows: Mapping[str, Array], states: Array, *given: Array) -> Array:
        """Return (n_rows, ...) numbers at a state, or with an axis before of what there are several, as floats are."""
        with np.errstate(all="ignore"):
            found: Array = self._function(states, *given, *(rows[name] for name in self._names))[0]
        return found


def _repeated(found: Variable, before: Variable, count: Variable) -> Variable:
    """Return numbers with a first axis of so many entries, where vectorising made none."""
    if found.type.ndim > before.type.ndim:
        return found
    return pt.broadcast_to(found, (count, *(before.shape[axis] for axis in range(before.type.ndim))))


def _bounds(column: Column, dtype: str) -> tuple[float, float]:
    low, high = column.bounds or (-np.inf, np.inf)
    return max(float(low), -WIDE[dtype]), min(float(high), WIDE[dtype])


def rows_of(stored: Table) -> dict[str, Array]:
    """Return the public columns of a table."""
    return {name: column.values for name, column in stored.columns.items() if column.public}


__all__ = ["ModelRows", "OfPublicRows", "rows_of"]
