"""Passes over stored rows: each reads every row once, some at a time, as the model would hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, final

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.gate import require_open
from pymc_dp.rows.stored import Part, StoredRows, by_column, held

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
        require_open()
        return self._chunks(size)

    def _chunks(self, size: int) -> Iterator[Callable[[], list[Array]]]:
        count = 0
        for block in self.stored.blocks(size):
            parts = [block[name] for name in self.names]
            count += len(parts[0][0].values)
            if count > self.n_rows:
                break
            yield partial(_held, self.columns, parts)
        if count != self.n_rows:
            raise PrivacyError(CHANGED)


def _held(columns: Sequence[Column], parts: Sequence[Sequence[Part]]) -> list[Array]:
    return [held(column, part) for column, part in zip(columns, parts, strict=True)]


__all__ = ["CHANGED", "Passes"]
