"""Databases that hold ledgers: SQLite in one file, PostgreSQL for a team. Lines are added, never changed.

What is confirmed is on the disk: SQLite deletes its journal and syncs the folder as well (``synchronous=EXTRA``),
PostgreSQL commits synchronously. One writer at a time reads the last line and adds the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pymc_dp.errors import ArgumentError, PrivacyError

PATIENCE = 30.0
"""Seconds that a writer waits for others."""
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


def no_ledger(place: str) -> ArgumentError:
    """Say that there is none to be opened."""
    return ArgumentError(
        f"There is no ledger at {place}. Check the spelling: opening never makes one, or a typo would open a fresh "
        f"budget. {_MADE_BY}"
    )


_MADE_BY = "The owner of the data makes it once: dp.Ledger.create(place, dataset=..., epsilon=...)."


def not_a_ledger(place: str, why: str) -> ArgumentError:
    """Say what stands there instead."""
    return ArgumentError(f"{place} is not a ledger: it is {why}. Give the place of one. {_MADE_BY}")


def no_permission(place: str) -> PrivacyError:
    """Say that this account may not use it."""
    return PrivacyError(
        f"This account has no permission to read and write {place}, or its folder. Nothing was spent. Ask whoever "
        "owns the ledger: even who only looks into it finishes what a writer that was killed has left."
    )


def exists(place: str, dataset: str) -> ArgumentError:
    """Say that there is one already."""
    return ArgumentError(
        f"{place} holds the ledger of {dataset!r} already, and a second budget for the same data would not add up. "
        f"Open it: dp.Ledger.open(place, dataset={dataset!r})."
    )


def failed(place: str, error: Exception) -> PrivacyError:
    """Say what the database said; it knows lines of ledgers, and no rows."""
    return PrivacyError(
        f"The ledger at {place} could not be read or written ({type(error).__name__}: {str(error).strip()}). Where "
        "nothing was confirmed, no data were read; print the ledger to see what was spent."
    )


__all__ = ["COLUMNS", "PATIENCE", "Line", "Locked", "Store", "exists", "failed", "no_ledger", "no_permission"]
__all__ += ["not_a_ledger"]
