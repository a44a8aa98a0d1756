"""What can be checked of a trace that somebody published: against its own manifest and events, and against a ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import xarray as xr

from pymc_dp.accounting import Entry, Ledger
from pymc_dp.errors import PrivacyError
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, ROOM, check_cost, entries, read_record, unlisted


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    what : str
    outcome : {"ok", "note", "FAILED"}
        A note is for the reader to judge.
    says : str
        Shows no value of the trace.
    """

    what: str
    outcome: Literal["ok", "note", "FAILED"]
    says: str

    def __str__(self) -> str:
        return f"{self.outcome:<6} {self.what}: {' '.join(self.says.split())}"


def verify(
    tree: xr.DataTree, ledger: Callable[[str], Ledger] | None = None, datasets: Sequence[str] = ()
) -> Iterator[Check]:
    """Yield every check of a trace.

    Parameters
    ----------
    tree : xarray.DataTree
    ledger : callable, optional
        Opens the ledger of a data set, by its name.
    datasets : sequence of str
        Whose ledgers are looked at where the trace names none.

    Notes
    -----
    **Guarantee.** None. These checks find what was changed by hand or by mistake: whoever can write the file can write
    a record, events and a manifest that agree. A ledger that somebody else keeps is a witness of more.

    Examples
    --------
    >>> print(*verify(xr.DataTree()))
    FAILED  record: This DataTree has no /privacy group: ...
    """
    try:
        record = read_record(tree)
    except PrivacyError as error:
        yield Check(what="record", outcome="FAILED", says=str(error))
        return
    yield Check(what="record", outcome="ok", says="it is what the manifest lists")
    yield _events(record)
    yield _guarantee(record)
    yield from _contents(tree)
    for label, one in _charged(record):
        yield from _in_ledger(label, one, ledger)
        if ledger is not None and one.get("ledger") is None:
            for dataset in datasets:
                yield from _hashes(f"ledger of {dataset!r}", ledger, dataset)


def _events(record: Mapping[str, Any]) -> Check:
    try:
        check_cost(record, "The trace")
    except PrivacyError as error:
        return Check(what="events", outcome="FAILED", says=str(error))
    if not record["event"] and not record.get("sources"):
        return Check(what="events", outcome="note", says="none are recorded; ε is what others state")
    loss = f"ε = {record['epsilon']:g}, δ = {record['delta']:g}"
    return Check(what="events", outcome="ok", says=f"counted again, they cost no more than {loss}")


def _guarantee(record: Mapping[str, Any]) -> Check:
    says = str(record["guarantee"])
    if says == "none":
        return Check(what="guarantee", outcome="FAILED", says="none: the noise was seeded or left out")
    return Check(what="guarantee", outcome="note" if says in ("asymptotic", "stated") else "ok", says=says)


def _contents(tree: xr.DataTree) -> Iterator[Check]:
    """Look at every group, variable and attribute."""
    additions = unlisted(tree).lines
    for text in additions:
        yield Check(what="manifest", outcome="FAILED", says=text)
    listed, found = json.loads(tree[PRIVACY].attrs[MANIFEST]), dict(entries(tree))
    if not additions:
        says = f"all {len(found)} groups, variables and attributes are listed, with their hashes"
        yield Check(what="manifest", outcome="ok", says=says)
    if missing := [path for path in listed if path not in found]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Check(what="manifest", outcome="note", says=f"listed, but not in the file: {missing[0]}{more}")


def _charged(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what was charged, each with how it is called: several releases, or the one."""
    sources = record.get("sources") or ()
    return [(f"ledger, release {one['label']}", one["record"]) for one in sources] or [("ledger", record)]


def _in_ledger(what: str, record: Mapping[str, Any], opened: Callable[[str], Ledger] | None) -> Iterator[Check]:
    head = record.get("ledger")
    if head is None:
        if not record.get("maker"):
            says = "the trace names none, so that nothing says what else was released from these rows"
            yield Check(what=what, outcome="note", says=says)
        return
    line = f"line {head['line']} of the ledger of {head['dataset']!r}"
    if opened is None:
        yield Check(what=what, outcome="note", says=f"the trace names {line}, hash {head['hash'][:16]}…; not looked at")
        return
    ledger = yield from _hashes(what, opened, head["dataset"])
    if ledger is None:
        return
    last = ledger.head or {}
    entry = next((one for one in ledger.history if one.seq == head["line"]), None)
    if last.get("ledger") != head["ledger"] or entry is None or entry.hash != head["hash"]:
        yield Check(what=what, outcome="FAILED", says=f"it has no such line: the trace names {line}")
    else:
        yield _same_charge(what, line, record, entry)


def _hashes(what: str, opened: Callable[[str], Ledger], dataset: str) -> Generator[Check, None, Ledger | None]:
    """Open a ledger and look at every line; None where that fails."""
    try:
        ledger = opened(dataset)
        drift = ledger.verify()
    except PrivacyError as error:
        yield Check(what=what, outcome="FAILED", says=str(error))
        return None
    last = ledger.head or {}
    says = f"every line has its hash; the last is {last.get('line')}, {str(last.get('hash'))[:16]}…"
    yield Check(what=what, outcome="ok", says=says)
    for text in drift:
        yield Check(what=what, outcome="note", says=text)
    return ledger


def _same_charge(what: str, line: str, record: Mapping[str, Any], entry: Entry) -> Check:
    """Compare what a ledger was charged with what a trace says that it cost."""
    if entry.event.to_dict() == record["event"]:
        return Check(what=what, outcome="ok", says=f"{line} was charged for this trace")
    same_delta = entry.alone.delta <= record["delta"]
    if same_delta and entry.alone.epsilon >= record["epsilon"] * (1 - ROOM):
        return Check(what=what, outcome="note", says=f"{line} was charged for other events, which cost no less")
    return Check(what=what, outcome="FAILED", says=f"{line} was charged for less than the trace records")


__all__ = ["Check", "verify"]
