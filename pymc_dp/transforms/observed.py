"""A released table as an observed variable of the private model of the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor
from pytensor.tensor import TensorVariable

from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import TableRecord


class Density(Protocol):
    """Distribution of a released table given some parameters."""

    @property
    def signature(self) -> str:
        """Gufunc signature."""

    def logp(self, *args: Any) -> Any:
        """Log density of the table and parameters."""

    def random(self, *args: Any, **kwargs: Any) -> Any:
        """Draw tables."""


def held(value: Array | float | TensorVariable, *, shape: tuple[int | None, ...] | None = None) -> TensorVariable:
    """Hold a release, or what follows from one: shared, so that a compiled density serves all releases of its shape.

    A constant would be part of the program, and PyMC would compile each private model anew. A tensor stays as it is.
    `shape` is what the program may know of that of the value: by default all of it.
    """
    if isinstance(value, TensorVariable):
        return value
    return pytensor.shared(np.asarray(value, dtype=np.float64, order="C"), shape=shape or np.shape(value))


def spread_out(parameters: Sequence[Array], ndims: Sequence[int], size: Any) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape of a batch of draws, and parameters spread out over it.

    Parameters
    ----------
    parameters : sequence of array
    ndims : sequence of int
        Numbers of the axes of each that are not of the batch.
    size : int, tuple of int or None
    """
    ends = [np.ndim(item) - ndim for item, ndim in zip(parameters, ndims, strict=True)]
    shapes = [np.shape(item) for item in parameters]
    outer = [shape[:end] for shape, end in zip(shapes, ends, strict=True)]
    batch = np.broadcast_shapes(() if size is None else tuple(np.atleast_1d(size)), *outer)
    full = [
        np.broadcast_to(item, (*batch, *shape[end:])) for item, shape, end in zip(parameters, shapes, ends, strict=True)
    ]
    return batch, full


def add_release(table: TableRecord, parameters: Sequence[Any], density: Density, value: Array) -> None:
    """Add the table of this value; `parameters` are those of the density."""
    pm.CustomDist(
        table.name,
        *parameters,
        logp=density.logp,
        random=density.random,
        signature=density.signature,
        dims=(table.cell_dim, table.column_dim),
        observed=held(value),
    )


__all__ = ["add_release", "held", "spread_out"]
