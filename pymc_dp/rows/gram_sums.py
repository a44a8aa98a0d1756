"""One pass over the rows of a regression: exact integer sums of products of clamped numbers.

A chunk of rows is turned into whole numbers in a small buffer, clamped before anything else; products are added up
there. No temporary has the length of the table, and no array is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from types import ModuleType

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.families.gram import SUM_BITS, GramSums, Source
from pymc_dp.inspection.rows import Array

CHUNK = 512
"""Rows of a matrix whose numbers stay in the cache. Sums of 2**13 products are still exact in float64."""
MANY = 8
"""Arrays from which on chunks are 4 times as long: a call for every one takes longer then than what it does."""
ROWS_PER_SPAN = 64 * CHUNK
"""Rows that a thread takes at a time."""

Codes = Callable[[int, int], Array] | Array
"""Cells of all rows, or a function that gives those of the rows from one number to another."""


def gram_sums(statistic: GramSums, predictors: Sequence[Array], response: Array, cells: Codes | None = None) -> Array:
    """Add up what the rows of a regression contribute. Reads private data, once.

    Values that are no numbers count as the centre of their bounds; values outside as the nearest bound; rows longer
    than a norm are scaled down to it.

    Parameters
    ----------
    statistic : GramSums
    predictors : sequence of (n_rows,) or (n_rows, width) arrays
        One per source, of any integer, float or boolean type.
    response : (n_rows,) array
    cells : (n_rows,) integer array, callable, or None
        Place of every row's cell in ``statistic.cells``; None with one cell.

    Returns
    -------
    (statistic.count,) int64 array
        Exact sums in steps of ``4**-bits``, in the order of `GramSums`. The order of rows makes no difference.

    Raises
    ------
    PrivacyError
        If arrays have other lengths or widths than each other and their sources, or so many rows that sums may not
        fit.
    """
    arrays = [*predictors, response]
    _check(statistic, arrays)
    n_rows = len(response)
    starts = iter(range(0, n_rows, ROWS_PER_SPAN))
    threads = max(1, min(cpu_count() or 1, n_rows // ROWS_PER_SPAN))

    def work(_: int) -> Array:
        with np.errstate(all="ignore"):  # a signalling NaN would warn
            return _Pass(statistic=statistic, arrays=arrays, cells=cells).run(starts, n_rows)

    if threads == 1:
        return work(0)
    with ThreadPoolExecutor(threads) as pool:
        return np.sum(list(pool.map(work, range(threads))), axis=0)


UNPLANNED = (
    "The columns of the table have different lengths, or more rows than planned; they were changed after the model was "
    "inspected. Give every column the same length, by one pm.set_data for all."
)


def require_room(statistic: GramSums, n_rows: int) -> None:
    """Raise PrivacyError for so many rows that sums of them may not fit."""
    if n_rows.bit_length() + 2 * statistic.bits > SUM_BITS:
        raise PrivacyError(UNPLANNED)


def _check(statistic: GramSums, arrays: Sequence[Array]) -> None:
    widths = [source.width for source in (*statistic.sources, statistic.response)]
    if len({len(values) for values in arrays}) > 1:
        raise PrivacyError(UNPLANNED)
    require_room(statistic, len(arrays[-1]))
    if [values.shape[1] if values.ndim > 1 else 1 for values in arrays] != widths:
        raise PrivacyError(
            "The rows have other numbers of columns than when the model was inspected. Give them their old shape by "
            "pm.set_data."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """What one thread fills: lines are those of t, u, the constant, and zeros up to a multiple of 4.

    Attributes
    ----------
    held : (n_lines, chunk) array
        The chunk at hand as whole numbers.
    lengths : (chunk,) array
        Of its rows in a ball.
    products : (n_lines, n_lines) int64 array
        Of all lines, over all cells.
    first : (n_cells, d + 2) int64 array
        Of lines alone; not with one cell.
    apart, partial : (n_cells, (d + 1) (d + 2) / 2) arrays
        Products by cell, where they lie apart, and those of the chunk at hand.
    """

    held: Array
    lengths: Array
    products: Array
    first: Array
    apart: Array
    partial: Array

    @classmethod
    def empty(cls, statistic: GramSums, chunk: int) -> _Sums:
        lines, n_cells = statistic.width + 2, len(statistic.cells)
        held = np.zeros((-(-lines // 4) * 4, chunk))
        held[lines - 1] = 2.0**statistic.bits
        pairs = (n_cells, (lines - 1) * lines // 2 if _lie_apart(statistic) else 0)
        return cls(
            held=held,
            lengths=np.empty(chunk),
            products=np.zeros((len(held), len(held)), dtype=np.int64),
            first=np.zeros((n_cells, lines), dtype=np.int64),
            apart=np.zeros(pairs, dtype=np.int64),
            partial=np.zeros(pairs),
        )


def _lie_apart(statistic: GramSums) -> bool:
    return statistic.apart and len(statistic.cells) > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pass:
    """What threads do, all of them with the same arrays."""

    statistic: GramSums
    arrays: Sequence[Array]
    cells: Codes | None

    def run(self, starts: Iterator[int], n_rows: int) -> Array:
        """Return the sums over the spans taken from `starts`, which threads share."""
        statistic = self.statistic
        chunk = 4 * CHUNK if len(self.arrays) >= MANY or _lie_apart(statistic) else CHUNK
        sums = _Sums.empty(statistic, chunk)
        for start in starts:
            stop = min(start + ROWS_PER_SPAN, n_rows)
            for begin in range(start, stop, chunk):
                end = min(begin + chunk, stop)
                self._hold(begin, end, sums)
                self._add(begin, end, sums)
        last = statistic.width + 1
        pairs = sums.products[np.triu_indices(last)][None]
        if len(sums.first) == 1:
            return laid_out(statistic, sums.products[None, : last + 1, last], pairs)
        return laid_out(statistic, sums.first * 2**statistic.bits, sums.apart if _lie_apart(statistic) else pairs)

    def _hold(self, begin: int, end: int, sums: _Sums) -> None:
        """Turn the rows of one chunk into whole numbers."""
        line, top = 0, 2.0**self.statistic.bits
        for source, values in zip((*self.statistic.sources, self.statistic.response), self.arrays, strict=True):
            chunk = np.asarray(values[begin:end], dtype=np.float64).reshape(end - begin, source.width)
            _hold_source(source, chunk, top, sums.held[line : line + source.width], sums.lengths)
            line += source.width

    def _add(self, begin: int, end: int, sums: _Sums) -> None:
        """Add the products of one chunk."""
        kernels, size = _kernels(), end - begin
        if len(sums.first) == 1:
            kernels.add_products(sums.held, size, sums.products)
            return
        assert self.cells is not None
        code = np.asarray(self.cells(begin, end) if callable(self.cells) else self.cells[begin:end], dtype=np.int64)
        kernels.add_first(code, sums.held, size, sums.first)
        if _lie_apart(self.statistic):
            rows = np.ascontiguousarray(sums.held[: self.statistic.width + 1, :size].T)
            kernels.add_apart(code, rows, sums.partial, sums.apart)
        else:
            kernels.add_products(sums.held, size, sums.products)


def laid_out(statistic: GramSums, first: Array, second: Array) -> Array:
    """Put sums of whole numbers into the order in which they are released.

    Parameters
    ----------
    statistic : GramSums
    first : (n_cells, d + 2) array
        Sums of t, u and the constant, times the constant, ``2**bits``.
    second : (n_cells or 1, (d + 1) (d + 2) / 2) array
        Of the products of all pairs of t and u, by rows of the upper triangle: of each cell where they lie apart.
    """
    d = statistic.width
    i, j = np.triu_indices(d + 1)
    pairs = np.flatnonzero(j < d) if not statistic.known else np.empty(0, dtype=int)
    order = [*pairs, *np.flatnonzero((i < d) & (j == d)), *([len(i) - 1] if statistic.square else [])]
    sizes = first[:0, 0] if statistic.sizes_known else first[:, d + 1]
    sums = first[:, d if statistic.known else 0 : d + 1] if statistic.constant else first[:, :0]
    return np.concatenate([sizes, sums.ravel(), second[:, order].ravel()]).astype(np.int64)


def _hold_source(source: Source, values: Array, top: float, held: Array, lengths: Array) -> None:
    halves = np.array(source.halves, dtype=float)
    if source.ball:
        _kernels().hold_ball(values, halves, top, held, lengths)
    else:
        _kernels().hold_boxes(values, np.array(source.centres, dtype=float), halves, top, held)


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.rows import gram_kernels

    return gram_kernels


__all__ = ["gram_sums", "laid_out", "require_room"]
