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
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.rows import Array, shape_of
from pymc_dp.rows.passes import Passes

BLOCK_BYTES = 2**22
"""What is read at a time."""
HeldAs = Callable[[Array], Array]
PREFIX = "pymc_dp_rows_"
BINARY = getattr(os, "O_BINARY", 0)  # Windows would write line ends otherwise


class Spool:
    """A folder with one file per column, which goes with its owner: with this object, or with the process.

    Only a process that is killed leaves it behind. Copies, as other processes get them, know the way there and own
    nothing. Where files are mapped they outlive their names.

    Parameters
    ----------
    layout : sequence of (dtype, shape)
        Of every column.
    scratch : str, optional
        Where to make the folder; by default where `tempfile` does.
    """

    def __init__(self, layout: Sequence[tuple[str, tuple[int, ...]]], scratch: str | None) -> None:
        self.layout = tuple(layout)
        self.folder = tempfile.mkdtemp(prefix=PREFIX, dir=scratch)
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
    scratch: str | None = None,
    held_as: HeldAs = lambda values: values,
    passed: Callable[[int], None] = lambda rows: None,
) -> SpooledRows:
    """Clamp stored rows into a new spool. Reads private data: the budget must have been charged.

    Parameters
    ----------
    rows : Passes
        Read once.
    scratch : str, optional
    held_as : callable
        What clamped values become last: floats of another width.
    passed : callable
        Called with the number of rows that were copied since the last call.

    Raises
    ------
    PrivacyError
        If rows cannot be read or written, or are not as many as before.
    """
    dtypes = (held_as(np.empty(0, dtype=column.leaf.type.dtype)).dtype for column in rows.columns)
    shapes = ((rows.n_rows, *shape_of(column.leaf)[1:]) for column in rows.columns)
    spool = Spool(list(zip(map(str, dtypes), shapes, strict=True)), scratch)
    with copying(spool):
        _fill(spool, rows, held_as, passed)
    return opened(spool)


@contextmanager
def copying(spool: Spool) -> Iterator[None]:
    """Remove a spool that could not be written, and say so without a value."""
    try:
        yield
    except BaseException as error:
        spool.remove()
        if isinstance(error, PrivacyError) or not isinstance(error, Exception):
            raise
        what = error.strerror if isinstance(error, OSError) else type(error).__name__  # other texts may show a value
        raise PrivacyError(
            f"The rows could not be copied ({what}). Where there is no room left, give another folder by scratch=, or "
            "by the environment variable TMPDIR."
        ) from None


def _fill(spool: Spool, rows: Passes, held_as: HeldAs, passed: Callable[[int], None]) -> None:
    """Write all rows."""
    layouts = rows.stored.layouts()
    widest = sum(layouts[name].row_bytes for name in rows.names) + sum(
        int(np.prod(shape[1:])) * np.dtype(dtype).itemsize for dtype, shape in spool.layout
    )
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


def check_scratch(scratch: str | None, n_bytes: int | None) -> None:
    """Refuse a folder in which there is no room; `n_bytes` is None where the size of the table is private.

    Raises
    ------
    ArgumentError
    """
    folder = tempfile.gettempdir() if scratch is None else scratch
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentError(f"scratch={folder!r} is no folder that can be written to. Give another one.")
    free = shutil.disk_usage(folder).free
    if n_bytes is not None and n_bytes > free:
        raise ArgumentError(
            f"The clamped copy of the rows takes {n_bytes / 1e9:.3g} GB, and {folder} has {free / 1e9:.3g} GB left. "
            "Give a folder with more room by scratch=."
        )


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["Spool", "SpooledRows", "check_scratch", "copying", "opened", "private_file", "spooled"]
