"""Compiled sums of rows in whole units; imported at first use.

Every value of a float has one way through: no branch raises, and none takes a number out of its interval.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def add_rows(found, weights, owner, inverse, width, size, total):  # type: ignore[no-untyped-def]
    """Add the whole numbers of rows, each no more than `width` below the row's largest one.

    They are taken less that largest one where `size` is negative, and else held between -size and size. A row that is
    NaN or +∞ somewhere, or -∞ everywhere, adds nothing. Owners lie within the columns of `total`.
    """
    n_points, n_rows = found.shape
    top = np.full(n_rows, -np.inf)
    counts = np.ones(n_rows, dtype=np.bool_)
    for k in range(n_points):
        for i in range(n_rows):
            value = np.rint(found[k, i] * inverse)
            if not value < np.inf:
                counts[i] = False
            if value > top[i]:
                top[i] = value
    for i in range(n_rows):
        if not top[i] > -np.inf:
            counts[i] = False
    for k in range(n_points):
        for i in range(n_rows):
            if counts[i]:
                value = np.rint(found[k, i] * inverse)
                if size < 0.0:
                    value = max(value - top[i], -width)
                else:
                    value = min(max(max(value, top[i] - width), -size), size)
                total[k, owner[i]] += np.int64(value) * weights[i]


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def add_ratios(found, base, weights, inverse, low, high, total):  # type: ignore[no-untyped-def]
    """Add the whole numbers of ``found - base`` within an interval; NaN counts as 0 before it is held there."""
    n_points, n_rows = found.shape
    for k in range(n_points):
        sum_of_rows = np.int64(0)
        for i in range(n_rows):
            value = np.rint((found[k, i] - base[i]) * inverse)
            if value != value:
                value = 0.0
            sum_of_rows += np.int64(min(max(value, low), high)) * weights[i]
        total[k] += sum_of_rows


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})
def _of_block(found, base, inverse, low, high):  # type: ignore[no-untyped-def]
    """Sum of the whole numbers of few rows: all sums of some of them are floats without rounding, in any order.

    No other liberty is taken with floats: NaN is seen, and what is summed lies within the interval.
    """
    total = 0.0
    for i in range(found.size):
        value = (found[i] - base[i]) * inverse
        value = value if value == value else 0.0
        total += np.rint(min(max(value, low), high))
    return total


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def sum_ratios(found, base, inverse, low, high, size):  # type: ignore[no-untyped-def]
    """Return the sum of the whole numbers of ``found - base`` within an interval; NaN counts as in `add_ratios`.

    Several times as fast as `add_ratios`: blocks of `size` rows are summed side by side in floats, which hold the sum
    of so many numbers exactly.
    """
    total = np.int64(0)
    for start in range(0, found.size, size):
        stop = start + size
        total += np.int64(_of_block(found[start:stop], base[start:stop], inverse, low, high))
    return total


__all__ = ["add_ratios", "add_rows", "sum_ratios"]
