"""The newest line of every stored ledger that this account has seen: a copy from a backup has forgotten spends.

One small file per ledger in the folder for states of programs (``$XDG_STATE_HOME``, ``~/.local/state``; on Windows
``%LOCALAPPDATA%``). It is a safeguard against accidents: who wants to can delete it.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pymc_dp.accounting.stores import Line
from pymc_dp.errors import PrivacyError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def folder() -> Path:
    """Return where the marks are; OSError where this account has no folder at all."""
    local = os.environ.get("LOCALAPPDATA") if os.name == "nt" else None
    base = local or os.environ.get("XDG_STATE_HOME")
    if base:
        return Path(base) / "pymc_dp"
    try:
        return Path.home() / ".local" / "state" / "pymc_dp"
    except RuntimeError as error:
        raise OSError(str(error)) from None


def require_markable() -> None:
    """Warn where nothing can be noted. Before a spend: where warnings are errors, nothing is spent."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        if not os.access(folder(), os.W_OK | os.X_OK):
            raise PermissionError(str(folder()))
    except OSError as error:
        _warn(error)


def _warn(error: OSError) -> None:
    warnings.warn(
        f"The newest line of the ledger cannot be noted ({type(error).__name__}: {error}): if an older copy of the "
        "ledger were put in its place, this would not be seen here. What is spent is in the ledger. Let "
        "XDG_STATE_HOME be a folder that can be written.",
        UserWarning,
        stacklevel=3,
    )


def mark(name: str, line: Line) -> None:
    """Note that this line of a ledger is on the disk of its database; an older one is never noted over a newer one."""
    try:
        with _alone():
            before = seen(name)
            if before is not None and before[0] >= line.seq:
                return
            handle, written = tempfile.mkstemp(dir=folder())
            with os.fdopen(handle, "w") as file:
                file.write(f"{line.seq} {line.hash}")
                file.flush()
                os.fsync(file.fileno())
            Path(written).replace(folder() / name)
    except OSError as error:
        with suppress(UserWarning):  # where warnings are errors: what is paid for must be released
            _warn(error)


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes and threads from writing marks, if they come to an end in a second."""
    if fcntl is None:
        yield
        return
    held = os.open(folder(), os.O_RDONLY)
    try:
        for _ in range(100):
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_UN)  # a fork may have a copy, which closing leaves locked
        os.close(held)


def require_newest(
    name: str,
    marked: tuple[int, str] | None,
    lines: Sequence[Line],
    dataset: str,
    hash_at: Callable[[int], str | None] | None = None,
) -> None:
    """Raise PrivacyError where a line that was seen before is not there, or is another one.

    Parameters
    ----------
    name : str
        Of the ledger.
    marked : (int, str) pair or None
        What `seen` returned before the lines were read, or while nobody else could add one.
    lines : sequence of Line
        Its last ones, or all of them.
    dataset : str
    hash_at : callable, optional
        Finds the hash of a line that is not among `lines`.
    """
    if marked is None:
        return
    seq, expected = marked
    found = {line.seq: line.hash for line in lines}.get(seq)
    if found is None and hash_at is not None and seq < lines[-1].seq:
        found = hash_at(seq)
    if found != expected:
        raise PrivacyError(
            f"This is not the newest copy of the ledger of {dataset!r}: line {seq} was written once and is not in it, "
            "so that it has forgotten what was spent (a restored backup, a snapshot, a copy on another machine). "
            "Nothing was spent and no data were read. Put the newest copy back. If there is none, what was released "
            f"can be found in traces and reports; only then remove {folder() / name}."
        )


def seen(name: str) -> tuple[int, str] | None:
    """Return number and hash of the newest line that was noted, or None."""
    with suppress(OSError, ValueError):
        seq, found = (folder() / name).read_text().split()
        return int(seq), found
    return None


__all__ = ["folder", "mark", "require_markable", "require_newest", "seen"]
