"""Sums of exposures by cell, in the place of numbers of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pymc_dp.families.cells import Cells
from pymc_dp.inspection.rows import Column, UnreadColumn, known_rows
from pymc_dp.rows.sums import cells_of


def exposed_cells(cells: Cells, exposure: Column) -> Cells:
    """Return cells with exposures for rows. Reads public columns only.

    Parameters
    ----------
    cells : Cells
        With numbers of rows.
    exposure : Column
        With bounds.

    Returns
    -------
    Cells
        `sizes` are the sums of exposures where these, and the cell of every row, are public; else `groups` are what
        the rows that share public levels add up to at most.
    """
    assert exposure.bounds is not None
    if cells.sizes is None or not exposure.public or isinstance(exposure, UnreadColumn):
        return replace(cells, sizes=None, groups=np.asarray(cells.groups) * exposure.bounds[1])
    values = exposure.clamped(known_rows(exposure)).astype(np.float64)
    code = cells_of(cells, [known_rows(column) for column in cells.columns], 0, len(values))
    sums = np.bincount(code, values, minlength=cells.count)
    return replace(cells, sizes=sums, groups=sums)


__all__ = ["exposed_cells"]
