"""The newest line of every stored ledger that this account has seen: a copy from a backup has forgotten spends.

One small file per ledger in the folder for states of programs (``$XDG_STATE_HOME``, ``~/.local/state``; on Windows
``%LOCALAPPDATA%``). It is a safeguard against accidents: who wants to can delete it.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pymc_dp.accounting.stores import Line
from pymc_dp.errors import PrivacyError


def folder() -> Path:
    """Return where the marks are."""
    local = os.environ.get("LOCALAPPDATA") if os.name == "nt" else None
    base = local or os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "pymc_dp"


def mark(name: str, line: Line) -> None:
    """Note that this line of a ledger is on the disk of its database; an older one is never noted over a newer one."""
    seen = _seen(name)
    if seen is not None and seen[0] >= line.seq:
        return
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=folder())
        with os.fdopen(handle, "w") as file:
            file.write(f"{line.seq} {line.hash}")
            file.flush()
            os.fsync(file.fileno())
        Path(written).replace(folder() / name)
    except OSError as error:
        warnings.warn(
            f"The newest line of the ledger could not be noted in {folder()} ({type(error).__name__}): if an older "
            "copy of the ledger were put in its place, this would not be seen here. What was spent is in the ledger.",
            UserWarning,
            stacklevel=2,
        )


def require_newest(
    name: str, lines: Sequence[Line], dataset: str, hash_at: Callable[[int], str | None] | None = None
) -> None:
    """Raise PrivacyError where a line that was seen before is not there, or is another one.

    Parameters
    ----------
    name : str
        Of the ledger.
    lines : sequence of Line
        Its last ones, or all of them.
    dataset : str
    hash_at : callable, optional
        Finds the hash of a line that is not among `lines`.
    """
    seen = _seen(name)
    if seen is None:
        return
    seq, expected = seen
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


def _seen(name: str) -> tuple[int, str] | None:
    with suppress(OSError, ValueError):
        seq, found = (folder() / name).read_text().split()
        return int(seq), found
    return None


__all__ = ["folder", "mark", "require_newest"]
