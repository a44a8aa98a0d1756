"""Rows that nobody has: anywhere within what is public about their columns, the ends first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array, Column, known_rows, shape_of

ROWS = 48
"""Rows that are tried: the lowest, the highest, then any mixture of ends, the middle and what is between."""


def public_rows(columns: Sequence[Column], rng: np.random.Generator, count: int = ROWS) -> list[Array]:
    """Return a table of `count` rows, one array per column, clamped; public columns have rows that they really have."""
    return [np.concatenate(column) for column in zip(*_rows(columns, rng, count), strict=True)]


def _rows(columns: Sequence[Column], rng: np.random.Generator, count: int) -> list[list[Array]]:
    public = next((shape_of(column.leaf)[0] for column in columns if column.public), 0)
    found = []
    for turn in range(count):
        place = int(rng.integers(public)) if public else 0
        found.append(
            [
                column.clamped(known_rows(column)[place : place + 1]) if column.public else _row(column, turn, rng)
                for column in columns
            ]
        )
    return found


def _row(column: Column, turn: int, rng: np.random.Generator) -> Array:
    shape, dtype = (1, *shape_of(column.leaf)[1:]), np.dtype(column.leaf.type.dtype)
    if dtype.kind == "b":
        values = np.full(shape, turn == 1) if turn < 2 else rng.integers(0, 2, shape)
        return column.clamped(values.astype(dtype))
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    least, most = (float(limits.min), float(limits.max)) if dtype.kind == "f" else _whole(limits)
    low, high = (least, most) if column.bounds is None else column.bounds
    if column.norm is not None:
        low, high = max(low, -column.norm), min(high, column.norm)
    values = mixed(np.full(shape, low), np.full(shape, high), low / 2 + high / 2, turn, rng)
    return column.clamped(np.clip(values, least, most).astype(dtype))


def _whole(limits: Any) -> tuple[float, float]:
    """Return ends of whole numbers that floats hold, so that none leaves its type."""
    return max(float(limits.min), -(2.0**53)), min(float(limits.max), 2.0**53)


def mixed(low: Array, high: Array, middle: Array | float, turn: int, rng: np.random.Generator) -> Array:
    """Return the low end at turn 0, the high end at turn 1, then any mixture of ends, middle and what is between."""
    if turn < 2:
        return (low, high)[turn]
    inner = np.broadcast_to(middle, low.shape) + (high / 2 - low / 2) * rng.uniform(-1, 1, low.shape)
    return np.choose(rng.integers(0, 4, low.shape), [low, high, np.broadcast_to(middle, low.shape), inner])


__all__ = ["ROWS", "mixed", "public_rows"]
