"""Stored rows of persons: copied once into files by a hash of the person, so that a person is whole in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Any, Self, final

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array, Column, shape_of
from pymc_dp.rows.passes import Passes, held
from pymc_dp.rows.persons import DIGEST, Grouped, grouped, hashes_of, identified, somebody, spans
from pymc_dp.rows.spool import BLOCK_BYTES, Scratch, Spool, copying, private_file
from pymc_dp.rows.stored import Part

PART_BYTES = 2**26
"""About what a file holds: it is put in order in memory."""
MOST_FILES = 1024
OWNER = "owner"
Hold = Callable[[Column, Sequence[Part]], Array]
BY_TMPDIR = Scratch()
"""Where copies go that are made for sums: nothing takes another folder."""


def row_of(passes: Passes) -> np.dtype[Any]:
    """Return the dtype of a row in these files: whose it is, and its columns. Reads no row."""
    kinds = {dtype.kind for dtype in passes.stored.layouts()[str(passes.owner)].dtypes}
    fields: list[Any] = [(OWNER, np.dtype(np.uint64 if kinds <= {"i", "u"} else DIGEST))]
    for place, column in enumerate(passes.columns):
        fields.append((str(place), np.dtype(column.leaf.type.dtype), shape_of(column.leaf)[1:]))
    return np.dtype(fields)


@final
class PersonFiles:
    """Rows of a stored table in files that nobody else may read, all rows of a person in one of them. **Private**.

    A context: at its end the files are gone.

    Parameters
    ----------
    passes : Passes
        Over the table, with its `owner`. It is read once. Rows that are nobody's are left out.
    hold : callable
        What is kept of a block of a column.
    scratch : Scratch
    """

    def __init__(self, passes: Passes, hold: Hold, scratch: Scratch = BY_TMPDIR) -> None:
        self.columns = passes.columns
        self.dtype = row_of(passes)
        self.count = min(MOST_FILES, 1 + passes.n_rows * self.dtype.itemsize // PART_BYTES)
        self._spool = Spool((), scratch)
        self._edges, self._left_out = list[Array](), list[Array]()
        with copying(self._spool):
            for place in range(self.count):
                private_file(self._spool.path(place)).close()
            for owner, parts in passes.owned(max(1, BLOCK_BYTES // self.dtype.itemsize)):
                self._write(owner, [hold(column, one) for column, one in zip(self.columns, parts, strict=True)])

    @classmethod
    def of(cls, passes: Passes, most: int, scratch: Scratch = BY_TMPDIR) -> Self:
        """Copy a table, clamped, and put each person's rows that are kept side by side, once for all passes over them.

        Parameters
        ----------
        passes : Passes
        most : int
            At most so many rows of each person are kept, as of `grouped`: all passes see the same ones.
        scratch : Scratch
        """
        found = cls(passes, held, scratch)
        with copying(found._spool):
            for place in range(found.count):
                found._sort(place, most)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._spool.remove()

    def _write(self, owner: Part, columns: Sequence[Array]) -> None:
        """Append some rows to the files of their persons."""
        known = somebody(owner.values)
        if owner.missing is not None:
            known &= ~owner.missing
        who = identified(owner.values[known])
        rows = np.empty(len(who), dtype=self.dtype)
        rows[OWNER] = who
        for place, column in enumerate(columns):
            rows[str(place)] = column[known]
        where = (hashes_of(who) % np.uint64(self.count)).astype(np.int64)
        order = np.argsort(where, kind="stable")
        ends = np.searchsorted(where[order], np.arange(self.count + 1))
        for place, (start, stop) in enumerate(pairwise(ends)):
            if stop > start:
                with self._spool.path(place).open("ab") as file:
                    file.write(rows[order[start:stop]].data)

    def _sort(self, place: int, most: int) -> None:
        """Put the rows of a file that are kept in order, drop the others, and note where persons begin and end."""
        rows = np.fromfile(self._spool.path(place), dtype=self.dtype)
        numbers = np.arange(len(rows))
        columns = [np.ascontiguousarray(rows[str(k)]) for k in range(len(self.columns))]
        found = grouped(rows[OWNER], columns, most, beside=numbers)
        with self._spool.path(place).open("wb") as file:
            file.write(rows[found.columns[-1]].data)
        self._edges.append(found.edges)
        self._left_out.append(np.zeros(0) if found.left_out is None else found.left_out)

    def parts(self) -> Iterator[tuple[Array, list[Array]]]:
        """Yield persons and columns of one file after another."""
        for place in range(self.count):
            rows = np.fromfile(self._spool.path(place), dtype=self.dtype)
            yield rows[OWNER], [np.ascontiguousarray(rows[str(k)]) for k in range(len(self.columns))]

    def chunks(self, size: int) -> Iterator[Callable[[], Grouped]]:
        """Yield the rows of whole persons, about `size` at a time, as functions that read them."""
        for place, (edges, left) in enumerate(zip(self._edges, self._left_out, strict=True)):
            for first, last in spans(edges, size):
                yield partial(self._read, place, edges[first : last + 1], left[first:last])

    def _read(self, place: int, edges: Array, left: Array) -> Grouped:
        start, stop = int(edges[0]), int(edges[-1])
        size = self.dtype.itemsize
        rows = np.fromfile(self._spool.path(place), dtype=self.dtype, count=stop - start, offset=start * size)
        if len(rows) != stop - start:
            raise PrivacyError("The copy of the rows has changed on the way.")
        return Grouped([np.ascontiguousarray(rows[str(k)]) for k in range(len(self.columns))], edges - start, left)


__all__ = ["BY_TMPDIR", "PersonFiles", "row_of"]
