"""Databases that hold ledgers: SQLite in one file, PostgreSQL for a team. Lines are added, never changed.

What is confirmed is on the disk: SQLite deletes its journal and syncs the folder as well (``synchronous=EXTRA``),
PostgreSQL commits synchronously. One writer at a time reads the last line and adds the next.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final, override
from weakref import WeakSet

from pymc_dp.errors import ArgumentError, PrivacyError

PATIENCE = 30.0
"""Seconds that a writer waits for others."""
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "9p", "ceph", "glusterfs")
"""File systems whose locks are not to be relied on."""
COLUMNS = (
    "CREATE TABLE dp_ledger (id TEXT PRIMARY KEY, dataset TEXT NOT NULL UNIQUE, format INTEGER NOT NULL)",
    "CREATE TABLE dp_entry (ledger TEXT NOT NULL REFERENCES dp_ledger (id), seq INTEGER NOT NULL, body TEXT NOT NULL, "
    "hash TEXT NOT NULL, PRIMARY KEY (ledger, seq))",
)


class Line(NamedTuple):
    """One line of a ledger as it is stored: its number, its text, and the hash of both and of all lines before."""

    seq: int
    body: str
    hash: str


class Locked(ABC):
    """A ledger that nobody else writes into now."""

    @abstractmethod
    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement, with ``?`` for values."""

    def __init__(self, name: str) -> None:
        self.name = name

    def last(self) -> Line:
        """Return the last line."""
        found = self.query(_LAST, self.name)
        if not found:
            raise PrivacyError(
                "This ledger is not in its database any more: another one was put in its place, or lines were taken "
                "out. Nothing was spent and no data were read. dp.Ledger.open(place, dataset=...) opens what is there."
            )
        return Line(*found[0])

    def hash_before(self) -> str:
        """Return the hash of the last line but one, "" where there is none."""
        return self.hash_at(self.last().seq - 1) or ""

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of the line of this number."""
        found = self.query("SELECT hash FROM dp_entry WHERE ledger = ? AND seq = ?", self.name, seq)
        return found[0][0] if found else None

    def add(self, line: Line) -> None:
        """Add the next line."""
        self.query("INSERT INTO dp_entry (ledger, seq, body, hash) VALUES (?, ?, ?, ?)", self.name, *line)


_LAST = "SELECT seq, body, hash FROM dp_entry WHERE ledger = ? ORDER BY seq DESC LIMIT 1"


class Store(ABC):
    """A database with ledgers. The object holds no connection: it may be copied, pickled and forked.

    Attributes
    ----------
    place : str
        Where it is, as error texts say it: without a password.
    """

    place: str

    @abstractmethod
    @contextmanager
    def _reading(self) -> Iterator[Locked]:
        """Connect, to read."""

    @abstractmethod
    @contextmanager
    def locked(self, name: str) -> Iterator[Locked]:
        """Keep everybody else from writing into a ledger; what is added is on the disk at the end of the block."""

    @abstractmethod
    def create(self, name: str, dataset: str, written: int, line: Line) -> None:
        """Write the first line of a new ledger, in tables that are made where there are none."""

    def ledgers(self) -> dict[str, tuple[str, int]]:
        """Return the name and the format of the ledger of each data set."""
        with self._reading() as held:
            return {
                dataset: (name, form) for name, dataset, form in held.query("SELECT id, dataset, format FROM dp_ledger")
            }

    def lines(self, name: str) -> list[Line]:
        """Return all lines of a ledger, the first one first."""
        with self._reading() as held:
            found = held.query("SELECT seq, body, hash FROM dp_entry WHERE ledger = ? ORDER BY seq", name)
            return [Line(*line) for line in found]

    def last(self, name: str) -> Line:
        """Return the last line of a ledger."""
        with self._reading() as held:
            held.name = name
            return held.last()


def store_of(place: str | Path) -> Store:
    """Return the database at a path or a URL (``postgresql://...``)."""
    text = str(place)
    return PostgreSQL(text) if text.startswith(("postgresql://", "postgres://")) else SQLite(Path(text).absolute())


def no_ledger(place: str) -> ArgumentError:
    """Say that there is none to be opened."""
    return ArgumentError(
        f"There is no ledger at {place}. Check the spelling: opening never makes one, or a typo would open a fresh "
        "budget. The owner of the data makes it once: dp.Ledger.create(place, dataset=..., epsilon=...)."
    )


def exists(place: str, dataset: str) -> ArgumentError:
    """Say that there is one already."""
    return ArgumentError(
        f"{place} holds the ledger of {dataset!r} already, and a second budget for the same data would not add up. "
        f"Open it: dp.Ledger.open(place, dataset={dataset!r})."
    )


def _failed(place: str, error: Exception) -> PrivacyError:
    return PrivacyError(
        f"The ledger at {place} could not be read or written ({type(error).__name__}: {str(error).strip()}). Where "
        "nothing was confirmed, no data were read; print the ledger to see what was spent."
    )


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
            raise _failed(self.place, error) from None

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


@final
class _PostgreSQL(Locked):
    def __init__(self, connection: Any, name: str = "") -> None:
        super().__init__(name)
        self.connection = connection

    @override
    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(text.replace("?", "%s"), values or None)
        return cursor.fetchall() if cursor.description else []


_GUARDS = (
    "CREATE FUNCTION dp_only_added() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'a ledger is only added to'; END $$",
    "CREATE FUNCTION dp_next() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.seq <> (SELECT coalesce(max(seq), -1) + 1 FROM dp_entry WHERE ledger = NEW.ledger) "
    "THEN RAISE EXCEPTION 'a ledger is only added to'; END IF; RETURN NEW; END $$",
    *(
        f"CREATE TRIGGER {table}_fixed BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION dp_only_added()"
        for table in ("dp_entry", "dp_ledger")
    ),
    *(
        f"CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION dp_only_added()"
        for table in ("dp_entry", "dp_ledger")
    ),
    "CREATE TRIGGER dp_entry_next BEFORE INSERT ON dp_entry FOR EACH ROW EXECUTE FUNCTION dp_next()",
)


SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service")
"""Parameters of a URL that error texts may show."""


def _without_password(url: str) -> str:
    """Return a URL as error texts may say it; refuse one that PostgreSQL would quote a part of a password from."""
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        rest = rest.partition("@")[2]
    server, mark, query = rest.partition("?")
    parameters = [one.partition("=") for one in query.split("&") if one]
    ports = [host.rpartition("]")[2].rpartition(":")[2] for host in server.partition("/")[0].split(",") if ":" in host]
    if (
        "@" in server
        or re.search("%(?:00|(?![0-9A-Fa-f]{2}))", url)
        or not all(middle and "=" not in value for _, middle, value in parameters)
        or not all(port.isdecimal() or not port for port in ports)
    ):
        raise ArgumentError(
            "The URL of the database is none, or has an unusual character in its user or password. Write "
            "postgresql://user@server:port/database, and in each part %40 for @, %2F for /, %3F for ?, %3A for :, %25 "
            "for %, %3D for =, %26 for &; a password is best kept in ~/.pgpass."
        )
    shown = "&".join(f"{name}={value}" for name, _, value in parameters if name in SHOWN)
    return f"{scheme}://{server}{mark if shown else ''}{shown}"


@final
class PostgreSQL(Store):
    """Ledgers in a PostgreSQL database; needs the package psycopg (``pip install pymc-dp[postgres]``).

    Parameters
    ----------
    url : str
        ``postgresql://user@server/database``; a password is better kept in ``~/.pgpass``: this object holds it, and so
        do its pickles.
    """

    def __init__(self, url: str) -> None:
        self.url, self.place = url, _without_password(url)

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError:
            raise ArgumentError(
                "A ledger in PostgreSQL needs the package psycopg. Install it: pip install 'pymc-dp[postgres]'."
            ) from None
        try:
            with psycopg.connect(self.url, connect_timeout=int(PATIENCE)) as connection:
                yield connection
        except psycopg.Error as error:
            raise _failed(self.place, error) from None

    @override
    @contextmanager
    def _reading(self) -> Iterator[Locked]:
        with self._connected() as connection:
            held = _PostgreSQL(connection)
            self._require_there(held)
            yield held

    def _require_there(self, held: Locked) -> None:
        if held.query("SELECT to_regclass('dp_ledger')") == [(None,)]:
            self._require_nowhere(held)
            raise no_ledger(self.place)

    def _require_nowhere(self, held: Locked) -> None:
        """Raise ArgumentError where there are ledgers that this user does not see: a second budget would not add up."""
        found = held.query("SELECT schemaname FROM pg_tables WHERE tablename = 'dp_ledger'")
        if found:
            names = ", ".join(repr(name) for (name,) in found)
            raise ArgumentError(
                f"{self.place} holds ledgers in the schema {names}, which is not in the search_path of this user. Ask "
                "whoever manages the database to set it: ALTER ROLE ... SET search_path = ..."
            )

    @override
    @contextmanager
    def locked(self, name: str) -> Iterator[Locked]:
        with self._connected() as connection:
            held = _PostgreSQL(connection, name)
            _require_durable(held, self.place)  # the level of isolation is set before anything is read
            self._require_there(held)
            held.query("SELECT 1 FROM dp_ledger WHERE id = ? FOR UPDATE", name)
            yield held

    @override
    def create(self, name: str, dataset: str, written: int, line: Line) -> None:
        with self._connected() as connection:
            held = _PostgreSQL(connection, name)
            _require_durable(held, self.place)
            held.query("SELECT pg_advisory_xact_lock(4711)")  # of two that create, one makes the tables
            if held.query("SELECT to_regclass('dp_ledger')") == [(None,)]:
                self._require_nowhere(held)
                for statement in (*COLUMNS, *_GUARDS):
                    held.query(statement)
            if held.query("SELECT 1 FROM dp_ledger WHERE dataset = ?", dataset):
                raise exists(self.place, dataset)
            held.query("INSERT INTO dp_ledger VALUES (?, ?, ?)", name, dataset, written)
            held.add(line)


def _require_durable(held: Locked, place: str) -> None:
    """Begin a transaction whose end is on the disk, or raise."""
    held.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    held.query("SET LOCAL synchronous_commit = on")
    held.query(f"SET LOCAL lock_timeout = {int(1000 * PATIENCE)}")
    # A client that was stopped, or whose network went, would keep others out for hours; who waits for it waits longer.
    held.query(f"SET LOCAL idle_in_transaction_session_timeout = {int(700 * PATIENCE)}")
    ((fsync, standby),) = held.query("SELECT current_setting('fsync'), pg_is_in_recovery()")
    if fsync != "on" or standby:
        why = "it is a standby, which cannot be written to" if standby else "its setting fsync is off"
        raise PrivacyError(
            f"{place} cannot hold a ledger: {why}, so that what was spent could be forgotten. Nothing was spent."
        )


__all__ = ["Line", "Locked", "PostgreSQL", "SQLite", "Store", "store_of"]
