"""Clamped columns in files that nobody else may read, mapped into memory: a table that does not fit there.

One pass over the stored rows clamps them, a block at a time; whatever is compiled sees an ordinary array afterwards,
whose values are all within their bounds.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array, shape_of
from pymc_dp.rows.passes import Passes

BLOCK_BYTES = 2**22
"""What is read at a time."""
HeldAs = Callable[[Array], Array]
PREFIX = "pymc_dp_rows_"
BINARY = getattr(os, "O_BINARY", 0)  # Windows would write line ends otherwise


def as_clamped(values: Array) -> Array:
    """Hold clamped values as they are."""
    return values


@dataclass(frozen=True, kw_only=True)
class Scratch:
    """Where copies of rows are made, and how another folder is named.

    Attributes
    ----------
    folder : str, optional
        By default that of `tempfile`.
    call : str
        What takes ``scratch=``; empty where nothing does.
    """

    folder: str | None = None
    call: str = ""

    @property
    def path(self) -> str:
        """The folder."""
        return tempfile.gettempdir() if self.folder is None else self.folder

    @property
    def remedy(self) -> str:
        """What to do where it has too little room."""
        if self.call:
            return f'Name a folder with more room: {self.call}(scratch="/folder/with/room").'
        return "Name a folder with more room in the environment variable TMPDIR, before Python starts."

    def require(self, found: Inspection, row_bytes: int) -> None:
        """Refuse a folder without room for a copy of the rows, before anything is charged.

        Parameters
        ----------
        found : Inspection
            Its public number of rows is asked for, or the public bound where the number is private.
        row_bytes : int
            That a row takes in the copy; 0 where nothing is copied. Then only a folder that was named is looked at.

        Raises
        ------
        ArgumentError
        """
        if self.folder is None and not row_bytes:
            return
        folder = self.path
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
            subject = f"The folder for temporary files, {folder}," if self.folder is None else f"scratch={folder!r}"
            raise ArgumentError(f"{subject} is no folder that can be written to. Nothing was spent. {self.remedy}")
        needed, free = row_bytes * found.most_rows, shutil.disk_usage(folder).free
        if needed > free:
            raise ArgumentError(
                f"The copy of the rows needs {needed:,} bytes in {folder}, which has {free:,} bytes left. It takes "
                f"{row_bytes} bytes a row, for {_counted(found.domain, found.n_rows)}. Nothing was spent. {self.remedy}"
            )

    def failed(self, error: Exception) -> PrivacyError:
        """Return what is said where rows could not be copied, after the charge: no value, which a text may show."""
        known = error.strerror if isinstance(error, OSError) else None
        what = f"The rows could not be copied to {self.path} ({known or type(error).__name__})."
        spent = "The budget is spent, and nothing was released. Another call is charged again."
        return PrivacyError(" ".join([what, spent, *([self.remedy] if isinstance(error, OSError) else [])]))


def _counted(domain: Domain, n_rows: int) -> str:
    """Say how many rows room is asked for: a public number."""
    if domain.n_max is None:
        return f"{n_rows:,} rows"
    if domain.unit is None:
        return f"at most n_max={domain.n_max:,} rows"
    return f"at most n_max={domain.n_max:,} persons with max_rows={domain.unit.max_rows:,} rows each"


class Spool:
    """A folder with one file per column, which goes with its owner: with this object, or with the process.

    Only a process that is killed leaves it behind. Copies, as other processes get them, know the way there and own
    nothing. Where files are mapped they outlive their names.

    Parameters
    ----------
    layout : sequence of (dtype, shape)
        Of every column.
    scratch : Scratch
        Where to make the folder.

    Raises
    ------
    PrivacyError
        If it cannot be made.
    """

    def __init__(self, layout: Sequence[tuple[str, tuple[int, ...]]], scratch: Scratch) -> None:
        self.layout, self.scratch = tuple(layout), scratch
        try:
            self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=scratch.folder)
        except OSError as error:
            raise scratch.failed(error) from None
        self._end = weakref.finalize(self, _remove, self.folder, os.getpid())

    def __getstate__(self) -> dict[str, object]:
        return {"layout": self.layout, "folder": self.folder}

    def path(self, place: int) -> Path:
        """Return the file of a column, which is called by its place."""
        return Path(self.folder) / str(place)

    def remove(self) -> None:
        """Remove the files now; a copy removes nothing."""
        if "_end" in vars(self):
            self._end()


class SpooledRows(tuple[Array, ...]):
    """The columns of a spool as arrays; a copy for another process is the way there alone."""

    spool: Spool

    def __reduce__(self) -> tuple[Any, ...]:
        return opened, (self.spool,)


def spooled(
    rows: Passes,
    *,
    scratch: Scratch,
    held_as: HeldAs = as_clamped,
    passed: Callable[[int], None] = lambda rows: None,
) -> SpooledRows:
    """Clamp stored rows into a new spool. Reads private data: the budget must have been charged.

    Parameters
    ----------
    rows : Passes
        Read once.
    scratch : Scratch
    held_as : callable
        What clamped values become last: floats of another width.
    passed : callable
        Called with the number of rows that were copied since the last call.

    Raises
    ------
    PrivacyError
        If rows cannot be read or written, or are not as many as before.
    """
    layout = [(str(dtype), (rows.n_rows, *shape)) for dtype, shape in _row_layout(rows, held_as)]
    spool = Spool(layout, scratch)
    with copying(spool):
        _fill(spool, rows, held_as, passed)
    return opened(spool)


def row_bytes(rows: Passes, held_as: HeldAs = as_clamped) -> int:
    """Return how many bytes a row takes in a spool. Reads no row."""
    return sum(int(np.prod(shape)) * dtype.itemsize for dtype, shape in _row_layout(rows, held_as))


def _row_layout(rows: Passes, held_as: HeldAs) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return dtype and shape of a row in every column of a spool."""
    empty = (np.empty(0, dtype=column.leaf.type.dtype) for column in rows.columns)
    return [(held_as(one).dtype, shape_of(column.leaf)[1:]) for one, column in zip(empty, rows.columns, strict=True)]


