"""Where the lines of a ledger are: in this process alone, or in a database that outlives it."""

from __future__ import annotations

import getpass
import json
import os
import platform
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, final, override

from pymc_dp import _validate
from pymc_dp._versions import version_of
from pymc_dp.accounting.entry import FORMAT, Entry, State, Terms
from pymc_dp.accounting.high_water import mark, require_markable, require_newest, seen
from pymc_dp.accounting.postgresql_store import PostgreSQL
from pymc_dp.accounting.sqlite_store import SQLite
from pymc_dp.accounting.stores import Line, Locked, Store
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.process import Birthplace

_WRITING = threading.local()
"""Places of the databases into which this thread is writing."""


class Book(ABC):
    """The state of a ledger and its lines, oldest first."""

    terms: Terms

    @property
    @abstractmethod
    def key(self) -> str:
        """Identity of the ledger, drawn at random when it was made: that of all objects which write into it."""

    @property
    @abstractmethod
    def state(self) -> State:
        """What was spent so far."""

    @property
    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """The spends."""

    @abstractmethod
    def require_payable(self) -> None:
        """Raise PrivacyError where this object must not spend, before anything is computed."""

    @abstractmethod
    @contextmanager
    def changing(self, what: str) -> Iterator[State]:
        """Keep everybody else from writing within a block, and hand out the state. `what` is for error texts."""

    @abstractmethod
    def spent(self, entry: Entry, state: State) -> Entry:
        """Write a spend and the state after it; within `changing` alone. Return the line as it stands there."""

    @abstractmethod
    def granted(self, who: str, state: State) -> None:
        """Write that `who` has a share; within `changing` alone."""

    @abstractmethod
    def remarked(self, entry: Entry, text: str) -> Entry:
        """Write beside a line what became of it, and return it as it stands there now."""


@final
class Memory(Book):
    """Lines in this process; a fork of it has a copy that cannot spend."""

    def __init__(self, terms: Terms, state: State) -> None:
        self.terms = terms
        self._state, self._entries = state, ()
        self._name = os.urandom(16).hex()
        self._lock = threading.RLock()
        self._spending = False
        self.birthplace = Birthplace()

    _entries: tuple[Entry, ...]

    @property
    @override
    def key(self) -> str:
        return self._name

    @property
    @override
    def state(self) -> State:
        return self._state

    @property
    @override
    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @override
    def require_payable(self) -> None:
        if not self.birthplace.here:
            raise PrivacyError(
                f"This ledger was opened in process {self.birthplace.pid}, and process {os.getpid()} holds a copy of "
                "it, which cannot spend: the other copies would not know, and the same budget would be spent twice. "
                "Nothing was spent and no data were read. Make the release in the process that opened the ledger, and "
                "hand its trace or its private model to the others; or keep the ledger in a file, "
                'dp.Ledger.create("budget.sqlite", ...), which all of them may open.'
            )

    @override
    @contextmanager
    def changing(self, what: str) -> Iterator[State]:
        self.require_payable()  # before the lock, which a fork may have copied while a thread held it
        with self._lock:
            if self._spending:
                raise _in_another_spend(what)
            self._spending = True
            try:
                yield self._state
            finally:
                self._spending = False

    @override
    def spent(self, entry: Entry, state: State) -> Entry:
        self._state, self._entries = state, (*self._entries, entry)
        return entry

    @override
    def granted(self, who: str, state: State) -> None:
        self._state = state

    @override
    def remarked(self, entry: Entry, text: str) -> Entry:
        with self._lock:
            if not any(line is entry for line in self._entries):
                raise _no_line(entry)
            new = replace(entry, label=f"{entry.label} ({text})")
            self._entries = tuple(new if line is entry else line for line in self._entries)
            return new


