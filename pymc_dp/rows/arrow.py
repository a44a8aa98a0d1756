"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

from typing import Any

from pymc_dp.rows.arrow_labels import arrow, bytes_of, encoded
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
        column, nothing = bytes_of(column), b""
    filled = column.fill_null(arrow().scalar(nothing).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def is_text(kind: Any) -> bool:
    """Whether values of a type are texts, or places in a list of them."""
    types = arrow("pyarrow.types")
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner))


__all__ = ["is_text", "part_of"]
