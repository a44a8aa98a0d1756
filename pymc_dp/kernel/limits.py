"""Limits that hold on the whole numbers that units add: a span, a norm, an interval, a count.

Whatever floats a row map returned, what is added here obeys its limit exactly: each decision is taken on the whole
numbers that are added, and sums are exact in 64 bits. A unit is the rows ``first[u]`` to ``first[u + 1]``, and counts
``times[u]`` times. All of it is compiled without fast arithmetic, apart from row maps, so that NaN is seen.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

UNITS = 2**24
"""A span, a norm, or the width of an interval is so many units."""
MOST_ENDS = 2**30
"""Units of the far end of an interval."""
FAR = 2.0**45
"""A number of one row counts in whole units up to this."""
MOST_ROWS = 2**32
"""Rows, or units, of a table: sums of as many numbers up to 2^30 stay below 2^62."""
MOST_OF_A_PERSON = 2**16
"""Rows of a person: their sums of numbers up to `FAR` stay within 2^61, and differences of these within 2^62."""
FLAGS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": False}


@numba.njit(**FLAGS)
def add_spans(found, first, times, cells, inverse, width, total):  # type: ignore[no-untyped-def]
    """Add scores of units, (n_rows, K), to (n_cells, K): each a vector of range at most `width`, its largest entry 0.

    Numbers are taken less the largest of their row, times `inverse`, and rounded; less than -FAR counts as -FAR. A unit
    with NaN or +inf, or a row of -inf alone, adds nothing; nor does a unit of no cell that there is.

    Guarantee: unit u adds times[u] v to its cell, with -width <= v_k <= 0 for all k.
    """
    candidates = found.shape[1]
    whole = np.zeros(candidates, dtype=np.int64)
    for unit in range(first.size - 1):
        cell = cells[unit]
        good = 0 <= cell < total.shape[0]
        whole[:] = 0
        for row in range(first[unit], first[unit + 1]):
            highest = -np.inf
            for k in range(candidates):
                highest = max(highest, found[row, k])
            for k in range(candidates):
                value = np.rint((found[row, k] - highest) * inverse)
                if not value <= 0.0:
                    good = False
                    break
                whole[k] += np.int64(max(value, -FAR))
        if good:
            top = whole.max()
            for k in range(candidates):
                total[cell, k] += max(whole[k] - top, -width) * times[unit]


@numba.njit(**FLAGS)
def hold_norm(vector, share, order, units, whole):  # type: ignore[no-untyped-def]
    """Write a vector times `share`, toward zero; return whether its whole numbers have a norm of `units` at most."""
    most, used = np.int64(units) if order == 1 else np.int64(units) * np.int64(units), np.int64(0)
    for j in range(vector.size):
        value = vector[j] * share
        if not abs(value) <= units:
            return False
        entry = np.int64(value)
        whole[j] = entry
        used += abs(entry) if order == 1 else entry * entry
        if used > most:
            return False
    return True


@numba.njit(**FLAGS)
def hold_shortened(vector, order, units, whole):  # type: ignore[no-untyped-def]
    """Do what `hold_norm` does; a vector that is too long is shortened in floats, and looked at again."""
    if hold_norm(vector, float(units), order, units, whole):
        return True
    norm = np.abs(vector).sum() if order == 1 else np.sqrt((vector * vector).sum())
    return norm > 1.0 and hold_norm(vector, units * (1 - 1e-9) / norm, order, units, whole)


@numba.njit(**FLAGS)
def add_norms(found, first, times, order, units, total):  # type: ignore[no-untyped-def]
    """Add vectors of units, (n_rows, d), in multiples of their norm bound: of L1 or L2 norm <= `units` (order 1, 2).

    A longer vector is shortened in floats, and rounded toward zero; if its whole numbers are still longer, or it is not
    finite, it adds nothing.
    """
    size = found.shape[1]
    vector, whole = np.zeros(size), np.zeros(size, dtype=np.int64)
    for unit in range(first.size - 1):
        begin, end = first[unit], first[unit + 1]
        own = found[begin] if end - begin == 1 else vector
        if end - begin != 1:
            vector[:] = 0.0
            for row in range(begin, end):
                for j in range(size):
                    vector[j] += found[row, j]
        if hold_shortened(own, order, units, whole):
            for j in range(size):
                total[j] += whole[j] * times[unit]


@numba.njit(**FLAGS)
def add_interval(found, first, times, inverse, low, high, total):  # type: ignore[no-untyped-def]
    """Add numbers of units, (n_rows, K), each held within [low, high] whole units; NaN of a row counts as 0."""
    for unit in range(first.size - 1):
        for k in range(found.shape[1]):
            whole = np.int64(0)
            for row in range(first[unit], first[unit + 1]):
                value = np.rint(found[row, k] * inverse)
                if value == value:
                    whole += np.int64(min(max(value, -FAR), FAR))
            total[k] += min(max(whole, low), high) * times[unit]


@numba.njit(**FLAGS)
def hold_whole(found, low, high, whole):  # type: ignore[no-untyped-def]
    """Write whole numbers held within [low_k, high_k], (n_rows, K); NaN as what is nearest to 0 there."""
    for row in range(found.shape[0]):
        for k in range(found.shape[1]):
            value = np.rint(found[row, k])
            least, most = low[k], high[k]
            if value >= most:
                whole[row, k] = most
            elif value <= least:
                whole[row, k] = least
            elif value == value:
                whole[row, k] = np.int64(value)
            else:
                whole[row, k] = min(max(np.int64(0), least), most)


@numba.njit(**FLAGS)
def hold_counts(found, most, whole):  # type: ignore[no-untyped-def]
    """Write counts >= 0 whose sum is `most` at most, (n_rows, K): each from 0 to what is left, in order."""
    for row in range(found.shape[0]):
        left = np.int64(most)
        for k in range(found.shape[1]):
            value = np.rint(found[row, k])
            taken = left if value >= left else np.int64(value) if value > 0.0 else np.int64(0)
            whole[row, k] = taken
            left -= taken


@numba.njit(**FLAGS)
def hold_places(found, levels, whole):  # type: ignore[no-untyped-def]
    """Write 1 at the place that a row's number rounds to, (n_rows, levels), and 0 elsewhere; no such place: all 0."""
    whole[:] = 0
    for row in range(found.shape[0]):
        value = np.rint(found[row, 0])
        if 0.0 <= value < levels:
            whole[row, np.int64(value)] = 1


