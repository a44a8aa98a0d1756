"""The cells that rows fall into: what is public about a table of levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.inspection.rows import Array, Column


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """The cells that rows fall into: every combination of levels of some columns, less the empty public ones.

    Attributes
    ----------
    columns : tuple of Column
    lookup : (n_codes,) int64 array
        From the mixed-radix code of a row's levels to its cell; -1 where no row can be.
    levels : tuple of (n_cells,) arrays
        Level of each column in each cell.
    sizes : (n_cells,) int64 array or None
        Number of rows of each cell where it is public, else None.
    groups : (n_cells,) int64 array
        Public number of rows that share a cell's public levels (n, or the bound n_max under add_remove).
    n_private : int
        Number of cells that share one combination of public levels.
    """

    columns: tuple[Column, ...]
    lookup: Array
    levels: tuple[Array, ...]
    sizes: Array | None
    groups: Array
    n_private: int

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.groups)

    @property
    def constants(self) -> dict[Variable, Variable]:
        """What stands for the columns in graphs, and the level of each cell."""
        pairs = zip(self.columns, self.levels, strict=True)
        return {var: pt.constant(levels.astype(var.type.dtype)) for column, levels in pairs for var in column.stand_ins}

    @property
    def labels(self) -> tuple[str, ...]:
        """One text per cell, made of public levels."""
        if not self.columns:
            return ("all rows",)
        texts = [
            [column.labels[place] for place in np.searchsorted(column.levels, level)]
            for column, level in zip(self.columns, self.levels, strict=True)
        ]
        return tuple(", ".join(parts) for parts in zip(*texts, strict=True))


__all__ = ["Cells"]
