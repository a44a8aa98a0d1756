"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

import importlib
from typing import Any

from pymc_dp.inspection.rows import Array
from pymc_dp.rows.columns import Item
from pymc_dp.rows.levels import Label, Levels
from pymc_dp.rows.stored import Part


def part_of(column: Any, item: Item) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds."""
    if isinstance(item, Levels):
        labels, places = encoded(column)
        return Part(item.places([*labels, None])[places], None)
    filled = column.fill_null(arrow().scalar(0).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def encoded(column: Any) -> tuple[list[Label | None], Array]:
    """Return labels that occur, and the place of each row's among them; a null has the place after the last.

    Texts are decoded here, so that one that is no UTF-8 is a label as well, and raises nothing. In dictionaries pyarrow
    itself looks for these: a file that has one there is a broken file.
    """
    types, pyarrow = arrow("pyarrow.types"), arrow()
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not types.is_integer(column.type):
        column = column.cast(pyarrow.large_string()).cast(pyarrow.large_binary())
    encoded = column.dictionary_encode()
    found = encoded.dictionary.to_pylist()
    labels = [held.decode("utf-8", "replace") if isinstance(held, bytes) else held for held in found]
    return labels, encoded.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)


def arrow(module: str = "pyarrow") -> Any:
    """Import a part of pyarrow, which stored rows alone need."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = "dp.Parquet and dp.Table need pyarrow, which cannot be imported. Install it: pip install pyarrow"
        raise ImportError(message) from error


__all__ = ["arrow", "encoded", "part_of"]
