"""Sums of rows' scores and curvatures as integers, where no row can add more than was charged, whatever it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

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
_ROUNDING = 1 - 1e-12
"""Room for the rounding of a sum of squares of whole numbers in floats, all of the same sign."""


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


def symmetric(upper: Integers) -> Integers:
    """Return a symmetric matrix from its upper triangle."""
    return upper + np.triu(upper, 1).T


__all__ = [
    "CURVATURE_UNITS",
    "MOST_ROWS",
    "SCORE_UNITS",
    "add_curvatures",
    "add_scores",
    "joined",
    "symmetric",
]
