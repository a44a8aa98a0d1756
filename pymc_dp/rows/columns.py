"""Which columns of a stored table are which of the model: an argument that all of them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError

Columns = str | Sequence[str]
"""The name of one column, or of several, one for each entry of a row."""
REMEDY = "Write labels as codes, by a public list of levels, and everything else as numbers."


def given_columns(columns: Mapping[str, Columns]) -> dict[str, str | tuple[str, ...]]:
    """Return an argument `columns` as what it means.

    Raises
    ------
    ArgumentError
        If it is not a mapping of names to names, or sequences of names, none of them empty.
    """
    if not _validate.mapping("columns", columns):
        raise ArgumentError(
            "columns must map names of the model to stored columns, got none. Write, for example, "
            '{"x": ["age", "income"], "y": "y"}.'
        )
    found = {
        name: held if isinstance(held, str) else tuple(_validate.names(f"columns[{name!r}]", held))
        for name, held in columns.items()
    }
    for name, held in found.items():
        if not held:
            raise ArgumentError(f"columns[{name!r}] must be the name of a column or a list of names, got none.")
    return found


def entries(held: Columns) -> tuple[str, ...]:
    """Return the stored columns of one column of the model."""
    return (held,) if isinstance(held, str) else tuple(held)


def every_entry(columns: Mapping[str, Columns]) -> list[str]:
    """Return all stored columns, each once."""
    return list(dict.fromkeys(item for held in columns.values() for item in entries(held)))


def shown_columns(columns: Mapping[str, Columns]) -> dict[str, str | list[str]]:
    """Return columns as they are written in a program."""
    return {name: held if isinstance(held, str) else list(held) for name, held in columns.items()}


def unfit(where: str, problems: Sequence[str]) -> ArgumentError:
    """Return the error of a table that lacks columns, or has them of other types than numbers and booleans."""
    return ArgumentError(f"{where} has {' It has '.join(problems)} {REMEDY}")


def missing_column(name: str, known: Sequence[str]) -> str:
    """Say that there is no column, or more than one, of a name."""
    count = "more than one column" if name in known else "no column"
    return f"{count} {name!r}.{_validate.nearest(name, known)}"


def no_number(name: str, kind: str) -> str:
    """Say that the values of a column are neither numbers nor booleans."""
    return f"{name!r} of type {kind}, which is neither a number nor a boolean."


__all__ = [
    "Columns",
    "entries",
    "every_entry",
    "given_columns",
    "missing_column",
    "no_number",
    "shown_columns",
    "unfit",
]
