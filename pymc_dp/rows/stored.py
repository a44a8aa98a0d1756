"""Rows that stay in files: what is public about them, and their values block by block.

Passes over stored rows: each reads every row once, some at a time, as the model would hold them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, PrivacyError, Problem
from pymc_dp.inspection.assumptions import number_of_rows
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column, shape_of
from pymc_dp.rows.gate import require_open
from pymc_dp.rows.levels import LabelColumn

BLOCK_BYTES = 2**22
"""What is read at a time."""
HINT = "Give every row-level column of the model, by the name of its pm.Data or of the observed variable."


class Part(NamedTuple):
    """Consecutive values of a stored column, and where there are none. **Private**."""

    values: Array
    missing: Array | None


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What is public about a stored column.

    Attributes
    ----------
    n_rows : int
    shape : tuple of int
        Of one row.
    dtypes : tuple of dtype
        Several where the entries of a row were stored one by one.
    """

    n_rows: int
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory."""
        entries = int(np.prod(self.shape)) if len(self.dtypes) == 1 else 1
        return entries * sum(dtype.itemsize for dtype in self.dtypes)

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(map(str, self.dtypes)))
        return f"{kinds}, {self.shape} a row" if self.shape else kinds


class StoredRows(ABC):
    """Columns of a table that need not fit into memory, by names of the model."""

    @abstractmethod
    def layouts(self) -> dict[str, Layout]:
        """Return what is public about each column, without a look at any value."""

    @abstractmethod
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        """Yield at most `size` consecutive rows at a time, a column in one part or by its entries. **Private**."""

    def labels(self, name: str) -> LabelColumn:
        """Return a column of labels, by a name of `layouts`, without a look at any value."""
        raise ArgumentError(
            f"Labels of {name!r} are read from dp.Parquet(...), a data frame or a mapping of arrays, not from "
            f"{type(self).__name__}."
        )


class Arrays(StoredRows):
    """NumPy arrays, memory-mapped ones above all.

    Parameters
    ----------
    arrays : mapping of str to array
        Axis 0 counts rows.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
                raise ArgumentError(
                    f"rows[{name!r}] must be a NumPy array (np.memmap, np.load(..., mmap_mode='r')), got "
                    f"{type(array).__name__}. Columns of a Parquet file are given by rows=dp.Parquet(...)."
                )
            if array.ndim == 0 or array.dtype.kind not in "biuf":
                raise ArgumentError(
                    f"rows[{name!r}] must hold numbers or booleans, with an axis that counts rows; it has dtype "
                    f"{array.dtype} and {array.ndim} axes. Write labels as codes, by a public list of them: "
                    f"dp.Levels({name!r}, [...]).codes(...)."
                )
        self._arrays = {name: array.view(np.ndarray) for name, array in arrays.items()}

    @override
    def layouts(self) -> dict[str, Layout]:
        return {
            name: Layout(n_rows=len(array), shape=array.shape[1:], dtypes=(array.dtype,))
            for name, array in self._arrays.items()
        }

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        n_rows = max(len(array) for array in self._arrays.values())
        for start in range(0, n_rows, size):
            yield {name: [Part(array[start : start + size], None)] for name, array in self._arrays.items()}

    def __repr__(self) -> str:
        shown = (f"{name!r}: <{layout}>" for name, layout in self.layouts().items())
        return f"{{{', '.join(shown)}}}"


Rows = Mapping[str, Array] | StoredRows
"""What an argument `rows` may be."""


def stored_rows(rows: object) -> StoredRows | None:
    """Return an argument `rows` as what it means."""
    if rows is None or isinstance(rows, StoredRows):
        return rows
    if not isinstance(rows, Mapping) or not rows or not all(isinstance(name, str) for name in rows):
        raise ArgumentError(
            f"rows must map names of the model to arrays, or be dp.Parquet(...), got {type(rows).__name__}. {HINT}"
        )
    return Arrays(rows)


