"""Gradients of a model's rows and of its prior, as walks by batches take them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytensor
from pymc import Model
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.replace import clone_replace

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import start_of
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import RowMap
from pymc_dp.samplers.rows import ModelRows

KEPT = 8
"""Models whose compiled gradients a process keeps."""
AT_ONCE = 2**20
"""Numbers of rows that are in memory at once, where rows are read one after the other."""


class Compiled(NamedTuple):
    """Gradients of a row and of the prior, and the graphs that they were made of. There is no row in any."""

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    of_row: RowMap
    of_prior: Any

    def fits(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> bool:
        """Say whether other graphs compute the same: constants are compared by value, ops by their properties."""
        ours, theirs = ([var.type for var in every] for every in ((*self.inputs, *self.outputs), (*inputs, *outputs)))
        return ours == theirs and equal_computations([*outputs], [*self.outputs], [*inputs], [*self.inputs])


_kept: deque[Compiled] = deque(maxlen=KEPT)


class BatchGradients:
    """Gradients of one row and of the log prior over a flat position; nothing in them is private.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
        Whose value variables, one after the other, are a position.

    Attributes
    ----------
    shapes : tuple of (name, shape, dtype)
        Of the value variables.

    Raises
    ------
    UnsupportedModelError
        If a free variable is discrete, an operation has no gradient, the density of dummy rows does not factorise, or,
        on compiling, if the kernel does not take the graph of a row.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model) -> None:
        refuse_discrete(prior_model)
        self._rows, point = ModelRows(inspection, prior_model), start_of(prior_model)
        values = list(prior_model.value_vars)
        self.shapes = tuple(
            (str(one.name), tuple(np.shape(point[str(one.name)])), str(one.type.dtype)) for one in values
        )
        self._slope = self._rows.slope()
        parts = dict(parts_of(self._rows.at, values, [shape for _, shape, _ in self.shapes]))
        density = clone_replace([frozen_shared(prior_model.logp(), ())], parts, rebuild_strict=False)[0]
        self._prior = pytensor.grad(density, self._rows.at, disconnected_inputs="ignore", return_disconnected="zero")
        self._compiled: Compiled | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions behind: another process makes its own."""
        return {**vars(self), "_compiled": None}

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

    def named(self, columns: Sequence[Array]) -> dict[str, Array]:
        """Return the columns of a table, in the order of the model's, by their names in the kernel. **Private**."""
        inputs = self._rows.inputs.items()
        return {
            name: values.reshape(len(values), *one.type.shape)
            for (name, one), values in zip(inputs, columns, strict=True)
        }

    @property
    def compiled(self) -> Compiled:
        """What is compiled: the same for all models whose graphs are equal, so that loops are compiled once as well."""
        if self._compiled is None:
            inputs, outputs = (self._rows.at, *self._rows.inputs.values()), (self._slope, self._prior)
            found = next((known for known in tuple(_kept) if known.fits(inputs, outputs)), None)
            if found is None:
                options = {"mode": "NUMBA", "trust_input": True, "on_unused_input": "ignore"}
                prior = pytensor.function([self._rows.at], self._prior, **options)
                of_row = self._rows.row_map(self._slope, [self._rows.at], width=self.size)
                found = Compiled(inputs, outputs, of_row, prior.vm.jit_fn)
                _kept.append(found)
            self._compiled = found
        return self._compiled

    def of_prior(self, position: Array) -> Array:
        """Return the gradient of the log prior, Jacobians and Potentials included."""
        return np.array(self.compiled.of_prior(position)[0])

    def of_rows(self, columns: Sequence[Array], position: Array) -> Any:
        """Yield the gradients of some rows at a time, (n_some, size), each mapped by itself. **Private**, as rows."""
        named, of_row = self.named(columns), self.compiled.of_row
        for start in range(0, len(columns[0]), max(1, AT_ONCE // self.size)):
            some = {name: values[start : start + max(1, AT_ONCE // self.size)] for name, values in named.items()}
            yield of_row.on(some, [position], self.size)


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


__all__ = ["BatchGradients", "Compiled", "refuse_discrete"]
