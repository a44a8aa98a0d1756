"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

from typing import Any

from pymc_dp.rows.arrow_labels import arrow, encoded, is_text, texts
from pymc_dp.rows.columns import Item
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.stored import Part


def part_of(column: Any, item: Item) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds.

    Texts, which say whose row it is, are passed on as bytes, for they need not be Unicode.
    """
    if isinstance(item, Levels):
        labels, places = encoded(column)
        return Part(item.places([*labels, None])[places], None)
    nothing: Any = 0
    if is_text(column.type):
        column, nothing = texts(column), b""
    filled = column.fill_null(arrow().scalar(nothing).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


__all__ = ["part_of"]
