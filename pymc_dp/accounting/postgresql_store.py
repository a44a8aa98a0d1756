"""Ledgers in a database of PostgreSQL, for a team."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final, override

from pymc_dp._optional import require
from pymc_dp.accounting.stores import COLUMNS, PATIENCE, Line, Locked, Store, exists, failed, no_ledger
from pymc_dp.errors import ArgumentError, PrivacyError


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
        psycopg = require("psycopg", by="A ledger in PostgreSQL")
        try:
            with psycopg.connect(self.url, connect_timeout=int(PATIENCE)) as connection:
                yield connection
        except psycopg.Error as error:
            raise failed(self.place, error) from None

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


__all__ = ["PostgreSQL"]
