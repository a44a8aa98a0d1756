"""Compiled loops over the rows of one chunk; imported at first use."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pymc_dp.families.statistic import GRID


def _jit(**options: Any) -> Any:
    return numba.njit(nogil=True, cache=True, boundscheck=False, **options)


@_jit()
def fold(code, values, low, high, nearest):  # type: ignore[no-untyped-def]
    """Code = code * n_levels + level, with values outside sent to the first or the nearest level."""
    n_levels = high - low + 1
    middle = (high - low) // 2
    for i in range(values.size):
        value = values[i]
        if value != value:
            level = middle if nearest else 0
        elif value < low:
            level = 0
        elif value > high:
            level = n_levels - 1 if nearest else 0
        else:
            level = np.int64(value) - low
        code[i] = code[i] * n_levels + level


@_jit()
def apply_lookup(code, lookup, size):  # type: ignore[no-untyped-def]
    for i in range(size):
        code[i] = lookup[code[i]]


@_jit()
def tally(code, size, counts):  # type: ignore[no-untyped-def]
    for i in range(size):
        counts[i & 3, code[i]] += 1


@_jit()
def grid_step(value, low, high, centre, per_unit):  # type: ignore[no-untyped-def]
    """Grid step of one clamped value; the bounds fall on whole steps, so that no rounding leads beyond them."""
    if value != value:
        value = 0.5 * (low + high)
    value = min(max(value, low), high)
    return np.rint((value - centre) * per_unit)


@_jit(fastmath={"reassoc"})
def total_moments(values, low, high, centre, per_unit, squares):  # type: ignore[no-untyped-def]
    """Sum of grid steps over one chunk; every partial sum is an integer below 2**53, so any order is exact."""
    first = 0.0
    second = 0.0
    if squares:
        for i in range(values.size):
            k = grid_step(np.float64(values[i]), low, high, centre, per_unit)
            first += k
            second += np.rint(k * k * (1.0 / GRID))
    else:
        for i in range(values.size):
            first += grid_step(np.float64(values[i]), low, high, centre, per_unit)
    return first, second


@_jit()
def add_moments(code, values, low, high, centre, per_unit, squares, sums):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        k = grid_step(np.float64(values[i]), low, high, centre, per_unit)
        sums[code[i], 0] += np.int64(k)
        if squares:
            sums[code[i], 1] += np.int64(np.rint(k * k * (1.0 / GRID)))
