"""Ledgers in a file of SQLite."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, final, override
from weakref import WeakSet

from pymc_dp.accounting.stores import (
    COLUMNS,
    PATIENCE,
    Line,
    Locked,
    Store,
    exists,
    failed,
    no_ledger,
    no_permission,
    not_a_ledger,
)
from pymc_dp.errors import ArgumentError, PrivacyError

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "9p", "ceph", "glusterfs")
"""File systems whose locks are not to be relied on."""


@final
class _Opened:
    """A connection of this thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


@final
class _Connections:
    """How many connections to files there are; a fork waits until there is none.

    SQLite keeps in the memory of the process what it has locked. A fork of the process has this memory and not the
    locks: it would wait for ever, or read without one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: WeakSet[_Opened] = WeakSet()  # of a block that Ctrl+C has cut short, nothing is left in it

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one within a block."""
        opened = _Opened()
        with self._lock:
            self._open.add(opened)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(opened)

    def before_fork(self) -> None:
        """Wait for other threads, and let no one begin."""
        me, until = threading.get_ident(), time.monotonic() + 2 * PATIENCE
        self._lock.acquire()
        while any(opened.thread != me for opened in self._open) and time.monotonic() < until:
            self._lock.release()
            time.sleep(0.001)
            self._lock.acquire()

    def after_fork(self) -> None:
        """Let others go on."""
        self._lock.release()


_CONNECTIONS = _Connections()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_CONNECTIONS.before_fork,
        after_in_parent=_CONNECTIONS.after_fork,
        after_in_child=_CONNECTIONS.__init__,  # with no other threads, and none of their locks
    )


@final
class _SQLite(Locked):
    def __init__(self, connection: sqlite3.Connection, name: str = "") -> None:
        super().__init__(name)
        self.connection = connection

    @override
    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(text, values).fetchall()


_TRIGGERS = tuple(
    f"CREATE TRIGGER {table}_{what.lower()} BEFORE {what} ON {table} {when} BEGIN "
    "SELECT RAISE(ABORT, 'a ledger is only added to'); END"
    for table, what, when in (
        ("dp_entry", "UPDATE", ""),
        ("dp_entry", "DELETE", ""),
        # INSERT OR REPLACE deletes without the trigger of DELETE.
        (
            "dp_entry",
            "INSERT",
            "WHEN NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM dp_entry WHERE ledger = NEW.ledger)",
        ),
        ("dp_ledger", "UPDATE", ""),
        ("dp_ledger", "DELETE", ""),
        (
            "dp_ledger",
            "INSERT",
            "WHEN EXISTS (SELECT 1 FROM dp_ledger WHERE id = NEW.id OR dataset = NEW.dataset)",
        ),
    )
)


@final
class SQLite(Store):
    """Ledgers in one file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        _refuse_network(self.path)
        try:
            uri = f"{self.path.as_uri()}?mode={mode}"
            with (
                _CONNECTIONS.one(),
                closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=PATIENCE)) as connection,
            ):
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # macOS syncs to the drive alone without it
                yield connection
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from None

    def _failed(self, error: sqlite3.DatabaseError) -> PrivacyError:
        """Say what SQLite said; and what is wrong with a file that is no ledger, or not for this account."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            return not_a_ledger(self.place, "no file of SQLite")
        if "no such table: dp_ledger" in str(error):
            return not_a_ledger(self.place, "an empty file, or a database of something else")
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) and not self._permitted():
            return no_permission(self.place)
        return failed(self.place, error)

    def _permitted(self) -> bool:
        """Whether this account may read and write the file, and write beside it."""
        needed = os.R_OK | os.W_OK
        folder = os.access(self.path.parent, needed | os.X_OK)
        return folder and (not self.path.exists() or os.access(self.path, needed))

    def _require_there(self) -> None:
        if not self.path.is_file():
            raise no_ledger(self.place)

    @override
    @contextmanager
    def _reading(self) -> Iterator[Locked]:
        self._require_there()
        with self._connected("rw") as connection:  # "ro" could not roll back what a killed writer left
            yield _SQLite(connection)

    @override
    @contextmanager
    def locked(self, name: str) -> Iterator[Locked]:
        self._require_there()
        with self._connected("rw") as connection, _writing(connection):
            yield _SQLite(connection, name)

    @override
    def create(self, name: str, dataset: str, written: int, line: Line) -> None:
        if not self.path.parent.is_dir():
            raise ArgumentError(f"There is no folder {self.path.parent} to keep a ledger in. Make it first.")
        with self._connected("rwc") as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            with _writing(connection):
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'dp_ledger'").fetchall():
                    for statement in (*COLUMNS, *_TRIGGERS):
                        connection.execute(statement)
                if connection.execute("SELECT 1 FROM dp_ledger WHERE dataset = ?", (dataset,)).fetchall():
                    raise exists(self.place, dataset)
                connection.execute("INSERT INTO dp_ledger VALUES (?, ?, ?)", (name, dataset, written))
                _SQLite(connection, name).add(line)


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Lock the file, waiting for others in turns of random length: SQLite's own way of waiting is not fair."""
    connection.execute("PRAGMA busy_timeout = 0")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.001, 0.03))
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * PATIENCE)}")  # readers may hold up a commit
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _refuse_network(path: Path) -> None:
    """Refuse a file system that other machines share, where this can be seen."""
    mounts = Path("/proc/mounts")
    if not mounts.is_file():
        return
    kinds = {}
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        _, point, kind, *_ = line.split(" ")
        kinds[point.replace("\\040", " ")] = kind
    real = path.resolve()  # a link may lead elsewhere
    where = next((str(folder) for folder in (real, *real.parents) if str(folder) in kinds), None)
    if where is not None and kinds[where] in NETWORK:
        raise ArgumentError(
            f"{path} lies on a file system of kind {kinds[where]}, which other machines share and whose locks are not "
            "to be relied on. Keep the ledger on a local disk, or in PostgreSQL: "
            'dp.Ledger.create("postgresql://server/database", ...).'
        )


__all__ = ["SQLite"]
