"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

import importlib
from typing import Any

from pymc_dp.inspection.rows import Array
from pymc_dp.rows.columns import Item
from pymc_dp.rows.levels import Label, Levels
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
        column, nothing = _as_bytes(column), b""
    filled = column.fill_null(arrow().scalar(nothing).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def encoded(column: Any) -> tuple[list[Label | None], Array]:
    """Return labels that occur, and the place of each row's among them; a null has the place after the last.

    Texts are decoded here, so that one that is no UTF-8 is a label as well, and raises nothing. In dictionaries pyarrow
    itself looks for these: a file that has one there is a broken file.
    """
    if is_text(column.type):
        column = _as_bytes(column)
    elif arrow("pyarrow.types").is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = column.dictionary_encode()
    found = encoded.dictionary.to_pylist()
    labels = [held.decode("utf-8", "replace") if isinstance(held, bytes) else held for held in found]
    return labels, encoded.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)


def is_text(kind: Any) -> bool:
    """Whether values of a type are texts, or places in a list of them."""
    types = arrow("pyarrow.types")
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner))


def _as_bytes(column: Any) -> Any:
    if arrow("pyarrow.types").is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(arrow().large_string()).cast(arrow().large_binary())


def arrow(module: str = "pyarrow") -> Any:
    """Import a part of pyarrow, which stored rows alone need."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = "dp.Parquet and dp.Table need pyarrow, which cannot be imported. Install it: pip install pyarrow"
        raise ImportError(message) from error


__all__ = ["arrow", "encoded", "is_text", "part_of"]
