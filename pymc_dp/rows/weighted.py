"""Exact sums of weighted rows: what a row adds, in whole numbers, times its share of the largest weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.sums import CHUNK, ENTRIES, LENGTHS, cells_of, row_integers

SHARE_BITS = 20
"""A weight is a whole number of 2^-20 of the largest that counts."""
SHARES = 2**SHARE_BITS
MOST_BITS = 30
"""No weighted row adds 2^30 steps or more where that was not so before: 2^32 rows then fit into 64 bits."""


def finer_bits(magnitude: int) -> int:
    """Return by how many halvings the steps of weighted sums are finer than those of rows that count once.

    Parameters
    ----------
    magnitude : int
        Largest L1 norm of what such a row adds, in steps.

    Examples
    --------
    >>> finer_bits(1), finer_bits(1000), finer_bits(2**31)
    (20, 20, 0)
    """
    return min(SHARE_BITS, max(0, MOST_BITS - magnitude.bit_length()))


def largest_of(statistic: RowStatistic) -> int:
    """Return the largest L1 norm of what a row adds that counts once, in steps."""
    assert not isinstance(statistic, ExposedCounts)
    return statistic.per_row if isinstance(statistic, LevelCounts) else statistic.magnitude


def shares_of(weights: Array, largest: float) -> Array:
    """Return weights as shares of the largest that counts, whole numbers from 0 to `SHARES`, whatever they hold."""
    with np.errstate(all="ignore"):
        shares = np.asarray(weights, dtype=np.float64) / largest * SHARES
    return np.clip(np.nan_to_num(np.rint(shares), nan=0.0, posinf=SHARES), 0, SHARES).astype(np.int64)


def weighted(integers: Array, shares: Array, finer: int) -> Array:
    """Return what weighted rows add, (n_rows, n_integers), in steps that are 2^`finer` times finer, toward zero.

    Parameters
    ----------
    integers : (n_rows, n_integers) int64 array
        What they would add if they counted once, below 2^42.
    shares : (n_rows,) int64 array
        From 0 to `SHARES`.
    finer : int
        From 0 to `SHARE_BITS`.

    Notes
    -----
    **Guarantee.** No entry is larger than 2^`finer` times that of a row which counts once, and none has another sign.
    So what bounds the norm of what one row adds, in L1 or L2, bounds it still, that many times. All of it is
    arithmetic of whole numbers.

    Examples
    --------
    >>> weighted(np.array([[3, -3]]), np.array([SHARES // 2]), 0).tolist()
    [[1, -1]]
    >>> weighted(np.array([[3, -3]]), np.array([SHARES // 2]), 4).tolist()
    [[24, -24]]
    """
    products = integers * shares[:, None]
    return np.asarray(np.sign(products) * (np.abs(products) >> (SHARE_BITS - finer)))


def weighted_sums(
    cells: Cells,
    statistic: RowStatistic,
    values: Array,
    shares: Array,
    levels: Sequence[Array],
) -> Array:
    """Add up weighted rows by cells: the sum of the shares of each cell first, but for counts. Reads private data.

    Parameters
    ----------
    cells, statistic, values, levels
        As for `sum_rows`.
    shares : (n_rows,) int64 array

    Returns
    -------
    (n_cells, n_integers) int64 array
    """
    if len(values) > MOST_ROWS or any(len(held) != len(values) for held in (shares, *levels)):
        raise PrivacyError(LENGTHS)
    if statistic.width != (values.shape[1] if values.ndim > 1 else 1):
        raise PrivacyError(ENTRIES)
    counted = isinstance(statistic, LevelCounts)
    count = statistic.n_levels if isinstance(statistic, LevelCounts) else 1 + len(statistic.labels)
    total = np.zeros((int(cells.lookup.max()) + 1, count), dtype=np.int64)
    finer = finer_bits(largest_of(statistic))
    for start in range(0, len(values), CHUNK):
        here = slice(start, min(start + CHUNK, len(values)))
        own = values[here] if counted else np.asarray(values[here], dtype=np.float64)
        with np.errstate(all="ignore"):
            terms = weighted(row_integers(statistic, own), shares[here], finer)
        if not counted:
            terms = np.column_stack([shares[here], terms])
        np.add.at(total, cells_of(cells, levels, here.start, here.stop), terms)
    return total


__all__ = ["SHARES", "SHARE_BITS", "finer_bits", "largest_of", "shares_of", "weighted", "weighted_sums"]
