"""Values of private columns at which every row is looked at: where the numbers of rows lie that share public values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array, Column, shape_of

MOST = 8
"""Combinations of private values up to which each is looked at."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateReferences:
    """What the private columns of a row are replaced by, in a few ways; public.

    With public columns, neighbours under ``replace`` differ in private ones only. So where the number of a row lies may
    depend on its public values, and only how far it may range about that place is paid for.

    Attributes
    ----------
    rows : tuple of tuples of array or None
        For each way one value per column; None for public columns.
    complete : bool
        Whether these are all values that the private columns may have; else there are two: the ends of their bounds.
    """

    rows: tuple[tuple[Array | None, ...], ...]
    complete: bool

    @classmethod
    def of(cls, columns: Sequence[Column], neighbours: Neighbours) -> Self | None:
        """Choose them; None where no column is public, or where a private one is not limited. Reads no row."""
        if neighbours != "replace" or not any(column.public for column in columns):
            return None
        if not all(column.limited for column in columns):
            return None
        every = _every([column for column in columns if not column.public])
        ends = [[_end(column, high) for column in columns] for high in (False, True)]
        if every is None:
            return cls(rows=tuple(map(tuple, ends)), complete=False)
        chosen = (iter(one) for one in every)
        rows = tuple(tuple(None if column.public else next(one) for column in columns) for one in chosen)
        return cls(rows=rows, complete=True)


def _every(columns: Sequence[Column]) -> list[tuple[Array, ...]] | None:
    """Return all combinations of values of columns; None where they are more than a few."""
    if not all(column.integer and column.bounds is not None and column.norm is None for column in columns):
        return None
    each, count = [], 1.0
    for column in columns:
        assert column.bounds is not None
        shape, (low, high) = shape_of(column.leaf)[1:], column.bounds
        values, size = range(math.ceil(low), math.floor(high) + 1), int(np.prod(shape))
        count *= float(len(values)) ** size
        if count > MOST:
            return None
        chosen = itertools.product(values, repeat=size)
        each.append([np.array(one, dtype=column.leaf.type.dtype).reshape(shape) for one in chosen])
    return list(itertools.product(*each))


def _end(column: Column, high: bool) -> Array | None:
    """Return the lowest or highest value of a private column; 0 where only a norm limits it."""
    if column.public:
        return None
    end = 0.0 if column.bounds is None or column.norm is not None else column.bounds[high]
    value = np.full((1, *shape_of(column.leaf)[1:]), end).astype(column.leaf.type.dtype)
    return np.asarray(column.clamped(value)[0])


__all__ = ["PrivateReferences"]
