"""Limits that hold on the whole numbers that a unit adds to a sum of a walk, beside those of `limits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.limits import FLAGS, hold_factor

Array = npt.NDArray[Any]

FARTHEST = 2**62
"""Where a sum of more rows than fit into 64 bits ends."""


@numba.njit(**FLAGS)
def add_shares(found, units, total):  # type: ignore[no-untyped-def]
    """Count rows in bins, each by its share: (n_rows, 2) of a bin and a share from 0 to 1, in `units`.

    Guarantee: a row adds a whole number from 0 to `units` to one entry, and nothing to any other. A row of no bin that
    there is, or of another share, adds nothing.
    """
    for row in range(found.shape[0]):
        place, value = found[row, 0], found[row, 1] * units
        if 0.0 <= place < total.shape[0] and 0.0 <= value <= units:  # not NaN
            total[np.int64(place)] += np.int64(value)


@numba.njit(**FLAGS)
def add_places(found, total):  # type: ignore[no-untyped-def]
    """Count each number of a row, (n_rows, width), at the place that it is; one that is no place is not counted.

    Guarantee: a row adds `width` to all entries together at most, and nothing below 0 to any.
    """
    for row in range(found.shape[0]):
        for j in range(found.shape[1]):
            place = found[row, j]
            if 0.0 <= place < total.shape[0]:  # not NaN
                total[np.int64(place)] += 1


@numba.njit(**FLAGS)
def add_products(found, units, most, total):  # type: ignore[no-untyped-def]
    """Add Σ v vᵀ over the vectors of each row, (n_rows, columns, d), to a matrix: its upper triangle.

    Guarantee: a row adds a positive semidefinite matrix of whole numbers, of a squared Frobenius norm of `most` at most
    (`hold_factor`), or nothing.
    """
    _, columns, size = found.shape
    whole, places = np.zeros((columns, size), dtype=np.int64), np.zeros((columns, size), dtype=np.int64)
    used = np.zeros(columns, dtype=np.int64)
    for row in range(found.shape[0]):
        if not hold_factor(found, row, units, most, whole, places, used):
            continue
        for c in range(columns):
            for first in range(used[c]):
                here = places[c, first]
                value = whole[c, here]
                for second in range(first, used[c]):
                    there = places[c, second]
                    total[here, there] += value * whole[c, there]


@numba.njit(**FLAGS)
def add_collapsed(found, slots, shared, units, most, pairs, diagonal):  # type: ignore[no-untyped-def]
    """Add sums of Σ v vᵀ over the vectors of each row, (n_rows, columns, d): over all entries of two slots.

    Of a slot that is shared its entries of the diagonal are added to `diagonal`, (d,), of any other one their sum is in
    `pairs`, (s, s), the upper triangle.

    Guarantee: the squares of all whole numbers that a row adds, twice of those off the diagonal of `pairs`, are `most`
    at most together, or the row adds nothing. It is checked on what is added, whatever entries a row has.
    """
    n_rows, count, size = found.shape
    sums = np.zeros((count, len(shared)), dtype=np.int64)
    squares, seen = np.zeros(size, dtype=np.int64), np.zeros(len(shared), dtype=np.bool_)
    places, used = np.zeros(size, dtype=np.int64), np.zeros(len(shared), dtype=np.int64)
    products = np.zeros((len(shared), len(shared)), dtype=np.int64)
    met = slots_met = 0
    for row in range(n_rows):
        for at in range(met):
            squares[places[at]] = 0
        for at in range(slots_met):
            seen[used[at]] = False
            for column in range(count):
                sums[column, used[at]] = 0
        met = slots_met = 0
        kept = True
        for column in range(count):
            for place in range(size):
                value = found[row, column, place]
                if value == 0.0:
                    continue
                value *= units
                if not abs(value) <= units:  # NaN too
                    kept = False
                    break
                entry = np.int64(value)
                if entry != 0:
                    slot = slots[place]
                    if squares[place] == 0:
                        places[met] = place
                        met += 1
                    if not seen[slot]:
                        seen[slot] = True
                        used[slots_met] = slot
                        slots_met += 1
                    squares[place] += entry * entry
                    sums[column, slot] += entry
            if not kept:
                break
        if not kept:
            continue
        norm = 0.0
        for first in range(slots_met):
            here = used[first]
            for second in range(first, slots_met):
                there = used[second]
                product = np.int64(0)
                for column in range(count):
                    product += sums[column, here] * sums[column, there]
                products[first, second] = product
                if first != second:
                    norm += 2 * np.float64(product) * np.float64(product)
                elif not shared[here]:
                    norm += np.float64(product) * np.float64(product)
        for at in range(met):
            if shared[slots[places[at]]]:
                norm += np.float64(squares[places[at]]) * np.float64(squares[places[at]])
        if not norm <= most:
            continue
        for first in range(slots_met):
            for second in range(first, slots_met):
                here, there = min(used[first], used[second]), max(used[first], used[second])
                if here != there or not shared[here]:
                    pairs[here, there] += products[first, second]
        for at in range(met):
            if shared[slots[places[at]]]:
                diagonal[places[at]] += squares[places[at]]


def joined(parts: Sequence[Array]) -> Array:
    """Return the sum of some sums, each of up to `limits.MOST_ROWS` rows, with every entry held within ±2^62.

    Guarantee: the sum is exact, in two halves of an entry, and only then are entries held, which brings two results no
    farther apart. So no number of rows, which may be private, makes a row count for more, or raises an error.
    """
    low, high = np.zeros_like(parts[0]), np.zeros_like(parts[0])
    for part in parts:
        low += part & (2**32 - 1)
        high += part >> 32
        high += low >> 32
        low &= 2**32 - 1
    most = FARTHEST >> 32
    inside = (np.clip(high, -most, most - 1) << 32) + low
    return np.where(high >= most, FARTHEST, np.where(high < -most, -FARTHEST, inside))
