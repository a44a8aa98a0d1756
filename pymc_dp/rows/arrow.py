"""Columns of Arrow tables as parts of stored rows."""

from __future__ import annotations

import importlib
from typing import Any

from pymc_dp.rows.stored import Part


def part_of(column: Any) -> Part:
    """Return the values of a column, 0 where there is none, and where that is; the same is done whatever it holds."""
    filled = column.fill_null(arrow().scalar(0).cast(column.type))
    return Part(filled.to_numpy(zero_copy_only=False), column.is_null().to_numpy(zero_copy_only=False))


def arrow(module: str = "pyarrow") -> Any:
    """Import a part of pyarrow, which stored rows alone need."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        message = "dp.Parquet and dp.Table need pyarrow, which cannot be imported. Install it: pip install pyarrow"
        raise ImportError(message) from error


__all__ = ["arrow", "part_of"]
