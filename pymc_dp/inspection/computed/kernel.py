"""The compiled loop over rows that works out a formula; imported at first use."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _applied(code, a, b, c):  # type: ignore[no-untyped-def]
    """Return one operation of `expressions.WRITTEN`, by its place there."""
    if code < 16:
        return _of_two(code, a, b)
    if code == 16:
        return -a
    if code == 17:
        return 1.0 - a
    if code == 18:
        return a if a != a or a >= b else b
    if code == 19:
        return a if a != a or a <= b else b
    if code == 20:
        return abs(a)
    if code < 32:
        return _smooth(code, a)
    if code == 32:
        return np.floor(a)
    if code == 33:
        return np.ceil(a)
    if code == 34:
        return np.trunc(a)
    if code == 35:
        return np.rint(a)
    if code == 36:
        return a if a != a else (1.0 if a > 0 else 0.0) - (1.0 if a < 0 else 0.0)
    if code == 37:
        return b if a != 0 else c
    return a if a != a else min(max(a, b), c)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _of_two(code, a, b):  # type: ignore[no-untyped-def]
    if code == 0:
        return a + b
    if code == 1:
        return a - b
    if code == 2:
        return a * b
    if code == 3:
        return a / b
    if code == 4:
        return np.floor(a / b)
    if code == 5:
        return a - b * np.floor(a / b)
    if code == 6:
        return a * a if b == 2 else a**b
    if code == 7:
        return 1.0 if a == b else 0.0
    if code == 8:
        return 1.0 if a != b else 0.0
    if code == 9:
        return 1.0 if a < b else 0.0
    if code == 10:
        return 1.0 if a <= b else 0.0
    if code == 11:
        return 1.0 if a > b else 0.0
    if code == 12:
        return 1.0 if a >= b else 0.0
    if code == 13:
        return 1.0 if a != 0 and b != 0 else 0.0
    if code == 14:
        return 1.0 if a != 0 or b != 0 else 0.0
    return 1.0 if (a != 0) != (b != 0) else 0.0


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _smooth(code, a):  # type: ignore[no-untyped-def]
    if code == 21:
        return np.sqrt(a)
    if code == 22:
        return np.exp(a)
    if code == 23:
        return np.expm1(a)
    if code == 24:
        return np.log(a)
    if code == 25:
        return np.log1p(a)
    if code == 26:
        return np.log2(a)
    if code == 27:
        return np.log10(a)
    if code == 28:
        return np.sin(a)
    if code == 29:
        return np.cos(a)
    if code == 30:
        return np.tanh(a)
    return 1.0 / (1.0 + np.exp(-a))


@numba.njit(nogil=True, cache=True, error_model="numpy")
def run(codes, operands, numbers, entries, found):  # type: ignore[no-untyped-def]
    """Fill `found` with the last result of a program for each row; `entries` are (n_entries, n_rows)."""
    first = numbers.size + entries.shape[0]
    held = np.empty(first + codes.size)
    held[: numbers.size] = numbers
    for i in range(found.size):
        for j in range(entries.shape[0]):
            held[numbers.size + j] = entries[j, i]
        for k in range(codes.size):
            held[first + k] = _applied(codes[k], held[operands[k, 0]], held[operands[k, 1]], held[operands[k, 2]])
        found[i] = held[-1]
