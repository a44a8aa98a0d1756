"""Compiled loops that read whole numbers from columns of one chunk of rows, as these are stored; imported at first use.

Each clamps before anything else, row by row, and takes no decision that outlives a row. What is no cell adds nothing.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pymc_dp.kernel.limits import FLAGS

GRID = 2**30
BLOCK = 16_384
"""Rows whose sum of whole numbers (each below 2^33) is exact in float64."""


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
    """Replace codes of levels by cells; -1 where there is none."""
    for i in range(size):
        place = code[i]
        code[i] = lookup[place] if 0 <= place < lookup.size else -1


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
    """Count codes that there are, neighbouring rows in different stripes."""
    for i in range(size):
        place = code[i]
        if 0 <= place < counts.shape[1]:
            counts[i & 3, place] += 1


@_jit(fastmath=False)  # explicit: a callee otherwise inherits the flags of the first caller compiled
def grid_step(value, low, high, centre, per_unit, least, most):  # type: ignore[no-untyped-def]
    """Whole number of one clamped value, the middle for one that is none, and held within [least, most] as such."""
    if value != value:
        value = 0.5 * (low + high)
    value = min(max(value, low), high)
    return min(max(np.rint((value - centre) * per_unit), least), most)


@_jit(fastmath={"reassoc"})
def _block_moments(values, low, high, centre, per_unit, least, most, squares):  # type: ignore[no-untyped-def]
    """Sum of whole numbers over one block; every partial sum is whole and below 2**53, so that any order is exact."""
    first = 0.0
    second = 0.0
    if squares:
        for i in range(values.size):
            k = grid_step(np.float64(values[i]), low, high, centre, per_unit, least, most)
            first += k
            second += np.rint(k * k * (1.0 / GRID))
    else:
        for i in range(values.size):
            first += grid_step(np.float64(values[i]), low, high, centre, per_unit, least, most)
    return first, second


@_jit()
def total_moments(values, low, high, centre, per_unit, least, most, squares, sums):  # type: ignore[no-untyped-def]
    """Add the whole numbers of all values, and their squares, to the first row of `sums`, block by block."""
    for start in range(0, values.size, BLOCK):
        block = values[start : start + BLOCK]
        one, two = _block_moments(block, low, high, centre, per_unit, least, most, squares)
        sums[0, 0] += np.int64(one)
        sums[0, 1] += np.int64(two)


@_jit()
def add_moments(code, values, low, high, centre, per_unit, least, most, squares, sums):  # type: ignore[no-untyped-def]
    """Add the whole numbers of one chunk, and their squares, to the sums of each row's cell."""
    for i in range(values.size):
        place = code[i]
        if not 0 <= place < sums.shape[0]:
            continue
        k = grid_step(np.float64(values[i]), low, high, centre, per_unit, least, most)
        sums[place, 0] += np.int64(k)
        if squares:
            sums[place, 1] += np.int64(np.rint(k * k * (1.0 / GRID)))


@_jit(fastmath=False)
def _transformed(kind, argument, x):  # type: ignore[no-untyped-def]
    """Return one function of a clamped value, by the codes of `readings.FUNCTIONS`."""
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


@numba.njit(**FLAGS)
def read_functions(values, low, high, kinds, arguments, columns, centres, per_units, found):  # type: ignore[no-untyped-def]
    """Write (f(x) - centre) in whole units, (n_rows, K), x a value clamped to its bounds, the middle for NaN."""
    for i in range(values.shape[0]):
        for j in range(kinds.size):
            x = np.float64(values[i, columns[j]])
            x = 0.5 * (low + high) if x != x else min(max(x, low), high)
            found[i, j] = (_transformed(kinds[j], arguments[j], x) - centres[j]) * per_units[j]


@numba.njit(**FLAGS)
def read_trials(successes, totals, low, high, found):  # type: ignore[no-untyped-def]
    """Write failures and successes, (n_rows, 2): totals held within their bounds, successes from 0 to these."""
    for i in range(successes.size):
        total = np.float64(totals[i])
        total = 0.5 * (low + high) if total != total else min(max(total, low), high)
        own = np.float64(successes[i])
        held = min(max(own, 0.0), total) if own == own else 0.0
        found[i, 0], found[i, 1] = total - held, held


@numba.njit(**FLAGS)
def add_whole(code, whole, sums):  # type: ignore[no-untyped-def]
    """Add whole numbers of rows, (n_rows, size), to the sums of their cells, (n_cells, size)."""
    for i in range(whole.shape[0]):
        place = code[i]
        if 0 <= place < sums.shape[0]:
            for k in range(whole.shape[1]):
                sums[place, k] += whole[i, k]


@numba.njit(**FLAGS)
def add_shares(code, whole, shares, coarser, sums):  # type: ignore[no-untyped-def]
    """Add whole numbers times the shares of their rows, shifted by `coarser` bits, toward zero."""
    for i in range(whole.shape[0]):
        place = code[i]
        if 0 <= place < sums.shape[0]:
            for k in range(whole.shape[1]):
                value = whole[i, k]
                product = abs(value) * shares[i] >> coarser
                sums[place, k] += product if value > 0 else -product
