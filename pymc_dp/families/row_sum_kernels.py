"""Compiled loops over the rows of one chunk; imported at first use."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pymc_dp.families.statistic import GRID

BLOCK = 16_384
"""Rows whose sum of grid steps (each below 2**33) is exact in float64."""


def _jit(**options: Any) -> Any:
    return numba.njit(nogil=True, cache=True, boundscheck=False, **options)


@_jit()
def fold(code, values, low, high, nearest, first):  # type: ignore[no-untyped-def]
    """Code = code * n_levels + level, with values outside sent to the first or the nearest level.

    Written without branches on values, so that it compiles to vector instructions.
    """
    n_levels = high - low + 1
    missing = (high - low) // 2 if nearest else 0
    above = high - low if nearest else 0
    for i in range(values.size):
        value = values[i]
        level = np.int64(value) - low
        level = 0 if value < low else level
        level = above if value > high else level
        level = missing if value != value else level
        code[i] = level if first else code[i] * n_levels + level


@_jit()
def apply_lookup(code, lookup, size):  # type: ignore[no-untyped-def]
    """Replace codes of levels by cells."""
    for i in range(size):
        code[i] = lookup[code[i]]


@_jit()
def find_bins(values, edges, missing, places):  # type: ignore[no-untyped-def]
    """Number of edges below each value, by halving: as many steps for every value, and no branch on it."""
    first = 1
    while 2 * first <= edges.size:
        first *= 2
    for i in range(values.size):
        value = values[i]
        place = 0
        step = first
        while step > 0:
            ahead = min(place + step, edges.size)
            place = ahead if edges[ahead - 1] < value else place
            step //= 2
        places[i] = missing if value != value else place


@_jit()
def tally(code, size, counts):  # type: ignore[no-untyped-def]
    """Count codes, neighbouring rows in different stripes."""
    for i in range(size):
        counts[i & 3, code[i]] += 1


@_jit(fastmath=False)
def add_trials(code, values, trials, whole, counts):  # type: ignore[no-untyped-def]
    """Add the vectors of counts of one chunk to those of each row's cell: whatever a row holds, `trials` at most.

    Every count takes no more than what those before it have left; where a row's sum is the `whole`, the last one takes
    the rest.
    """
    last = values.shape[1] - 1
    for i in range(values.shape[0]):
        left = np.float64(trials)
        for j in range(last + (not whole)):
            value = np.float64(values[i, j])
            taken = np.rint(min(max(value, 0.0), left)) if value == value else 0.0
            counts[code[i], j] += np.int64(taken)
            left -= taken
        if whole:
            counts[code[i], last] += np.int64(left)


@_jit(fastmath=False)  # explicit: a callee otherwise inherits the flags of the first caller compiled
def grid_step(value, low, high, centre, per_unit):  # type: ignore[no-untyped-def]
    """Grid step of one clamped value; the bounds fall on whole steps, so that no rounding leads beyond them."""
    if value != value:
        value = 0.5 * (low + high)
    value = min(max(value, low), high)
    return np.rint((value - centre) * per_unit)


@_jit(fastmath={"reassoc"})
def _block_moments(values, low, high, centre, per_unit, squares):  # type: ignore[no-untyped-def]
    """Sum of grid steps over one block; every partial sum is an integer below 2**53, so any order is exact."""
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
def total_moments(values, low, high, centre, per_unit, squares):  # type: ignore[no-untyped-def]
    """Sum of grid steps over all values, block by block."""
    first = np.int64(0)
    second = np.int64(0)
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        one, two = _block_moments(block, low, high, centre, per_unit, squares)
        first += np.int64(one)
        second += np.int64(two)
    return first, second


@_jit()
def add_moments(code, values, low, high, centre, per_unit, squares, sums):  # type: ignore[no-untyped-def]
    """Add the grid steps of one chunk to the sums of each row's cell."""
    for i in range(values.size):
        k = grid_step(np.float64(values[i]), low, high, centre, per_unit)
        sums[code[i], 0] += np.int64(k)
        if squares:
            sums[code[i], 1] += np.int64(np.rint(k * k * (1.0 / GRID)))


@_jit(fastmath=False)
def _transformed(kind, argument, x):  # type: ignore[no-untyped-def]
    """Return one function of a clamped value, by the codes of ``features.TRANSFORMS``."""
    if kind == 1:
        return np.log(x)
    if kind == 2:
        return np.log1p(-x)
    if kind == 3:
        return 1.0 / x
    if kind == 4:
        return x**argument
    if kind == 5:
        return abs(x - argument)
    if kind == 6:
        return np.cos(x)
    if kind == 7:
        return np.sin(x)
    if kind == 8:
        return (x - argument) ** 2
    if kind == 9:
        return (np.log(x) - argument) ** 2
    return x


@_jit(fastmath=False)
def _clamped(value, low, high):  # type: ignore[no-untyped-def]
    """Return a value within its bounds; the middle for one that is none."""
    if value != value:
        return 0.5 * (low + high)
    return min(max(value, low), high)


@_jit(fastmath=False)
def add_features(code, values, low, high, kinds, arguments, columns, centres, per_units, reaches, sums):  # type: ignore[no-untyped-def]
    """Add the integers of one chunk of rows to the sums of each row's cell.

    A second column of at least 0 makes a product of two entries about the middle of the bounds, computed as the centre
    of each entry is, and no further from it than the bounds: products and entries are then of the same numbers.
    """
    half = 0.5 * (high - low)
    middle = low + half
    for i in range(values.shape[0]):
        for j in range(kinds.size):
            x = _clamped(np.float64(values[i, columns[j, 0]]), low, high)
            if columns[j, 1] >= 0:
                y = _clamped(np.float64(values[i, columns[j, 1]]), low, high)
                found = min(max(x - middle, -half), half) * min(max(y - middle, -half), half)
            else:
                found = _transformed(kinds[j], arguments[j], x)
            k = np.rint((found - centres[j]) * per_units[j])
            k = min(max(k, -reaches[j]), reaches[j])
            sums[code[i], j] += np.int64(k if k == k else 0.0)
