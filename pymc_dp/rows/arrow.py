"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

from typing import Any

from pymc_dp.rows.arrow_labels import arrow, encoded
from pymc_dp.rows.columns import Item
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.stored import Part


def part_of(column: Any, item: Item) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds."""
    if isinstance(item, Levels):
        labels, places = encoded(column)
        return Part(item.places([*labels, None])[places], None)
    filled = column.fill_null(arrow().scalar(0).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


__all__ = ["part_of"]
