"""A released table as an observed variable of the private model of the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor

from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import TableRecord


class Density(Protocol):
    """Distribution of a released table given some parameters."""

    @property
    def signature(self) -> str:
        """Gufunc signature."""

    def logp(self, *args: Any) -> Any:
        """Log density of the table and parameters."""

    def random(self, *args: Any, **kwargs: Any) -> Any:
        """Draw tables."""


def add_release(table: TableRecord, parameters: Sequence[Any], density: Density, value: Array) -> None:
    """Add the table of this value; `parameters` are those of the density."""
    # A shared value, not a constant: the compiled density then serves every release of the same shape.
    held = pytensor.shared(np.ascontiguousarray(value, dtype=np.float64), shape=value.shape)
    pm.CustomDist(
        table.name,
        *parameters,
        logp=density.logp,
        random=density.random,
        signature=density.signature,
        dims=(table.cell_dim, table.column_dim),
        observed=held,
    )


__all__ = ["add_release"]
