"""Compiled sums of rows in whole units; imported at first use.

Every value of a float has one way through: no branch raises, and none takes a number out of its interval.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def add_rows(found, weights, owner, inverse, width, total):  # type: ignore[no-untyped-def]
    """Add the whole numbers of rows, each less the row's largest one and not below -width.

    A row that is NaN or +∞ somewhere, or -∞ everywhere, adds nothing.
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
                below = np.rint(found[k, i] * inverse) - top[i]
                total[k, owner[i]] += np.int64(max(below, -width)) * weights[i]


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def add_ratios(found, base, weights, inverse, low, high, total):  # type: ignore[no-untyped-def]
    """Add the whole numbers of ``found - base`` within an interval about 0; NaN counts as 0."""
    n_points, n_rows = found.shape
    for k in range(n_points):
        sum_of_rows = np.int64(0)
        for i in range(n_rows):
            value = np.rint((found[k, i] - base[i]) * inverse)
            if value != value:
                value = 0.0
            sum_of_rows += np.int64(min(max(value, low), high)) * weights[i]
        total[k] += sum_of_rows


__all__ = ["add_ratios", "add_rows"]
