"""Compiled loops over the rows of one chunk of a regression; imported at first use.

A chunk is held as whole numbers in float64, one line per column, so that products run along lines that lie together.
"""

from __future__ import annotations

import numpy as np

from pymc_dp.kernel.gram import FARTHEST
from pymc_dp.kernel.reading_loops import _jit


@_jit(fastmath=False)
def hold_boxes(values, centres, halves, top, held):  # type: ignore[no-untyped-def]
    """Lines of `held` = ``rint(top t)`` for one array, t clamped to [-1, 1]; 0 for NaN.

    Bounds lie at t = -1 and 1 but for rounding, so that they fall on whole numbers; the clamp keeps whatever the
    arithmetic does within.
    """
    for j in range(centres.size):
        centre, per_unit = centres[j], top / halves[j]
        for i in range(values.shape[0]):
            k = np.rint((values[i, j] - centre) * per_unit)
            k = k if k == k else 0.0
            held[j, i] = min(max(k, -top), top)


@_jit(fastmath=False)
def hold_ball(values, halves, top, held, lengths):  # type: ignore[no-untyped-def]
    """Lines of `held` = ``trunc(top t)`` for one array, rows t longer than 1 scaled down; 0 for NaN.

    The squares of a row's whole numbers add up to ``top**2`` at most; a row for which they do not is 0. In reals they
    do. The arithmetic (sum of w squares, root, quotient, product) changes that by a factor of less than ``1 + (w + 8)
    2**-52``; with `top` of at most 2**20 that is less than 1, the squares are whole, for all w < 4000; above, `top` is
    lowered by as much.
    """
    width, size, most = values.shape[1], values.shape[0], top * top
    lengths[:size] = 0.0
    for j in range(width):
        per_unit = 1.0 / halves[j]
        for i in range(size):
            t = values[i, j] * per_unit
            t = min(max(t if t == t else 0.0, -FARTHEST), FARTHEST)
            held[j, i] = t
            lengths[i] += t * t
    if width >= 4000:
        top *= 1.0 - (width + 8) * 2.0**-52
    for i in range(size):
        lengths[i] = top / np.sqrt(max(lengths[i], 1.0))
    for j in range(width):
        for i in range(size):
            held[j, i] = np.trunc(held[j, i] * lengths[i])
    lengths[:size] = 0.0
    for j in range(width):
        for i in range(size):
            lengths[i] += held[j, i] * held[j, i]
    for i in range(size):
        if not lengths[i] <= most:
            for j in range(width):
                held[j, i] = 0.0


@_jit(fastmath=False)
def hold_public(held, width, size, absolute, squares):  # type: ignore[no-untyped-def]
    """Let a row add 0 whose `width` public numbers are larger than was said, in sum or in squares."""
    for i in range(size):
        one = np.int64(0)
        two = np.int64(0)
        for j in range(width):
            k = np.int64(held[j, i])
            one += abs(k)
            two += k * k
        if one > absolute or two > squares:
            for j in range(width + 1):
                held[j, i] = 0.0


@_jit(fastmath={"reassoc", "contract"})
def _add_tile(held, size, a, b, products):  # type: ignore[no-untyped-def]
    """Add the products of 4 lines with 4 lines; every partial sum is whole and below 2**53, so any order is exact."""
    a0, a1 = held[a, :size], held[a + 1, :size]
    a2, a3 = held[a + 2, :size], held[a + 3, :size]
    b0, b1 = held[b, :size], held[b + 1, :size]
    b2, b3 = held[b + 2, :size], held[b + 3, :size]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for i in range(a0.size):
        w, x, y, z = b0[i], b1[i], b2[i], b3[i]
        p, q, r, s = a0[i], a1[i], a2[i], a3[i]
        s00, s01, s02, s03 = s00 + p * w, s01 + p * x, s02 + p * y, s03 + p * z
        s10, s11, s12, s13 = s10 + q * w, s11 + q * x, s12 + q * y, s13 + q * z
        s20, s21, s22, s23 = s20 + r * w, s21 + r * x, s22 + r * y, s23 + r * z
        s30, s31, s32, s33 = s30 + s * w, s31 + s * x, s32 + s * y, s33 + s * z
    lines = ((s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33))
    for row in range(4):
        for column in range(4):
            products[a + row, b + column] += np.int64(lines[row][column])


@_jit()
def add_products(held, size, products):  # type: ignore[no-untyped-def]
    """Add the products of all pairs of lines, 4 by 4; `products` is filled above its diagonal of tiles."""
    for a in range(0, held.shape[0], 4):
        for b in range(a, held.shape[0], 4):
            _add_tile(held, size, a, b, products)


@_jit()
def _inside(code, n_cells):  # type: ignore[no-untyped-def]
    """Return a cell that there is, whatever was given."""
    return min(max(np.int64(code), 0), n_cells - 1)


@_jit()
def add_first(code, held, size, sums):  # type: ignore[no-untyped-def]
    """Add every line of a chunk to the sums of each row's cell."""
    for j in range(sums.shape[1]):
        for i in range(size):
            sums[_inside(code[i], sums.shape[0]), j] += np.int64(held[j, i])


@_jit(fastmath={"contract"})
def add_apart(code, rows, partial, sums):  # type: ignore[no-untyped-def]
    """Add the products of all pairs of a row, by rows of the upper triangle, to the sums of its cell.

    Those of one chunk in float64, in `partial`, which is all zeros before and after; they are exact there as well.
    """
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        cell = partial[_inside(code[i], sums.shape[0])]
        place = 0
        for a in range(width):
            line, ends = rows[i, a:], cell[place : place + width - a]
            for b in range(width - a):
                ends[b] += line[0] * line[b]
            place += width - a
    for c in range(sums.shape[0]):
        for place in range(sums.shape[1]):
            sums[c, place] += np.int64(partial[c, place])
            partial[c, place] = 0.0
