"""Rows that are likely to break a bound: corners first, then any mixture of what a column may be made to hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from pymc_dp.inspection.rows import Column, shape_of

Row = tuple[np.ndarray, ...]
"""One row: an array for each column."""
NEAR_ZERO = (0.0, -0.0, 5e-324, -5e-324, 1e-310, 2.3e-308, 1e-17, -1e-17, 1e-8, -1e-8)
OUTSIDE = (np.nan, np.inf, -np.inf)
SHARES = (1e-16, 1e-13, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5)
"""How far from either end, as a share of the width: of 40 standard deviations, 0.2 are 8 of them."""
MOST_CORNERS = 32


def values(column: Column, rng: np.random.Generator) -> np.ndarray:
    """What an entry of a column may be made to hold, values that are clamped among them."""
    dtype = np.dtype(column.leaf.type.dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        low, high = (-3, 3) if column.bounds is None else map(int, column.bounds)
        found = [low, high, (low + high) // 2, max(low - 1, least), min(high + 1, most), least, most]
        return np.array([*found, *rng.integers(low, high, 8, endpoint=True)], dtype=dtype)
    low, high = (-(column.norm or 1e6), column.norm or 1e6) if column.bounds is None else column.bounds
    width = high - low
    inner = [low + share * width for share in SHARES] + [high - share * width for share in SHARES]
    ends = [low, high, np.nextafter(low, high), np.nextafter(high, low), low - width, high + width]
    inside = [value for value in NEAR_ZERO if low <= value <= high]
    with np.errstate(over="ignore"):
        return np.array([*ends, *inside, *inner, *OUTSIDE, *rng.uniform(low, high, 16)]).astype(dtype)


def hostile_rows(columns: Sequence[Column], rng: np.random.Generator, count: int) -> list[Row]:
    """So many rows; every column at an end of its bounds first, then mixtures, half of them with equal entries."""
    held = [values(column, rng) for column in columns]
    ends = [(found[0], found[1]) for found in held]
    shapes = [shape_of(column.leaf)[1:] for column in columns]
    places = sum(int(np.prod(shape)) for shape in shapes)
    rows = [_shaped(corner, shapes, held) for corner in islice(_corners(ends, shapes, places, rng), count // 2)]
    if len(columns) == 1 and not shapes[0]:  # every value there is, before any of them comes again
        rows += [(np.array(value),) for value in held[0][2:]]
    while len(rows) < count:
        free = rng.random() < 0.5
        rows.append(tuple(_mixed(found, shape, rng, free) for found, shape in zip(held, shapes, strict=True)))
    return rows[:count]


def _corners(
    ends: Sequence[tuple[np.ndarray, np.ndarray]],
    shapes: Sequence[tuple[int, ...]],
    places: int,
    rng: np.random.Generator,
) -> Iterator[list[np.ndarray]]:
    of = [pair for pair, shape in zip(ends, shapes, strict=True) for _ in range(int(np.prod(shape)))]
    if 2**places <= MOST_CORNERS:
        yield from map(list, product(*of))
        return
    for _ in range(MOST_CORNERS):
        yield [pair[side] for pair, side in zip(of, rng.integers(2, size=places), strict=True)]


def _shaped(flat: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]], held: Sequence[np.ndarray]) -> Row:
    row, start = [], 0
    for shape, found in zip(shapes, held, strict=True):
        size = int(np.prod(shape))
        row.append(np.array(flat[start : start + size], dtype=found.dtype).reshape(shape))
        start += size
    return tuple(row)


def _mixed(found: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator, free: bool) -> np.ndarray:
    return np.array(rng.choice(found, shape if free else ()), dtype=found.dtype) + np.zeros(shape, dtype=found.dtype)


__all__ = ["Row", "hostile_rows"]