class Description(str):
    """What is shown of stored rows where settings are: a text without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


# --- the model that they belong to ------------------------------------------------------------------------------------


def with_stored(found: RowInspection, stored: StoredRows) -> RowInspection:
    """Return the inspection of a model on dummy rows as that of the same model on stored ones.

    What a row adds to the log-likelihood does not depend on the number of rows, which is proved; so only that number
    changes. Everything that does not fit is a problem of the inspection.
    """
    layouts = stored.layouts()
    n_rows = next(iter(layouts.values())).n_rows
    problems = found.problems or tuple(_problems(found, layouts))
    assumptions = renumbered(found.assumptions, found.n_rows, n_rows)
    return replace(found, n_rows=n_rows, assumptions=assumptions, problems=problems)


def renumbered(assumptions: tuple[str, ...], before: int, after: int) -> tuple[str, ...]:
    """Return what is assumed public, with the number of stored rows for that of dummy rows."""
    return tuple(number_of_rows(after) if line == number_of_rows(before) else line for line in assumptions)


def names_of(found: RowInspection, column: Column) -> tuple[str, ...]:
    """Return the names of a column: its own, and those of the variables that are observed through it."""
    observed = (item.name for item in found.observed if item.leaf is column.leaf)
    return tuple(dict.fromkeys([column.name, *observed]))


def by_column(found: RowInspection, layouts: Mapping[str, Layout]) -> tuple[str, ...]:
    """Return the name that each column of the model is stored by."""
    return tuple(next(name for name in names_of(found, column) if name in layouts) for column in found.columns)


def _problems(found: RowInspection, layouts: Mapping[str, Layout]) -> Iterator[Problem]:
    yield from _wrong_lengths(found, layouts)
    known = [name for column in found.columns for name in names_of(found, column)]
    for name in layouts:
        if name not in known:
            what = "rows= has it, but it is no row-level column of the model"
            yield Problem(
                where=name, what=what, remedy=f"Columns are {', '.join(known)}.{_validate.nearest(name, known)}"
            )
    for column in found.columns:
        names = [name for name in names_of(found, column) if name in layouts]
        if len(names) != 1:
            count = "is not in rows=" if not names else f"is in rows= more than once, as {' and '.join(names)}"
            yield Problem(where=column.name, what=f"the column {count}", remedy=HINT)
        else:
            yield from _misfits(column, layouts[names[0]])


def _wrong_lengths(found: RowInspection, layouts: Mapping[str, Layout]) -> Iterator[Problem]:
    lengths = {name: layout.n_rows for name, layout in layouts.items()}
    hidden = found.domain.neighbours == "add_remove"
    if len(set(lengths.values())) > 1:
        shown = "of different lengths" if hidden else f"of lengths {lengths}"
        yield Problem(where="rows", what=f"the columns are {shown}", remedy="Store the columns of one table.")
    elif not hidden and not any(lengths.values()):
        yield Problem(where="rows", what="the table has 0 rows", remedy="Sample the prior, which is public.")


def _misfits(column: Column, layout: Layout) -> Iterator[Problem]:
    wanted = np.dtype(column.leaf.type.dtype)
    if layout.shape != shape_of(column.leaf)[1:]:
        what = f"a stored row has shape {layout.shape}, and one of the model {shape_of(column.leaf)[1:]}"
        yield Problem(where=column.name, what=what, remedy="Give the model's dummy rows the shape of the stored ones.")
    if not all(np.can_cast(dtype, wanted, "same_kind") for dtype in layout.dtypes):
        what = f"stored values ({layout}) cannot become {wanted}, the dtype of the model"
        yield Problem(where=column.name, what=what, remedy="Give the model dummy rows of the dtype that is stored.")
    if column.public:
        what = "it is declared public, and would be clamped to the range of the dummy rows"
        remedy = "Leave it out of Domain(public=...): rows are clipped here, whatever in them is public."
        yield Problem(where=column.name, what=what, remedy=remedy)


# --- values -----------------------------------------------------------------------------------------------------------


def held(column: Column, parts: Sequence[Part]) -> Array:
    """Return a block of stored rows as the model would hold them: the dtype of the model, clamped. **Private**.

    Numbers that the dtype cannot hold become its nearest one, and missing ones what NaN becomes: the middle of the
    bounds, level 0 of an index or a category.
    """
    dtype = np.dtype(column.leaf.type.dtype)
    with np.errstate(all="ignore"):
        cast = [_cast(part, dtype, _absent(column)) for part in parts]
    width = len(shape_of(column.leaf)) - 1
    return column.clamped(np.stack(cast, axis=1) if width and cast[0].ndim == 1 else cast[0])


def _cast(part: Part, dtype: np.dtype[Any], absent: float) -> Array:
    values = part.values
    if dtype.kind in "iu" and values.dtype.kind in "iu":
        stored, wanted = np.iinfo(values.dtype), np.iinfo(dtype)
        values = np.clip(values, max(stored.min, wanted.min), min(stored.max, wanted.max))
    values = values.astype(dtype, copy=part.missing is not None)
    if part.missing is not None:
        values[part.missing] = absent
    return values


def _absent(column: Column) -> float:
    """Return what stands for a missing value until the column is clamped."""
    if np.dtype(column.leaf.type.dtype).kind == "f":
        return np.nan
    if column.bounds is None:
        return 0
    low, high = map(int, column.bounds)
    return low if column.outside == "first" else low + (high - low) // 2


CHANGED = "The stored table has changed since its length was read. Leave it as it is until the call ends."


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """A stored table that may be read again and again.

    Attributes
    ----------
    stored : StoredRows
    names : tuple of str
        The name by which each column is stored.
    columns : tuple of Column
    n_rows : int
        Number of rows that is expected.
    """

    stored: StoredRows
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    n_rows: int

    @classmethod
    def of(cls, found: RowInspection, stored: StoredRows) -> Self:
        """Return passes over the rows of an inspection without problems (`with_stored`). Reads no row."""
        names = by_column(found, stored.layouts())
        return cls(stored=stored, names=names, columns=found.columns, n_rows=found.n_rows)

    def chunks(self, size: int) -> Iterator[Callable[[], list[Array]]]:
        """Yield at most `size` consecutive rows at a time, as a function that clamps them: in the thread that wants to.

        Reads private data: the budget must have been charged.

        Raises
        ------
        PrivacyError
            If the table has become longer or shorter: a table that nobody writes to has not, whatever is in it.

        Notes
        -----
        What a row becomes depends on that row alone: neither on the size of a chunk nor on where files begin.
        """
        return (partial(_held, self.columns, parts) for parts in self.parts(size))

    def parts(self, size: int) -> Iterator[list[Sequence[Part]]]:
        """Yield at most `size` consecutive rows at a time, as they are stored. **Private**, and as for `chunks`."""
        require_open()
        return self._parts(size)

    def _parts(self, size: int) -> Iterator[list[Sequence[Part]]]:
        count = 0
        for block in self.stored.blocks(size):
            parts = [block[name] for name in self.names]
            count += len(parts[0][0].values)
            if count > self.n_rows:
                break
            yield parts
        if count != self.n_rows:
            raise PrivacyError(CHANGED)


def _held(columns: Sequence[Column], parts: Sequence[Sequence[Part]]) -> list[Array]:
    return [held(column, part) for column, part in zip(columns, parts, strict=True)]


__all__ = [
    "BLOCK_BYTES",
    "CHANGED",
    "Arrays",
    "Description",
    "Layout",
    "Part",
    "Passes",
    "Rows",
    "StoredRows",
    "by_column",
    "held",
    "names_of",
    "renumbered",
    "stored_rows",
    "with_stored",
]
