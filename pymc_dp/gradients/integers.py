"""Sums of rows' scores and curvatures as integers, where no row can add more than was charged, whatever it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from pymc_dp.errors import PrivacyError
from pymc_dp.gradients.curvature import Levels
from pymc_dp.inspection.rows import Array

Integers = npt.NDArray[np.int64]

SCORE_BITS = 24
"""The largest score has a norm of 2^24 units: rounding takes less than 1e-6 of it off, and 2^32 rows fit."""
FACTOR_BITS = 15
"""The largest column of a factor of a curvature has a norm of 2^15 units, so that the largest curvature has 2^30."""
SCORE_UNITS, FACTOR_UNITS = 2**SCORE_BITS, 2**FACTOR_BITS
CURVATURE_UNITS = FACTOR_UNITS**2
MOST_ROWS = 2**32
"""Rows whose sums fit into 64 bits, and a bit to spare."""
FARTHEST = 2**62
"""Where a sum of more of them ends."""
_ROUNDING = 1 - 1e-8
"""Room for the rounding of a sum of up to 10^8 squares of whole numbers in floats, all of the same sign."""
_MOST_PRODUCTS = 2**33
"""Entries of factors times parameters, of one row: sums of so many products of whole numbers fit into 64 bits."""


def add_scores(scores: Array, total: Integers) -> None:
    """Add rows' scores, in units of the largest norm that is paid for, to a sum.

    Parameters
    ----------
    scores : (n_rows, d) array
        Of norm 1 at most, if nothing went wrong. Anything else may stand there.
    total : (d,) array of int64
        Changed in place.

    Notes
    -----
    **Guarantee.** Every row adds a vector of whole numbers whose L2 norm is at most 2^24: entries are rounded toward
    zero, the norm is checked on the whole numbers, and a row that is larger, or holds NaN or infinity, adds nothing.
    That holds for any contents of `scores`; it is what privacy rests on. Control flow and time may depend on rows, what
    is returned on nothing else.
    """
    _add_scores(np.ascontiguousarray(scores, dtype=np.float64), float(SCORE_UNITS), SCORE_UNITS**2, total)


def add_counts(places: Integers, shares: Array, total: Integers) -> None:
    """Count rows in bins, each by its share, in units of 2^-24.

    Parameters
    ----------
    places : (n_rows,) array of int64
        The bin of each row; a row of no bin that there is adds nothing.
    shares : (n_rows,) array
        From 0 to 1; anything else may stand there.
    total : (n_bins,) array of int64
        Changed in place.

    Notes
    -----
    **Guarantee.** Every row adds a whole number from 0 to 2^24 to one entry, and nothing to any other, whatever
    `places` and `shares` hold.
    """
    _add_counts(
        np.ascontiguousarray(places, dtype=np.int64),
        np.ascontiguousarray(shares, dtype=np.float64),
        float(SCORE_UNITS),
        total,
    )


def add_curvatures(factors: Array, total: Integers) -> None:
    """Add rows' curvatures, sums of v vᵀ over the columns v of their factors, to a sum.

    Parameters
    ----------
    factors : (n_rows, q, d) array
        In units of the square root of the largest Frobenius norm that is paid for.
    total : (d, d) array of int64
        Changed in place; the upper triangle with the diagonal.

    Notes
    -----
    **Guarantee.** Every row adds a positive semidefinite matrix of whole numbers whose Frobenius norm is at most 2^30:
    the factors are rounded, and what they give is a sum of outer products of whole numbers, exactly. Its squared norm
    is Σ (v · v')², of whole numbers again; a row whose norm is larger, or not a number, adds nothing.
    """
    limit = float(CURVATURE_UNITS) ** 2 * _ROUNDING
    _add_curvatures(np.ascontiguousarray(factors, dtype=np.float64), float(FACTOR_UNITS), limit, total)


def add_collapsed(factors: Array, total: Integers, levels: Levels) -> None:
    """Add sums of rows' curvatures to a sum: those over all entries of two slots, and what is on the diagonal.

    Parameters
    ----------
    factors : (n_rows, q, d) array
        As for `add_curvatures`.
    total : (s² + d,) array of int64
        Changed in place: the upper triangle of a matrix over the s slots, by rows, then a number for every parameter.
        Of a slot that is shared the diagonal is there, of any other one it is in the matrix; the rest stays 0.
    levels : Levels

    Notes
    -----
    **Guarantee.** Every row adds whole numbers that are bounded as a vector: the sum of the squares of all of them,
    twice of those off the diagonal of the matrix, is at most 2^60, and a row of which it is more adds nothing. That is
    checked on what is added, and holds whichever parameters a row meets.
    """
    if factors.shape[1] * factors.shape[2] ** 2 > _MOST_PRODUCTS:
        raise PrivacyError("More parameters than sums of a curvature have room for; this is an error of pymc_dp.")
    limit = float(CURVATURE_UNITS) ** 2 * _ROUNDING
    given = np.ascontiguousarray(factors, dtype=np.float64), levels.slots, levels.shared
    count = levels.count
    _add_collapsed(*given, float(FACTOR_UNITS), limit, total[: count**2].reshape(count, count), total[count**2 :])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_scores(scores, units, most, total):  # type: ignore[no-untyped-def]
    n_rows, size = scores.shape
    whole = np.zeros(size, dtype=np.int64)
    for row in range(n_rows):
        norm, kept = np.int64(0), True
        for place in range(size):
            value = scores[row, place] * units
            if not abs(value) <= units:  # NaN too
                kept = False
                break
            entry = np.int64(value)  # toward zero
            whole[place] = entry
            norm += entry * entry
            if norm > most:
                kept = False
                break
        if kept:
            for place in range(size):
                total[place] += whole[place]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_counts(places, shares, units, total):  # type: ignore[no-untyped-def]
    for row in range(len(places)):
        place, value = places[row], shares[row] * units
        if 0 <= place < len(total) and 0.0 <= value <= units:  # not NaN
            total[place] += np.int64(value)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_curvatures(factors, units, most, total):  # type: ignore[no-untyped-def]
    n_rows, count, size = factors.shape
    whole = np.zeros((count, size), dtype=np.int64)
    places = np.zeros((count, size), dtype=np.int64)
    used = np.zeros(count, dtype=np.int64)
    for row in range(n_rows):
        kept = True
        for column in range(count):
            used[column] = 0
            for place in range(size):
                value = factors[row, column, place] * units
                if not abs(value) <= units:
                    kept = False
                    break
                entry = np.int64(value)
                whole[column, place] = entry
                if entry != 0:
                    places[column, used[column]] = place
                    used[column] += 1
            if not kept:
                break
        if not kept:
            continue
        norm = 0.0
        for one in range(count):
            for other in range(count):
                product = np.int64(0)
                for at in range(used[one]):
                    place = places[one, at]
                    product += whole[one, place] * whole[other, place]
                norm += np.float64(product) * np.float64(product)
        if not norm <= most:
            continue
        for column in range(count):
            for first in range(used[column]):
                here = places[column, first]
                value = whole[column, here]
                for second in range(first, used[column]):
                    there = places[column, second]
                    total[here, there] += value * whole[column, there]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_collapsed(factors, slots, shared, units, most, pairs, diagonal):  # type: ignore[no-untyped-def]
    n_rows, count, size = factors.shape
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
                value = factors[row, column, place]
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


def joined(parts: Sequence[Integers]) -> Integers:
    """Return the sum of some sums, each of up to `MOST_ROWS` rows, with every entry held within ±2^62.

    Notes
    -----
    **Guarantee.** The sum is exact, in two halves of an entry, and only then are entries held: that brings two results
    no farther apart. So no number of rows, which may be private, makes a row count for more, or raises an error.
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


def symmetric(upper: Integers | Array) -> Array:
    """Return a symmetric matrix from its upper triangle."""
    return np.asarray(upper + np.triu(upper, 1).T)


__all__ = [
    "CURVATURE_UNITS",
    "MOST_ROWS",
    "SCORE_UNITS",
    "add_collapsed",
    "add_counts",
    "add_curvatures",
    "add_scores",
    "joined",
    "symmetric",
]