@numba.njit(**FLAGS)
def hold_ball(found, units, whole):  # type: ignore[no-untyped-def]
    """Write vectors of L2 norm <= `units`, (n_rows, d), of floats in units of it: as `add_norms` does, row by row."""
    for row in range(found.shape[0]):
        if not hold_shortened(found[row], 2, units, whole[row]):
            whole[row] = 0


@numba.njit(**FLAGS)
def hold_factor(found, row, units, most, whole, places, used):  # type: ignore[no-untyped-def]
    """Write a row's vectors v, of (n_rows, columns, d) in `units`, toward zero, and where they are not 0.

    Return whether the row may count: all numbers are finite and within a unit, and Σ v vᵀ has a squared Frobenius norm
    of `most` at most. That is Σ (v · v')² of whole numbers, in floats: `most` has room for the rounding of a sum of
    terms that are all >= 0.
    """
    columns, size = whole.shape
    for c in range(columns):
        used[c] = 0
        for j in range(size):
            value = found[row, c, j] * units
            if not abs(value) <= units:
                return False
            entry = np.int64(value)
            whole[c, j] = entry
            if entry != 0:
                places[c, used[c]] = j
                used[c] += 1
    norm = 0.0
    for one in range(columns):
        for other in range(columns):
            product = np.int64(0)
            for at in range(used[one]):
                j = places[one, at]
                product += whole[one, j] * whole[other, j]
            norm += np.float64(product) * np.float64(product)
    return norm <= most


@numba.njit(**FLAGS)
def add_held(whole, first, times, cells, shares, coarser, total):  # type: ignore[no-untyped-def]
    """Add whole numbers of rows, (n_rows, size), to their cells, (n_cells, size), each times its unit's `times`.

    With `shares` (n_rows,) of weights, each first times its share, and shifted by `coarser` bits, toward zero.
    """
    for unit in range(first.size - 1):
        for row in range(first[unit], first[unit + 1]):
            cell = cells[row]
            if not 0 <= cell < total.shape[0]:
                continue
            for k in range(whole.shape[1]):
                value = whole[row, k]
                if shares.size and value != 0:
                    product = abs(value) * shares[row] >> coarser
                    value = product if value > 0 else -product
                total[cell, k] += value * times[unit]
