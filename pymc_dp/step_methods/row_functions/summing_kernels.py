"""Compiled sums of rows: shortened to a norm, rounded to whole numbers, held to what was charged; or in whole units.

Rows come as blocks: factors (n_rows,) and vectors (n_rows, n) by turns, each of consecutive entries; what a row has
there is factor times vector. See `clipping.Clip` for what is guaranteed of the numbers written here.

Compiled sums of rows in whole units; imported at first use.

Every value of a float has one way through: no branch raises, and none takes a number out of its interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

# No flag here lets the compiler assume that there is no NaN or infinity.
FLAGS = {"contract", "reassoc"}
SOME = 16
"""Rows that are written at a time: few enough to stay in the fastest cache."""
AT_ONCE = 4
"""Written rows that are added at once: what they are added to is read and written once for all of them."""


@numba.njit(fastmath=FLAGS, error_model="numpy")
def _add_squares(factors: Any, vectors: Any, squares: Any) -> None:
    """Add the squared norm of factor times vector, of every row."""
    for i in range(squares.size):
        total = 0.0
        for j in range(vectors.shape[1]):
            value = np.float64(vectors[i, j])  # squares of float32 would be rounded, and underflow, as float32
            total += value * value
        if total > 1e-200 and total < 1e300:
            norm = np.sqrt(total)
        else:  # squares that over- or underflow must not hide a vector that a factor makes large again
            norm = _careful_norm(vectors[i])
        product = abs(factors[i]) * norm
        squares[i] += product * product


@numba.njit(error_model="numpy")
def _careful_norm(vector: Any) -> float:
    largest = 0.0
    for value in vector:
        if not np.isfinite(value):
            return np.nan
        largest = max(largest, abs(value))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for value in vector:
        total += (value / largest) ** 2
    return largest * np.sqrt(total)


def _all_squares(blocks: Any, squares: Any) -> None:
    raise NotImplementedError


@overload(_all_squares, strict=False)
def _all_squares_of(blocks: Any, squares: Any) -> Callable[..., Any]:
    if len(blocks) == 0:
        return lambda blocks, squares: None

    def add(blocks, squares):  # type: ignore[no-untyped-def]
        _add_squares(blocks[0], blocks[1], squares)
        _all_squares(blocks[2:], squares)

    return add


@numba.njit(error_model="numpy", inline="always")
def squared_norms(blocks: Any, squares: Any) -> None:
    """Write the squared norm of every row: not finite where it is too large for floats, or an entry is not finite."""
    for i in range(squares.size):
        squares[i] = 0.0
    _all_squares(blocks, squares)


@numba.njit(error_model="numpy", inline="always")
def weigh(squares: Any, clip: Any) -> None:
    """Turn squared norms into what rows are multiplied by: at most 1, and NaN where the norm is not finite."""
    for i in range(squares.size):
        norm = np.sqrt(squares[i])
        if not np.isfinite(norm):
            squares[i] = np.nan
        elif norm <= clip.bound:
            squares[i] = 1.0
        else:
            squares[i] = clip.bound / norm


@numba.njit(fastmath=FLAGS, error_model="numpy")
def _write(factors: Any, vectors: Any, weights: Any, start: int, inverse: float, written: Any, squares: Any) -> None:
    for i in range(written.shape[0]):
        factor = weights[i] * factors[i] * inverse
        part = written[i][start : start + vectors.shape[1]]
        total = 0.0
        for j in range(part.size):
            whole = np.rint(factor * vectors[i, j])
            part[j] = whole
            total += whole * whole
        squares[i] += total


def _write_all(blocks: Any, weights: Any, begin: Any, starts: Any, inverse: Any, written: Any, squares: Any) -> None:
    raise NotImplementedError


@overload(_write_all, strict=False)
def _write_all_of(
    blocks: Any, weights: Any, begin: Any, starts: Any, inverse: Any, written: Any, squares: Any
) -> Callable[..., Any]:
    if len(blocks) == 0:
        return lambda blocks, weights, begin, starts, inverse, written, squares: None

    def write(blocks, weights, begin, starts, inverse, written, squares):  # type: ignore[no-untyped-def]
        _write(blocks[0][begin:], blocks[1][begin:], weights, starts[0], inverse, written, squares)
        _write_all(blocks[2:], weights, begin, starts[1:], inverse, written, squares)

    return write


@numba.njit(error_model="numpy", inline="always")
def write_held(blocks: Any, weights: Any, begin: int, starts: Any, clip: Any, written: Any) -> int:
    """Write the whole numbers that some rows from `begin` on add to a sum; return how many rows are written.

    A row whose whole numbers are not within the norm, or not finite, is written as zeros.

    Parameters
    ----------
    blocks : tuple of arrays
    weights : (n_rows,) array
        Of `weigh`.
    begin : int
    starts : array of int
        First entry of each block.
    clip : Clip
    written : (n_some, n_entries) array
        Written to; 0 where no block has entries.
    """
    count = min(written.shape[0], weights.size - begin)
    squares = np.zeros(count)
    _write_all(blocks, weights[begin:], begin, starts, clip.inverse, written[:count], squares)
    for i in range(count):
        if not squares[i] <= clip.most:
            written[i] = 0.0
    return count


@numba.njit(error_model="numpy")
def add_whole(written: Any, count: int, total: Any) -> None:
    """Add the first `count` rows of whole numbers, whose sum is the same in any order."""
    first = count - count % AT_ONCE
    for i in range(0, first, AT_ONCE):
        a, b, c, d = written[i], written[i + 1], written[i + 2], written[i + 3]
        for j in range(total.size):
            total[j] += (a[j] + b[j]) + (c[j] + d[j])
    for i in range(first, count):
        for j in range(total.size):
            total[j] += written[i, j]


__all__ = [
    "AT_ONCE",
    "FLAGS",
    "SOME",
    "add_whole",
    "squared_norms",
    "weigh",
    "write_held",
]