@final
class Stored(Book):
    """Lines in a database, each with a hash of itself and of all before it.

    A line holds the state after it, so that the next spend starts from what was decided, and not from what another
    version of the package would decide today.

    Parameters
    ----------
    store : Store
    name : str
        Of the ledger within the store: its identity, drawn at random when it was created.
    terms : Terms
    """

    def __init__(self, store: Store, name: str, terms: Terms) -> None:
        self.store, self.name, self.terms = store, name, terms
        self._of_thread = threading.local()  # no lock, which a fork could copy while another thread holds it

    @override
    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Stored) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.name)

    @override
    def __reduce__(self) -> Any:
        return Stored, (self.store, self.name, self.terms)

    @property
    def _held(self) -> tuple[Locked, Line] | None:
        """The ledger that this thread keeps others from writing into, and its last line."""
        return getattr(self._of_thread, "held", None)

    @_held.setter
    def _held(self, held: tuple[Locked, Line] | None) -> None:
        self._of_thread.held = held

    @classmethod
    def create(cls, store: Store, terms: Terms, state: State) -> Stored:
        """Write the first line of a new ledger."""
        require_markable()
        name = os.urandom(16).hex()
        body = _body("opened", state, {"terms": terms.to_dict(), "ledger": name})
        line = Line(seq=0, body=body, hash=_hash("", body))
        store.create(name, terms.dataset, FORMAT, line)
        mark(name, line)
        return cls(store, name, terms)

    @classmethod
    def open(cls, store: Store, dataset: str | None) -> Stored:
        """Find the ledger of a data set, and check the chain of its lines."""
        found = store.ledgers()
        if dataset is None and len(found) == 1:
            (dataset,) = found
        if dataset is None or dataset not in found:
            names = ", ".join(repr(name) for name in sorted(found)) or "of no data set"
            wanted = "dataset must say which of them" if dataset is None else f"none of them is of {dataset!r}"
            raise ArgumentError(
                f"{store.place} holds ledgers: {names}; {wanted}. Write dataset=... as it stands there."
            )
        name, written = found[dataset]
        if written > FORMAT:
            raise PrivacyError(
                f"The ledger of {dataset!r} in {store.place} was written by a later version of pymc_dp (format "
                f"{written}; this one reads up to {FORMAT}). Nothing was spent. Update pymc_dp."
            )
        marked = seen(name)  # before the lines are read: others may add some in between, and mark them
        lines = store.lines(name)
        check_chain(lines, dataset)
        require_newest(name, marked, lines, dataset)
        return cls(store, name, Terms.from_dict(json.loads(lines[0].body)["terms"]))

    @property
    @override
    def key(self) -> str:
        return self.name

    @property
    @override
    def state(self) -> State:
        return _state_of(self.store.last(self.name))

    @property
    def lines(self) -> list[Line]:
        """All lines as they are stored."""
        return self.store.lines(self.name)

    @property
    @override
    def entries(self) -> tuple[Entry, ...]:
        found: dict[int, Entry] = {}
        for line in self.lines:
            body = json.loads(line.body)
            if body["kind"] == "spent":
                found[line.seq] = Entry.from_dict(body["entry"], line.seq, body["time"], line.hash)
            elif body["kind"] == "remarked":
                found[body["of"]] = replace(found[body["of"]], label=f"{found[body['of']].label} ({body['text']})")
        return tuple(found.values())

    @override
    def require_payable(self) -> None:
        """Every process has a connection of its own, and the database lets one of them write at a time."""

    @override
    @contextmanager
    def changing(self, what: str) -> Iterator[State]:
        busy: set[str] = vars(_WRITING).setdefault("places", set())
        if self.store.place in busy:  # it would wait for itself
            raise _in_another_spend(what)
        written: Line | None = None
        require_markable()
        try:
            busy.add(self.store.place)
            with self.store.locked(self.name) as locked:
                last, before = locked.last(), locked.hash_before()
                if _hash(before, last.body) != last.hash:
                    raise _broken(self.terms.dataset, last.seq)
                require_newest(self.name, seen(self.name), [last], self.terms.dataset, locked.hash_at)
                self._held = locked, last
                try:
                    yield _state_of(last)
                    written = self._held[1] if self._held[1] is not last else None
                finally:
                    self._held = None
        finally:
            busy.discard(self.store.place)
        if written is not None:  # here it is on the disk
            mark(self.name, written)

    @override
    def spent(self, entry: Entry, state: State) -> Entry:
        line = self._write("spent", state, {"entry": entry.to_dict()})
        return replace(entry, seq=line.seq, time=json.loads(line.body)["time"], hash=line.hash)

    @override
    def granted(self, who: str, state: State) -> None:
        self._write("granted", state, {"who": who})

    @override
    def remarked(self, entry: Entry, text: str) -> Entry:
        self._note("remarked", entry, {"text": text})
        return replace(entry, label=f"{entry.label} ({text})")

    def keep_release(self, entry: Entry, release: Mapping[str, Any]) -> None:
        """Write what a spend released beside it: it may be lost in this process, and costs nothing to have again."""
        self._note("released", entry, {"release": release})

    def release(self, seq: int) -> Mapping[str, Any] | None:
        """Return what the spend of this number released; None where it has not been kept."""
        found = [json.loads(line.body) for line in self.lines]
        kept = [body["release"] for body in found if body["kind"] == "released" and body["of"] == seq]
        return kept[-1] if kept else None

    def _note(self, kind: str, entry: Entry, more: Mapping[str, Any]) -> None:
        with self.changing(entry.label) as state:
            assert self._held is not None
            if entry.seq is None or self._held[0].hash_at(entry.seq) != entry.hash:
                raise _no_line(entry)
            self._write(kind, state, {"of": entry.seq, **more})

    def _write(self, kind: str, state: State, more: Mapping[str, Any]) -> Line:
        assert self._held is not None
        locked, last = self._held
        body = _body(kind, state, more)
        line = Line(seq=last.seq + 1, body=body, hash=_hash(last.hash, body))
        locked.add(line)
        self._held = locked, line
        return line


