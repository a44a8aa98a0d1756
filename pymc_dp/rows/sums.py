"""One pass over the rows: code of each row's cell, exact integer sums per cell.

Every kernel clamps before anything else, takes no decision that outlives a row, and works on chunks that fit the
cache, so that no temporary has the length of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from os import cpu_count
from types import ModuleType
from typing import Any

import numpy as np

from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import TRANSFORMS, BoundedFeatures, RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import BoundedMoments, LevelCounts, OwnTotals
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.gate import predictors_of, values_of
from pymc_dp.rows.gram_sums import gram_sums

CHUNK = 65_536
WIDE = BoundedFeatures | StatedSums
"""Statistics whose sums are as many as their labels."""
ROWS_PER_SPAN = 1_000_000
"""Rows that a thread takes at a time: several spans per thread, so that none waits for a busy core."""
STRIPES = 4
"""Copies of a table of counts: neighbouring rows of one cell then do not wait for each other."""

LENGTHS = (
    "The columns of the table have different lengths, or more than 2**32 rows; they were changed after the model was "
    "inspected. Give every column the same length, by one pm.set_data for all."
)
ENTRIES = (
    "The rows have another number of entries than when the model was inspected. Give them their old shape by "
    "pm.set_data."
)


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
        every = np.arange(int(np.prod([shape[place] for place in public])))
        tally = _scan(held, [values_of(column) for column in held], n_rows, every, None, None)[:, 0]
        codes = np.unravel_index(np.arange(n_codes), shape)
        groups = tally[np.ravel_multi_index([codes[place] for place in public], [shape[place] for place in public])]
        present = groups > 0
        lookup = np.where(present, np.cumsum(present) - 1, -1)
        groups, levels = groups[present], [level[present] for level in levels]
    sizes = groups if n_private == 1 else None
    return Cells(
        columns=tuple(columns), lookup=lookup, levels=tuple(levels), sizes=sizes, groups=groups, n_private=n_private
    )


def sum_rows(
    cells: Cells,
    statistic: RowStatistic,
    values: Array,
    *,
    with_sizes: bool,
    levels: Sequence[Array] | None = None,
) -> Array:
    """Add up what the rows contribute to each cell. Reads private data, once.

    Parameters
    ----------
    cells : Cells
    statistic : RowStatistic
    values : (n_rows,) or (n_rows, width) array
        Observed values, of any integer or float type.
    levels : sequence of (n_rows,) arrays, optional
        Values of the columns of the cells; by default those that the model holds.
    with_sizes : bool
        Put the number of rows of each cell in front (not for counts).

    Returns
    -------
    (n_cells, n_integers) int64 array
        Exact sums in grid steps.
    """
    levels = [values_of(column) for column in cells.columns] if levels is None else levels
    if len(values) > MOST_ROWS or any(len(held) != len(values) for held in levels):
        raise PrivacyError(LENGTHS)
    if statistic.width != (values.shape[1] if values.ndim > 1 else 1):
        raise PrivacyError(ENTRIES)
    table = _scan(cells.columns, levels, len(values), cells.lookup, statistic, values)
    return table if isinstance(statistic, LevelCounts) else as_released(statistic, table, with_sizes=with_sizes)


def as_released(statistic: RowStatistic, table: Array, *, with_sizes: bool) -> Array:
    """Return sums, of which the first is the number of rows, as they are released: the offset of squares subtracted."""
    if isinstance(statistic, BoundedMoments) and statistic.offset:
        table[:, -1] -= statistic.offset * table[:, 0]
    return table if with_sizes else table[:, 1:]


def sum_products(
    statistic: GramSums,
    cells: Cells,
    predictors: Sequence[Array],
    response: Array,
    levels: Sequence[Array] | None = None,
) -> Array:
    """Add up the products of a regression. Reads private data, once.

    Parameters
    ----------
    statistic : GramSums
    cells : Cells
    predictors : sequence of (n_rows,) or (n_rows, width) arrays
        Of any integer, float or boolean type.
    response : (n_rows,) array
    levels : sequence of (n_rows,) arrays, optional
        As for `sum_rows`.

    Returns
    -------
    (statistic.count,) int64 array
        Exact sums in grid steps.
    """
    levels = [values_of(column) for column in cells.columns] if levels is None else levels
    arrays = [*predictors, *levels]
    widths = tuple(1 if array.ndim == 1 else array.shape[1] for array in predictors)
    if len(response) > MOST_ROWS or any(len(array) != len(response) for array in arrays):
        raise PrivacyError(LENGTHS)
    if widths != tuple(source.width for source in statistic.sources) or response.ndim != 1:
        raise PrivacyError(ENTRIES)
    code = None if len(statistic.cells) == 1 else partial(cells_of, cells, levels)
    return gram_sums(statistic, predictors, response, code)


def known_gram(statistic: GramSums, design: Design, cells: Cells) -> Array:
    """Add up products of (1, t) of public predictors in every cell: (n_cells, 1 + d, 1 + d). Reads public rows."""
    wide = replace(statistic, known=False, constant=True, square=False, apart=True)
    rows = predictors_of(design)
    sums = sum_products(wide, cells, rows, np.zeros(len(rows[0]))) * statistic.step
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
    code = np.zeros(stop - start, dtype=np.int64)
    for place, (column, held) in enumerate(zip(cells.columns, levels, strict=True)):
        _add_levels(code, held[start:stop], column, first=place == 0)
    return cells.lookup[code]


def row_cells(cells: Cells, name: str) -> Array:
    """Return the cell of every row if one of the columns had each of its levels, the others as they are. **Private**.

    Parameters
    ----------
    cells : Cells
    name : str
        Of the column.

    Returns
    -------
    (n_rows, n_levels) int64 array
    """
    code = np.zeros(len(values_of(cells.columns[0])), dtype=np.int64)
    stride, levels = 1, 0
    for column in cells.columns:
        if column.name == name:
            levels, stride = len(column.levels), 1
            code *= levels
        else:
            _add_levels(code, values_of(column), column, first=False)
            stride *= len(column.levels)
    return cells.lookup[code[:, None] + stride * np.arange(levels)]


def row_integers(statistic: RowStatistic, values: Array) -> Array:
    """Return what every row adds, by itself and as `sum_rows` adds it up.

    Parameters
    ----------
    statistic : RowStatistic
    values : (n_rows,) or (n_rows, width) array
        In float64; for counts of any integer or float type.

    Returns
    -------
    (n_rows, n_integers) int64 array
        Counts of every level; else in grid steps, the offset of squares subtracted.
    """
    kernels, code = _kernels(), np.arange(len(values), dtype=np.int32)
    if isinstance(statistic, LevelCounts):
        found = np.zeros((len(values), statistic.n_levels), dtype=np.int64)
        if statistic.trials is not None:
            kernels.add_trials(code, _plain(values), *_of_trials(statistic), found)
            return found
        level = np.zeros(len(values), dtype=np.int32)
        kernels.fold(level, statistic.places(values), 0, statistic.n_levels - 1, False, True)
        found[code, level] = 1
        return found
    if isinstance(statistic, StatedSums):
        return statistic.row_steps(values)
    if isinstance(statistic, BoundedFeatures):
        found = np.zeros((len(values), len(statistic.features)), dtype=np.int64)
        kernels.add_features(code, values.reshape(len(values), statistic.width), *_description(statistic), found)
        return found
    assert isinstance(statistic, BoundedMoments)
    both = np.zeros((len(values), 2), dtype=np.int64)
    kernels.add_moments(code, values, *_grid(statistic), 2 in statistic.powers, both)
    both[:, 1] -= statistic.offset
    return both[:, [power - 1 for power in statistic.powers]]


def _scan(
    columns: Sequence[Column],
    rows: Sequence[Array],
    n_rows: int,
    lookup: Array,
    statistic: RowStatistic | None,
    values: Array | None,
) -> Array:
    n_spans = max(1, n_rows // ROWS_PER_SPAN)
    threads = min(cpu_count() or 1, n_spans)
    edges = [n_rows * i // n_spans for i in range(n_spans + 1)]
    spans = list(pairwise(edges))

    def work(span: tuple[int, int]) -> Array:
        with np.errstate(all="ignore"):  # a signalling NaN would warn
            return _scan_span(columns, rows, span[0], span[1], lookup, statistic, values)

    if threads == 1:
        return work((0, n_rows))
    with ThreadPoolExecutor(threads) as pool:
        return np.sum(list(pool.map(work, spans)), axis=0)


def _scan_span(
    columns: Sequence[Column],
    rows: Sequence[Array],
    begin: int,
    end: int,
    lookup: Array,
    statistic: RowStatistic | None,
    values: Array | None,
) -> Array:
    if isinstance(statistic, BoundedMoments) and not columns:
        assert values is not None
        return _total(statistic, values[begin:end])
    kernels = _kernels()
    n_cells = int(lookup.max()) + 1
    width = statistic.n_levels if isinstance(statistic, LevelCounts) else 1
    code = np.zeros(CHUNK, dtype=np.int32 if len(lookup) * width < 2**31 else np.int64)
    regroup = not np.array_equal(lookup, np.arange(len(lookup)))
    counts = np.zeros((STRIPES, n_cells, width), dtype=np.int64)
    sums = np.zeros((n_cells, len(statistic.labels) if isinstance(statistic, WIDE) else 2), dtype=np.int64)
    for start in range(begin, end, CHUNK):
        stop = min(start + CHUNK, end)
        size = stop - start
        for place, (column, held) in enumerate(zip(columns, rows, strict=True)):
            _add_levels(code, held[start:stop], column, first=place == 0)
        if regroup:
            kernels.apply_lookup(code, lookup, size)
        if isinstance(statistic, LevelCounts) and statistic.trials is not None:
            assert values is not None
            kernels.add_trials(code, _plain(values[start:stop]), *_of_trials(statistic), counts[0])
            continue
        if isinstance(statistic, LevelCounts):
            assert values is not None
            kernels.fold(code, statistic.places(values[start:stop]), 0, width - 1, False, not columns)
        kernels.tally(code, size, counts.reshape(STRIPES, -1))
        if isinstance(statistic, BoundedMoments):
            assert values is not None
            kernels.add_moments(code, _plain(values[start:stop]), *_grid(statistic), 2 in statistic.powers, sums)
        if isinstance(statistic, BoundedFeatures):
            assert values is not None
            rows_of_chunk = _plain(values[start:stop]).reshape(size, statistic.width)
            kernels.add_features(code, rows_of_chunk, *_description(statistic), sums)
        if isinstance(statistic, StatedSums):
            assert values is not None
            np.add.at(sums, code[:size].astype(np.int64), statistic.row_steps(values[start:stop]))
    table = counts.sum(axis=0)
    if isinstance(statistic, WIDE):
        table = np.concatenate([table, sums], axis=1)
    if isinstance(statistic, BoundedMoments):
        table = np.concatenate([table, sums[:, [power - 1 for power in statistic.powers]]], axis=1)
    return table


def _total(statistic: BoundedMoments, values: Array) -> Array:
    """Row of one cell that holds all values: their number and the sums of their powers."""
    first, second = _kernels().total_moments(_plain(values), *_grid(statistic), 2 in statistic.powers)
    powers = [(first, second)[power - 1] for power in statistic.powers]
    return np.array([[len(values), *powers]], dtype=np.int64)


def _of_trials(statistic: LevelCounts) -> tuple[int, bool]:
    assert statistic.trials is not None
    return statistic.trials, not isinstance(statistic, OwnTotals)


def _grid(statistic: BoundedMoments) -> tuple[float, float, float, float]:
    return statistic.low, statistic.high, statistic.centre, 1.0 / statistic.unit


def _description(statistic: BoundedFeatures) -> tuple[Any, ...]:
    """Everything that the compiled pass needs to know of some features."""
    found = statistic.features
    return (
        statistic.low,
        statistic.high,
        np.array([0 if item.transform == "product" else TRANSFORMS[item.transform].code for item in found]),
        np.array([item.argument for item in found]),
        np.array([item.columns if len(item.columns) == 2 else (item.columns[0], -1) for item in found]),
        np.array([item.centre for item in found]),
        np.array([1.0 / item.unit for item in found]),
        np.array([float(item.reach) for item in found]),
    )


def _add_levels(code: Array, values: Array, column: Column, *, first: bool) -> None:
    levels = column.levels
    low, high = levels[0], levels[-1]
    if np.issubdtype(levels.dtype, np.integer) and int(high) - int(low) + 1 == len(levels):
        _kernels().fold(code, _plain(values), int(low), int(high), column.outside == "nearest", first)
    else:
        places = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
        _kernels().fold(code, places, 0, len(levels) - 1, False, first)


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.families import row_sum_kernels as kernels

    return kernels


def _plain(values: Array) -> Array:
    """View booleans as bytes, and widen what numba does not know; it needs no other help."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    return values.view(np.int8) if values.dtype == np.bool_ else values
