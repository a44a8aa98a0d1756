"""Which columns of a stored table are which of the model: an argument that all of them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.stored import Layout, Part

Item = str | Levels
"""The name of a stored column, or the levels of one of labels."""
Columns = Item | Sequence[Item]
"""One column, or several, one for each entry of a row."""
Held = Mapping[str, Item | tuple[Item, ...]]
"""Stored columns by names of the model, checked."""


def given_columns(columns: Mapping[str, Columns]) -> Held:
    """Return an argument `columns` as what it means.

    Raises
    ------
    ArgumentError
        If it is not a mapping of names to names or levels, or sequences of them, none of them empty.
    """
    if not _validate.mapping("columns", columns):
        raise ArgumentError(
            "columns must map names of the model to stored columns, got none. Write, for example, "
            '{"x": ["age", "income"], "y": "y"}.'
        )
    found = {name: _items(f"columns[{name!r}]", held) for name, held in columns.items()}
    for name, held in found.items():
        if not held:
            raise ArgumentError(f"columns[{name!r}] must be the name of a column or a list of names, got none.")
    return found


def _items(argument: str, held: Any) -> Item | tuple[Item, ...]:
    if isinstance(held, str | Levels):
        return held
    given = _validate.several(argument, held)
    return tuple(item if isinstance(item, Levels) else _validate.text(f"each of {argument}", item) for item in given)


def entries(held: Columns) -> tuple[Item, ...]:
    """Return the stored columns of one column of the model."""
    return (held,) if isinstance(held, str | Levels) else tuple(held)


def every_entry(columns: Held) -> list[Item]:
    """Return all stored columns, each once."""
    return list(dict.fromkeys(item for held in columns.values() for item in entries(held)))


def name_of(item: Item) -> str:
    """Return the name of a stored column."""
    return item.column if isinstance(item, Levels) else item


def names_of(items: Sequence[Item]) -> list[str]:
    """Return the names of stored columns, each once: one of labels may have several lists of levels."""
    return list(dict.fromkeys(map(name_of, items)))


def shape_of(held: Columns) -> tuple[int, ...]:
    """Return the shape of one row."""
    return () if isinstance(held, str | Levels) else (len(held),)


def laid_out(columns: Held, n_rows: int, dtypes: Mapping[str, np.dtype[Any]]) -> dict[str, Layout]:
    """Return what is public about columns, of the dtypes by names of the table; levels make codes of any."""

    def dtype_of(item: Item) -> np.dtype[Any]:
        return np.dtype(np.int64) if isinstance(item, Levels) else dtypes[item]

    return {
        name: Layout(
            n_rows=n_rows,
            shape=shape_of(held),
            coded=isinstance(held, Levels),
            dtypes=tuple(map(dtype_of, entries(held))),
        )
        for name, held in columns.items()
    }


def by_model(columns: Held, parts: Mapping[Item, Part]) -> dict[str, Sequence[Part]]:
    """Return a block of stored columns by names of the model. **Private**."""
    return {name: [parts[item] for item in entries(held)] for name, held in columns.items()}


def shown_columns(columns: Held) -> dict[str, Item | list[Item]]:
    """Return columns as they are written in a program."""
    return {name: list(held) if isinstance(held, tuple) else held for name, held in columns.items()}


def require_named(where: str, items: Sequence[Item], known: Sequence[str]) -> None:
    """Raise ArgumentError where a table has not exactly one column of each name."""
    problems = []
    for name in names_of(items):
        if known.count(name) != 1:
            count = "more than one column" if name in known else "no column"
            problems.append(f"{count} {name!r}.{_validate.nearest(name, known)}")
    if problems:
        raise ArgumentError(f"{where} has {' It has '.join(problems)}")


def require_numbers(where: str, others: Mapping[str, str]) -> None:
    """Raise ArgumentError for columns whose types, as texts, are neither numbers nor booleans."""
    problems = [f"{name!r} of type {kind}, which is neither a number nor a boolean." for name, kind in others.items()]
    if problems:
        raise ArgumentError(
            f"{where} has {' It has '.join(problems)} Write labels as codes, by a public list of levels, {{'city': "
            "dp.Levels('city', [...])}, and everything else as numbers."
        )


def no_labels(where: str, name: str, kind: str) -> ArgumentError:
    """Return the error of a column whose type, as a text, can hold no labels."""
    return ArgumentError(
        f"{where} has {name!r} of type {kind}, which holds no labels: neither texts nor whole numbers. Write it as one "
        "of these."
    )


__all__ = [
    "Columns",
    "Held",
    "Item",
    "by_model",
    "entries",
    "every_entry",
    "given_columns",
    "laid_out",
    "name_of",
    "names_of",
    "no_labels",
    "require_named",
    "require_numbers",
    "shown_columns",
]