def check_chain(lines: list[Line], dataset: str) -> None:
    """Raise PrivacyError where a line was changed, taken out or put in."""
    before = ""
    for seq, line in enumerate(lines):
        if line.seq != seq or _hash(before, line.body) != line.hash:
            raise _broken(dataset, seq)
        before = line.hash
    if not lines:
        raise _broken(dataset, 0)


def _in_another_spend(what: str) -> PrivacyError:
    return PrivacyError(
        f"{what!r} would be paid for by a signal handler or a finalizer, in the middle of another spend of the same "
        "thread. Nothing was spent for it. Release where the program itself is running."
    )


def _broken(dataset: str, seq: int) -> PrivacyError:
    return PrivacyError(
        f"Line {seq} of the ledger of {dataset!r} was changed after it was written, or lines are missing: what was "
        "spent is not known any more. Nothing was spent and no data were read. Restore the newest copy of the ledger; "
        "traces and reports state its head (line and hash) at their time."
    )


def _no_line(entry: object) -> ArgumentError:
    return ArgumentError(f"entry must be a line of this ledger's history, got {_validate.shown(entry)}.")


def _state_of(line: Line) -> State:
    return State.from_dict(json.loads(line.body)["state"])


def _body(kind: str, state: State, more: Mapping[str, Any]) -> str:
    """Write a line in canonical JSON."""
    # The nonce: two processes that go on from copies of one ledger must not write the same line.
    who = {"user": "", "host": platform.node(), "pid": os.getpid(), "nonce": os.urandom(8).hex()}
    with suppress(OSError, KeyError, ImportError):  # there are processes without a user
        who["user"] = getpass.getuser()
    time = datetime.now(UTC).isoformat(timespec="seconds")
    written = {"kind": kind, "state": state.to_dict(), "time": time, "version": version_of("pymc_dp"), **who, **more}
    return json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _hash(before: str, body: str) -> str:
    return sha256(f"{before}\n{body}".encode()).hexdigest()


def store_of(place: str | Path) -> Store:
    """Return the database at a path or a URL (``postgresql://...``)."""
    text = str(place)
    return PostgreSQL(text) if text.startswith(("postgresql://", "postgres://")) else SQLite(Path(text).absolute())


__all__ = ["Book", "Memory", "Stored", "check_chain", "store_of"]
