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


__all__ = ["add_rows"]