@contextmanager
def copying(spool: Spool) -> Iterator[None]:
    """Remove a spool that could not be written, and say so without a value."""
    try:
        yield
    except BaseException as error:
        spool.remove()
        if isinstance(error, PrivacyError) or not isinstance(error, Exception):
            raise
        raise spool.scratch.failed(error) from None


def _fill(spool: Spool, rows: Passes, held_as: HeldAs, passed: Callable[[int], None]) -> None:
    """Write all rows."""
    layouts = rows.stored.layouts()
    widest = sum(layouts[name].row_bytes for name in rows.names) + row_bytes(rows, held_as)
    with ExitStack() as stack:
        files = [stack.enter_context(private_file(spool.path(place))) for place in range(len(rows.columns))]
        for chunk in rows.chunks(max(1, BLOCK_BYTES // max(1, widest))):
            columns = chunk()
            for file, values in zip(files, columns, strict=True):
                file.write(held_as(values).data)
            passed(len(columns[0]))


def private_file(path: Path) -> BinaryIO:
    """Make a file that only its owner can read, whatever the mask of the process."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600), "wb")


def opened(spool: Spool) -> SpooledRows:
    """Map the columns of a spool into memory."""
    try:
        rows = SpooledRows(
            _mapped(spool.path(place), np.dtype(dtype), shape) for place, (dtype, shape) in enumerate(spool.layout)
        )
    except FileNotFoundError:
        raise PrivacyError("The rows of this step are gone, with the step that it was copied from.") from None
    rows.spool = spool
    return rows


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:  # an empty file cannot be mapped
        return np.empty(shape, dtype=dtype)
    # Open to writing, as arrays in memory are: compiled loops are other ones for arrays that are not.
    with path.open("r+b") as file:
        pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_WRITE)
    return np.frombuffer(pages, dtype=dtype).reshape(shape)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["Scratch", "Spool", "SpooledRows", "copying", "opened", "private_file", "row_bytes", "spooled"]
