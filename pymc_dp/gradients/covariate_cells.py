"""Rows with the same covariates, of which the model says the same: evaluated once for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp.inspection.rows import Array, Column, shape_of

Places = npt.NDArray[np.int64]
"""(n_rows,) of the cell of each row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateCells:
    """All values that the covariates of a row may have together, by what is declared of them: no row is looked at.

    Attributes
    ----------
    columns : tuple of Column
        All columns of the inspection.
    crossed : tuple of int
        Places of those whose values make the cells; each holds whole numbers within bounds. No other covariate enters
        what the model says of a row.
    """

    columns: tuple[Column, ...]
    crossed: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each of the crossed columns may have."""
        return tuple(high - low + 1 for low, high in map(self._ends, self.crossed))

    @property
    def count(self) -> int:
        """Number of cells; 1 where nothing is crossed."""
        return math.prod(self.shape)

    def rows(self) -> list[Array]:
        """Return one row of each cell, an array per column: (n_cells, ...). What is not crossed is of no account."""
        values = np.unravel_index(np.arange(self.count), self.shape) if self.crossed else ()
        found = [one.clamped(np.zeros((self.count, *shape_of(one.leaf)[1:]))) for one in self.columns]
        for place, value in zip(self.crossed, values, strict=True):
            found[place] = (value + self._ends(place)[0]).astype(found[place].dtype)
        return found

    def of_rows(self, held: Sequence[Array]) -> Places:
        """Return the cell of each of some rows; whatever they hold, it is one of those that there are."""
        found = np.zeros(len(held[0]), dtype=np.int64)
        for place, size in zip(self.crossed, self.shape, strict=True):
            low, high = self._ends(place)
            found = found * size + (np.clip(held[place].astype(np.int64), low, high) - low)
        return found

    def _ends(self, place: int) -> tuple[int, int]:
        bounds = self.columns[place].bounds
        assert bounds is not None
        return int(bounds[0]), int(bounds[1])


def cells_of(columns: Sequence[Column], read: set[int], responses: set[int]) -> CovariateCells | None:
    """Return the cells of rows; None where they have no end.

    Parameters
    ----------
    columns : sequence of Column
    read : set of int
        Places of the columns that are read for what the model says of a row.
    responses : set of int
        Places of those that are replaced by every value they may have before they are read.
    """
    crossed = tuple(sorted(read - responses))
    if all(_listed(columns[place]) for place in crossed):
        return CovariateCells(columns=tuple(columns), crossed=crossed)
    return None


def _listed(column: Column) -> bool:
    kind: Any = np.dtype(column.leaf.type.dtype).kind
    fits = column.bounds is not None and column.bounds[1] < 2**63  # where `Places` count
    return kind in "iu" and fits and shape_of(column.leaf)[1:] == ()


__all__ = ["CovariateCells", "Places", "cells_of"]
