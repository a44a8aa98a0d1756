"""Cells of a table, and sums of rows without noise: of what is public, and for chains that are assumed to converge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel.readings import Places
from pymc_dp.kernel.tallies import Cells as Placed
from pymc_dp.kernel.tallies import Key, Rows, Tally
from pymc_dp.rows.asked import tally_of
from pymc_dp.rows.gate import predictors_of, values_of


def make_cells(columns: Sequence[Column], n_rows: int, n_max: int | None) -> Cells:
    """Lay out the cells of some columns. Reads public columns only.

    Parameters
    ----------
    columns : sequence of Column
    n_rows : int
        Number of rows; used only where it is public (`n_max` is None).
    n_max : int or None
        Public bound on the number of rows where that number is private.
    """
    shape = [len(column.levels) for column in columns]
    grids = np.meshgrid(*[column.levels for column in columns], indexing="ij") if columns else []
    levels = [grid.ravel() for grid in grids]
    n_codes = int(np.prod(shape)) if shape else 1
    lookup = np.arange(n_codes)
    public = [place for place, column in enumerate(columns) if column.public]
    n_private = n_codes // int(np.prod([shape[place] for place in public])) if public else n_codes
    if n_max is not None:
        return Cells(
            columns=tuple(columns),
            lookup=lookup,
            levels=tuple(levels),
            sizes=None,
            groups=np.full(n_codes, n_max),
            n_private=n_private,
        )
    groups = np.full(n_codes, n_rows)
    if public:
        held = [columns[place] for place in public]
        tally = row_counts(held, [values_of(column) for column in held], n_rows)
        codes = np.unravel_index(np.arange(n_codes), shape)
        groups = tally[np.ravel_multi_index([codes[place] for place in public], [shape[place] for place in public])]
        present = groups > 0
        lookup = np.where(present, np.cumsum(present) - 1, -1)
        groups, levels = groups[present], [level[present] for level in levels]
    sizes = groups if n_private == 1 else None
    return Cells(
        columns=tuple(columns), lookup=lookup, levels=tuple(levels), sizes=sizes, groups=groups, n_private=n_private
    )


def row_counts(columns: Sequence[Column], values: Sequence[Array], n_rows: int) -> Array:
    """Return the number of rows of each combination of levels, the last column's running fastest."""
    keys = tuple(Key(column.levels, nearest=column.outside == "nearest") for column in columns)
    rows = Rows([np.zeros(n_rows, dtype=np.int8)], list(values))
    return Tally(reading=Places(1), cells=Placed(keys)).exact(rows)[:, 0]


def sum_rows(cells: Cells, statistic: RowStatistic, values: Array, *, with_sizes: bool) -> Array:
    """Add up what the rows contribute to each cell. Reads private data, once.

    Parameters
    ----------
    cells : Cells
    statistic : RowStatistic
    values : (n_rows,) or (n_rows, width) array
        Observed values, of any integer or float type.
    with_sizes : bool
        Put the number of rows of each cell in front (not for counts).

    Returns
    -------
    (n_cells, n_integers) int64 array
        Exact sums in grid steps.
    """
    tally = tally_of(statistic, cells, sized=with_sizes and statistic.kind != "counts")
    return tally.exact(Rows([values], [values_of(column) for column in cells.columns]))


def sum_products(
    statistic: GramSums, predictors: Sequence[Array], response: Array, cells: Array | None = None
) -> Array:
    """Add up the products of a regression, (statistic.count,) whole numbers; `cells` are the cell of each row."""
    key = () if cells is None else (Key(np.arange(len(statistic.cells)), nearest=True, public=statistic.sizes_known),)
    tally = Tally(reading=statistic.reading(), cells=Placed(key))
    return tally.exact(Rows([*predictors, response], [] if cells is None else [cells]))[0]


def known_gram(statistic: GramSums, design: Design, cells: Cells) -> Array:
    """Add up products of (1, t) of public predictors in every cell: (n_cells, 1 + d, 1 + d). Reads public rows."""
    wide = replace(statistic, known=False, longest=None, constant=True, square=False, apart=True)
    rows = predictors_of(design)
    code = cells_of(cells, [values_of(column) for column in cells.columns], 0, len(rows[0]))
    sums = sum_products(wide, rows, np.zeros(len(rows[0])), code if len(wide.cells) > 1 else None) * statistic.step
    d, n_cells = statistic.width, len(statistic.cells)
    gram = np.empty((n_cells, 1 + d, 1 + d))
    gram[:, 0, 0] = cells.sizes
    gram[:, 0, 1:] = gram[:, 1:, 0] = sums[wide.parts["first"]].reshape(n_cells, d + 1)[:, :d]
    i, j = np.triu_indices(d)
    products = sums[wide.parts["second"]].reshape(n_cells, -1)[:, : len(i)]
    gram[:, 1 + i, 1 + j] = gram[:, 1 + j, 1 + i] = products
    return gram


def cells_of(cells: Cells, levels: Sequence[Array], start: int, stop: int) -> Array:
    """Cell of every row of one chunk."""
    placed = tally_of(LevelCounts(labels=("all",)), cells).cells
    return placed.code(levels, start, stop).astype(np.int64)


__all__ = ["cells_of", "known_gram", "make_cells", "sum_products", "sum_rows"]
