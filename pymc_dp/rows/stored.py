"""Rows beside the model: what is public about them, and their values block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, override

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.levels import LabelColumn, kind_of

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
    coded : bool
        Whether it holds places in a public list of levels.
    """

    n_rows: int
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]
    coded: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory."""
        entries = int(np.prod(self.shape)) if len(self.dtypes) == 1 else 1
        return entries * sum(dtype.itemsize for dtype in self.dtypes)

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(map(kind_of, self.dtypes)))
        return f"{kinds}, {self.shape} a row" if self.shape else kinds


class StoredRows(ABC):
    """Columns of a table that need not fit into memory, by names of the model.

    Attributes
    ----------
    once : bool
        Whether blocks are read once, into a private copy, by what needs the rows again and again.
    """

    once: ClassVar[bool] = False

    @property
    def names(self) -> Collection[str]:
        """Names of the columns in the model."""
        return self.layouts()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is assumed public of it, beside its schema."""
        return ()

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

    def check(self, asked: Sequence[Asked], names: Names) -> tuple[Problem, ...]:
        """Return what keeps this table from making some sums, before anything is charged. Reads no row.

        Parameters
        ----------
        asked : sequence of Asked
        names : mapping of Variable to str
            From what holds a column in the model to the name that it is stored by.
        """
        return ()

    def sums(self, asked: Sequence[Asked], names: Names, n_rows: int) -> list[Array] | None:
        """Return exact sums where the table itself makes them; None where blocks have to be added up. **Private**.

        Parameters
        ----------
        asked, names
            As for `check`.
        n_rows : int
            As many as there must be.

        Returns
        -------
        list of int64 arrays or None
            One for each of `asked`, as `Asked.of` gives them.

        Raises
        ------
        PrivacyError
            `CHANGED`, or without a text of the engine's, which may show a value.
        """
        return None


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
                    f"{type(array).__name__}. Give columns of files by rows=dp.Parquet(...), those of a lazy frame by "
                    "rows=dp.Table(...)."
                )
            if array.ndim == 0 or array.dtype.kind not in "biufU":
                raise ArgumentError(
                    f"rows[{name!r}] must hold numbers or booleans, with an axis that counts rows; it has dtype "
                    f"{kind_of(array.dtype)} and {array.ndim} axes. Write labels as codes, by a public list of them: "
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
            "rows must map names of the model to arrays, or be dp.Parquet(...) or dp.Table(...), got "
            f"{type(rows).__name__}. {HINT}"
        )
    return Arrays(rows)


Names = Mapping[Variable, str]
"""From what holds a column in the model to the name that it is stored by."""


class Description(str):
    """What is shown of stored rows where settings are: a text without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


__all__ = ["HINT", "Arrays", "Description", "Layout", "Names", "Part", "Rows", "StoredRows", "stored_rows"]
