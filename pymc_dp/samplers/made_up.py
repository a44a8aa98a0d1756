"""Public rows at which numbers of a row are looked at: the ends of what they may be, and others at random."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from pymc_dp.inspection.rows import Array, Column

RANDOM = 128
"""Rows at random."""
CORNERS = 256
"""Rows at ends of all entries: all of them, or so many."""
EVENLY = 65
"""Values of one number, evenly between its ends."""
MOST_LEVELS = 32
"""Of a column that is an index, of which each is looked at beside all others; more of them in turn."""


def made_up_rows(columns: Mapping[str, Column], inputs: Mapping[str, object]) -> dict[str, Array]:
    """Return rows at corners and at random, by a fixed seed: an array for each column, flat like the kernel's."""
    rng = np.random.default_rng(20260)
    levels = {name: column for name, column in columns.items() if len(column.levels) > 2}
    plain = {name: column for name, column in columns.items() if name not in levels}
    base = _plain(plain, rng)
    count = len(next(iter(base.values()))) if base else 1
    for name, column in levels.items():
        own = np.asarray(column.levels, dtype=np.float64)
        if len(own) <= MOST_LEVELS:
            base = {other: np.repeat(held, len(own), axis=0) for other, held in base.items()}
            base[name], count = np.tile(own, count), count * len(own)
        else:
            times = -(-len(own) // count)
            base = {other: np.tile(held, (times, *[1] * (held.ndim - 1))) for other, held in base.items()}
            count *= times
            base[name] = own[(np.arange(count) + rng.integers(len(own))) % len(own)]
    return {name: _like(base[name], inputs[name]) for name in columns}


def _like(values: Array, var: object) -> Array:
    dtype, shape = var.type.dtype, var.type.shape  # type: ignore[attr-defined]
    return np.ascontiguousarray(values.reshape(len(values), *shape)).astype(dtype)


def _plain(columns: Mapping[str, Column], rng: np.random.Generator) -> dict[str, Array]:
    """Return rows of columns that are no index, (n_rows, width)."""
    if not columns:
        return {}
    ends = [column.ends for column in columns.values()]
    low, high = (np.concatenate([np.ravel(pair[side]).astype(np.float64) for pair in ends]) for side in (0, 1))
    whole = np.concatenate([np.full(column.width, column.integer) for column in columns.values()])
    width = len(low)
    loose = ~np.isfinite(low) | ~np.isfinite(high)
    low, high = np.where(loose, -1e3, low), np.where(loose, 1e3, high)
    if 2**width <= CORNERS:
        sides = np.array(list(itertools.product([0.0, 1.0], repeat=width)))
    else:
        sides = rng.integers(0, 2, (CORNERS, width)).astype(np.float64)
    shares = np.concatenate([sides, rng.random((RANDOM, width))])
    if width <= 2:
        evenly = np.linspace(0, 1, EVENLY)
        shares = np.concatenate([shares, *[_beside(evenly, place, width) for place in range(width)]])
    values = low + (high - low) * shares
    anything = rng.normal(size=values.shape) * 10.0 ** rng.uniform(-2, 3, values.shape)
    values = np.where(loose, np.where(rng.random(values.shape) < 0.1, 0.0, anything), values)
    values = np.where(whole, np.rint(values), values)
    edges = np.cumsum([0, *(column.width for column in columns.values())])
    found = {}
    for (name, column), start, stop in zip(columns.items(), edges[:-1], edges[1:], strict=True):
        found[name] = _within(column, values[:, start:stop], rng)
    return found


def _beside(evenly: Array, place: int, width: int) -> Array:
    """Return shares of one entry evenly, beside both ends of the other."""
    others = itertools.product([0.0, 1.0], repeat=width - 1)
    return np.array([np.insert(np.array(other), place, share) for other in others for share in evenly])


def _within(column: Column, values: Array, rng: np.random.Generator) -> Array:
    """Return rows at the largest norm that a column allows, in any direction; as they are where it has none."""
    if column.norm is None:
        return values
    directions = rng.normal(size=values.shape)
    return directions * (column.norm / np.linalg.norm(directions, axis=1, keepdims=True))


__all__ = ["made_up_rows"]
