"""A model on dummy rows and the table beside it: what fits, and passes over its rows, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, final

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.inspection.assumptions import number_of_rows
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.owners import ids_line
from pymc_dp.inspection.rows import Array, Column, limits_of, shape_of
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.flags import flagged
from pymc_dp.rows.gate import require_open
from pymc_dp.rows.stored import HINT, Layout, Part, StoredRows

SUM_BYTES = 2**25
"""What of a table is in memory at a time, for each thread, while it is added up."""


def with_stored[Found: Inspection](found: Found, stored: StoredRows) -> Found:
    """Return the inspection of a model on dummy rows as that of the same model on stored ones.

    What a row adds to the log-likelihood does not depend on the number of rows, which is proved; so only that number
    changes. Everything that does not fit is a problem of the inspection.
    """
    stored = flagged(stored, columns_of(found))
    layouts = stored.layouts()
    n_rows = next(iter(layouts.values())).n_rows
    problems = found.problems or tuple(_problems(found, layouts))
    before, now = number_of_rows(found.n_rows), number_of_rows(n_rows)
    dummies = ids_line(found.model, found.domain.unit)
    kept = (now if line == before else line for line in found.assumptions if line not in dummies)
    assumptions = (*kept, *stored.assumptions)
    return replace(found, n_rows=n_rows, assumptions=assumptions, problems=problems)


def columns_of(found: Inspection) -> tuple[Column, ...]:
    """Return every column of the table; those of sums by themselves where rows were not looked at one by one."""
    if isinstance(found, RowInspection):
        return found.columns
    beside = [*(column for item in found.observed for column in item.beside), *found.weights.values()]
    observed = [Column(name=item.name, leaf=item.leaf, bounds=item.bounds) for item in found.observed]
    return tuple({column.leaf: column for column in [*observed, *beside]}.values())


def names_of(found: Inspection, column: Column) -> tuple[str, ...]:
    """Return the names of a column: its own, and those of the variables that are observed through it."""
    observed = (item.name for item in found.observed if item.leaf is column.leaf)
    own = [str(column.leaf.name)] if column.leaf.name else []
    return tuple(dict.fromkeys([column.name, *observed, *own]))


def by_column(found: Inspection, stored: Collection[str]) -> tuple[str, ...]:
    """Return the name that each column of the model is stored by."""
    return tuple(next(name for name in names_of(found, column) if name in stored) for column in columns_of(found))


def _problems(found: Inspection, layouts: Mapping[str, Layout]) -> Iterator[Problem]:
    yield from _wrong_lengths(found, layouts)
    known = [name for column in columns_of(found) for name in names_of(found, column)]
    if found.domain.unit is not None:
        known.append(found.domain.unit.column)
        yield from _unowned(found.domain.unit.column, layouts)
    for name in layouts:
        if name not in known:
            what = "rows= has it, but it is no row-level column of the model"
            yield Problem(
                where=name, what=what, remedy=f"Columns are {', '.join(known)}.{_validate.nearest(name, known)}"
            )
    for column in columns_of(found):
        names = [name for name in names_of(found, column) if name in layouts]
        if len(names) != 1:
            count = "is not in rows=" if not names else f"is in rows= more than once, as {' and '.join(names)}"
            yield Problem(where=column.name, what=f"the column {count}", remedy=HINT)
        else:
            yield from _misfits(column, layouts[names[0]])


def _wrong_lengths(found: Inspection, layouts: Mapping[str, Layout]) -> Iterator[Problem]:
    lengths = {name: layout.n_rows for name, layout in layouts.items()}
    hidden = found.domain.neighbours == "add_remove"
    if len(set(lengths.values())) > 1:
        shown = "of different lengths" if hidden else f"of lengths {lengths}"
        yield Problem(where="rows", what=f"the columns are {shown}", remedy="Store the columns of one table.")
    elif not hidden and not any(lengths.values()):
        yield Problem(where="rows", what="the table has 0 rows", remedy="Sample the prior, which is public.")
    elif not hidden and max(lengths.values()) > MOST_ROWS:
        what = f"the table has more than 2**{MOST_ROWS.bit_length() - 1} rows, which whole numbers may not add up"
        yield Problem(where="rows", what=what, remedy="Take a sample of them.")


def _unowned(name: str, layouts: Mapping[str, Layout]) -> Iterator[Problem]:
    """Say why a table does not tell whose rows it has."""
    if name not in layouts:
        remedy = f"Store it, and give it in rows= by its name. Stored are {', '.join(layouts)}."
        yield Problem(where=name, what="Domain(unit=...) names it, but it is not in rows=", remedy=remedy)
    elif layouts[name].shape or any(dtype.kind not in "iuUO" for dtype in layouts[name].dtypes):
        what = f"it says whose row it is, but is stored as {layouts[name]}"
        yield Problem(where=name, what=what, remedy="Store one whole number, or one text, a row.")
    elif layouts[name].coded:
        what = "it says whose row it is, but as one of dp.Levels: all who are not among them would be one person"
        yield Problem(where=name, what=what, remedy="Name the column itself, of whole numbers or texts.")


def _misfits(column: Column, layout: Layout) -> Iterator[Problem]:
    wanted = np.dtype(column.leaf.type.dtype)
    if layout.shape != shape_of(column.leaf)[1:]:
        what = f"a stored row has shape {layout.shape}, and one of the model {shape_of(column.leaf)[1:]}"
        yield Problem(where=column.name, what=what, remedy="Give the model's dummy rows the shape of the stored ones.")
    if any(dtype.kind in "UO" for dtype in layout.dtypes):
        what = "it holds texts, which may say whose row it is and nothing else"
        remedy = f"Write labels as codes, by a public list of levels: dp.Levels({column.name!r}, [...])."
        yield Problem(where=column.name, what=what, remedy=remedy)
    elif not all(np.can_cast(dtype, wanted, "same_kind") for dtype in layout.dtypes):
        what = f"stored values ({layout}) cannot become {wanted}, the dtype of the model"
        yield Problem(where=column.name, what=what, remedy="Give the model dummy rows of the dtype that is stored.")
    if column.public:
        what = "it is declared public, and would be clamped to the range of the dummy rows"
        remedy = "Leave it out of Domain(public=...): rows are clipped here, whatever in them is public."
        yield Problem(where=column.name, what=what, remedy=remedy)


def held(column: Column, parts: Sequence[Part]) -> Array:
    """Return a block of stored rows as the model would hold them: the dtype of the model, clamped. **Private**.

    Numbers that the dtype cannot hold become its nearest one, and missing ones what NaN becomes: the middle of the
    bounds, level 0 of an index or a category.
    """
    return column.clamped(cast(column, parts))


def cast(column: Column, parts: Sequence[Part]) -> Array:
    """Return a block of stored rows in the dtype of the model, for kernels that clamp by themselves. **Private**."""
    dtype = np.dtype(column.leaf.type.dtype)
    with np.errstate(all="ignore"):
        made = [_cast(part, dtype, absent(column)) for part in parts]
    width = len(shape_of(column.leaf)) - 1
    return np.stack(made, axis=1) if width and made[0].ndim == 1 else made[0]


def _cast(part: Part, dtype: np.dtype[Any], none: float) -> Array:
    values = part.values
    if dtype.kind in "iu" and values.dtype.kind in "iu":
        stored, wanted = np.iinfo(values.dtype), np.iinfo(dtype)
        values = np.clip(values, max(stored.min, wanted.min), min(stored.max, wanted.max))
    values = values.astype(dtype, copy=part.missing is not None)
    if part.missing is not None:
        values[part.missing] = none
    return values


def absent(column: Column) -> float:
    """Return what stands for a missing value until the column is clamped: NaN where it holds floats."""
    dtype = np.dtype(column.leaf.type.dtype)
    if dtype.kind == "f":
        return np.nan
    if column.bounds is None:
        return 0
    low, high = map(int, column.bounds)
    middle = low if column.outside == "first" else low + (high - low) // 2
    least, most = limits_of(dtype)
    return min(max(middle, least), most)


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
    owner : str or None
        Name of the column that says whose row it is, where ε protects persons. Then rows are read by `owned` alone.
    """

    stored: StoredRows
    names: tuple[str, ...]
    columns: tuple[Column, ...]
    n_rows: int
    owner: str | None = None

    @classmethod
    def of(cls, found: Inspection, stored: StoredRows) -> Self:
        """Return passes over the rows of an inspection without problems (`with_stored`). Reads no row."""
        stored = flagged(stored, columns_of(found))
        names, unit = by_column(found, stored.names), found.domain.unit
        owner = None if unit is None else unit.column
        return cls(stored=stored, names=names, columns=columns_of(found), n_rows=found.n_rows, owner=owner)

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
        self._require_rows()
        return self._blocks(size, self.names)

    def owned(self, size: int) -> Iterator[tuple[Part, list[Sequence[Part]]]]:
        """Yield whose rows they are, and their columns, some rows at a time: for persons. Reads private data."""
        require_open()
        if self.owner is None:
            raise PrivacyError("Nothing says whose rows these are; this is an error of pymc_dp.")
        return ((owner[0], parts) for owner, *parts in self._blocks(size, (self.owner, *self.names)))

    def _require_rows(self) -> None:
        if self.owner is not None:
            raise PrivacyError("Rows of persons would be taken one by one; this is an error of pymc_dp.")

    def _blocks(self, size: int, names: Sequence[str]) -> Iterator[list[Sequence[Part]]]:
        count = 0
        for block in self.stored.blocks(size):
            parts = [block[name] for name in names]
            count += len(parts[0][0].values)
            if count > self.n_rows:
                break
            yield parts
        if count != self.n_rows:
            raise PrivacyError(CHANGED)

    @property
    def _by_leaf(self) -> dict[Variable, str]:
        return {column.leaf: name for column, name in zip(self.columns, self.names, strict=True)}

    def check(self, asked: Sequence[Asked]) -> tuple[Problem, ...]:
        """Return what keeps the table from making some sums, before anything is charged.

        Rows of persons are added up here, out of files, whatever else the table could do.
        """
        return () if self.owner is not None else self.stored.check(asked, self._by_leaf)

    def totals(self, asked: Sequence[Asked]) -> list[Array] | None:
        """Return exact sums of all rows where an engine adds them up, in its own statement; None where it does not.

        Reads private data, once: the budget must have been charged.

        Raises
        ------
        PrivacyError
            If the table has become longer or shorter, or has more rows than whole numbers can add up.
        """
        require_open()
        self._require_rows()
        return self.stored.sums(asked, self._by_leaf, self.n_rows)

    @property
    def sums_size(self) -> int:
        """How many rows to read at a time for sums: few blocks are in memory together."""
        layouts = self.stored.layouts()
        widest = sum(
            max(layouts[name].row_bytes, column.width * np.dtype(column.leaf.type.dtype).itemsize)
            for name, column in zip(self.names, self.columns, strict=True)
        )
        return max(1, SUM_BYTES // widest)


def _held(columns: Sequence[Column], parts: Sequence[Sequence[Part]]) -> list[Array]:
    return [held(column, part) for column, part in zip(columns, parts, strict=True)]


__all__ = [
    "CHANGED",
    "Passes",
    "absent",
    "by_column",
    "cast",
    "columns_of",
    "held",
    "names_of",
    "with_stored",
]
