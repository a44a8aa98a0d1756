"""Tables that an adversary would choose beside the table of a kind of model.

Tables of one length, or of any length under ``add_remove``, are connected by steps of one row. So what is the same for
all neighbours is the same for all of them, and some tables here are many steps away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tests.zoo.kind import BOUNDS, OBSERVED, Kind, Relation, Table

Row = Mapping[str, Any]
Value = Callable[[str, np.dtype, tuple[float, float]], Any]
"""From the name of a column, its dtype and its bounds to a value of it."""


def _in_dtype(value: float, dtype: np.dtype) -> Any:
    """Return a number as near to another one as the dtype has it."""
    if dtype.kind == "f":
        return value
    limits = np.iinfo(dtype)
    return 0 if value != value else int(min(max(value, float(limits.min // 2)), float(limits.max // 2)))


def _number(value: float) -> Value:
    return lambda name, dtype, ends: _in_dtype(value, dtype)


def _not_a_number(name: str, dtype: np.dtype, ends: tuple[float, float]) -> Any:
    return _in_dtype(ends[0] if name in OBSERVED else np.nan, dtype)


def _extreme(which: str) -> Value:
    def value(name: str, dtype: np.dtype, ends: tuple[float, float]) -> Any:
        return getattr(np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype), which)

    return value


VALUES: Mapping[str, Value] = {
    "infinite": _number(np.inf),
    "above its bounds": lambda name, dtype, ends: _in_dtype(ends[1] + 10, dtype),
    "below its bounds": lambda name, dtype, ends: _in_dtype(ends[0] - 10, dtype),
    "not a number": _not_a_number,
    "at its lower bounds": lambda name, dtype, ends: _in_dtype(ends[0], dtype),
    "at its upper bounds": lambda name, dtype, ends: _in_dtype(ends[1], dtype),
    "1e308": _number(1e308),
    "the least of its dtype": _extreme("min"),
    "the greatest of its dtype": _extreme("max"),
    "minus infinite": _number(-np.inf),
    "-1e308": _number(-1e308),
    "subnormal": _number(5e-324),
    "minus zero": _number(-0.0),
    "one": _number(1.0),
}
FAR: tuple[str, ...] = ("at its lower bounds", "minus zero", "one", "at its upper bounds")
"""Values that all rows have: columns are constant, and all groups but one disappear."""


def row_of(kind: Kind, table: Table, value: Value) -> dict[str, Any]:
    """Return a row of which each column has a value."""
    found: dict[str, Any] = {}
    for name, column in table.items():
        if column.dtype.kind == "O":
            found[name] = "another person"
            continue
        low, high = BOUNDS.get(name, (0, 1))
        found[name] = np.full(column.shape[1:], value(name, column.dtype, (low, high)), dtype=column.dtype)
    return found


def replaced(kind: Kind, table: Table, place: int, row: Row) -> Table:
    """Return a table in which a row has other private values."""
    found = {name: column.copy() for name, column in table.items()}
    for name in set(found) - set(kind.public):
        found[name][place] = row[name]
    return found


def appended(table: Table, row: Row) -> Table:
    """Return a table with a row more."""
    found = {}
    for name, column in table.items():
        found[name] = np.empty((len(column) + 1, *column.shape[1:]), dtype=column.dtype)
        found[name][:-1], found[name][-1] = column, row[name]
    return found


def removed(table: Table, gone: np.ndarray) -> Table:
    """Return a table without some rows."""
    return {name: column[~gone] for name, column in table.items()}


def other_rows(kind: Kind, table: Table) -> Iterator[tuple[str, Table]]:
    """Generate tables with as many rows."""
    n = len(table["y"])
    places = (0, n // 2, n - 1)
    for count, (name, value) in enumerate(VALUES.items()):
        place = places[count % len(places)]
        yield f"row {place} {name}", replaced(kind, table, place, row_of(kind, table, value))
        if name in FAR:
            far = table
            for each in range(n):
                far = replaced(kind, far, each, row_of(kind, table, value))
            yield f"every row {name}", far
    copied = {name: column[min(1, n - 1)] for name, column in table.items()}
    yield "last row a copy of row 1", replaced(kind, table, n - 1, copied)
    counted = table
    for place in range(n):
        row = {
            name: column[place] if column.dtype.kind == "O" else np.full(column.shape[1:], place, dtype=column.dtype)
            for name, column in table.items()
        }
        counted = replaced(kind, counted, place, row)
    yield "every row its number", counted


def more_or_fewer(kind: Kind, table: Table) -> Iterator[tuple[str, Table]]:
    """Generate tables with another number of rows."""
    rows = np.arange(len(table["y"]))
    n = len(rows)
    if n:
        yield "without the last row", removed(table, rows == n - 1)
        yield "without the row in the middle", removed(table, rows == n // 2)
        yield "without the first row", removed(table, rows == 0)
    for name, value in VALUES.items():
        yield f"one more, {name}", appended(table, row_of(kind, table, value))
    if n > 2:
        yield "one more, a copy of row 1", appended(table, {name: column[1] for name, column in table.items()})
        yield "without a person", removed(table, table["who"] == 3)
        yield "without half of the rows", removed(table, rows % 2 == 1)
        yield "with two rows", removed(table, rows >= 2)
        yield "twice as many rows", {name: np.concatenate([column, column]) for name, column in table.items()}


QUICK: Mapping[Relation, tuple[str, ...]] = {
    "replace": ("every row at its lower bounds", "row 0 infinite", "every row its number"),
    "add_remove": ("without the last row", "one more, infinite", "every row at its lower bounds"),
}
"""The most hostile ones: all rows out of bounds, groups that disappear, 33 rows for 32, a column that counts."""


def neighbours(kind: Kind, relation: Relation, table: Table) -> dict[str, Table]:
    """Return tables that must look like `table` to anyone, the most hostile first, by what is special in each."""
    found = {} if relation == "replace" else dict(more_or_fewer(kind, table))
    if len(table["y"]):
        found |= dict(other_rows(kind, table))
    quick = [name for name in QUICK[relation] if name in found]
    return {name: found[name] for name in (*quick, *(name for name in found if name not in quick))}
