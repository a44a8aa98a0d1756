"""What a ledger knows: its terms, its lines, and what is left after the last of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final, override

from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.written import (
    account_from_dict,
    account_to_dict,
    event_from_dict,
    total_from_dict,
    total_to_dict,
)
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.adaptive_account import Account
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.accounting.totals import Total, total_epsilon

FORMAT = 2
"""Of what is stored; a ledger of a later one is refused."""


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """What was settled when a ledger was opened, and never changes.

    Attributes
    ----------
    budget : Budget
    relation : str
        What ε is for: a neighbour relation, the unit of a metric, or a person (``Domain.relation``).
    dataset : str
        Name of the data set; "" for a ledger in memory.
    columns : tuple of str
        Columns that its releases may observe; none where any may be.
    """

    budget: Budget
    relation: str
    dataset: str = ""
    columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the terms in JSON types."""
        budget = {"epsilon": repr(self.budget.epsilon), "delta": repr(self.budget.delta)}
        return {**budget, "relation": self.relation, "dataset": self.dataset, "columns": list(self.columns)}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Self:
        """Return the terms that `to_dict` wrote."""
        return cls(
            budget=Budget(float(written["epsilon"]), float(written["delta"])),
            relation=written["relation"],
            dataset=written["dataset"],
            columns=tuple(written["columns"]),
        )


@final
@dataclass(frozen=True, kw_only=True)
class UnreadEvent(Event):
    """A stored event of a kind that is not known here: of a user's own, or of another version of the package.

    It was counted by those who know it, and the state of its line says what it cost. Every accountant refuses it.

    Attributes
    ----------
    written : str
        In JSON.
    """

    written: str

    @override
    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.written)
        return found


def read_event(written: Mapping[str, Any]) -> Event:
    """Return a stored event; one that cannot be read here must not keep anybody from the rest of the ledger."""
    try:
        return event_from_dict(written)
    except (ArgumentError, KeyError, TypeError, ValueError):
        return UnreadEvent(written=json.dumps(written, sort_keys=True))


@final
@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a ledger.

    Attributes
    ----------
    label : str
    event : Event
    alone : Total
        What the event costs by itself, at the δ that its run states: the ε of its trace.
    added : float
        What it added to the total of the ledger, at the δ of the ledger: more than `alone` where only losses of another
        kind compose with what was spent before, or will be; less where events compose better than losses add.
    total : Total
        All that was spent up to it.
    who, why : str
        Who spent it and what for, as they said in ``Ledger.as_``; "" where nobody said.
    seq : int or None
        Number of the line in a ledger that is stored.
    time : str
        When it was written, in UTC and ISO 8601, in a ledger that is stored; a note, nothing is ordered by it.
    hash : str
        Of the line and of all before it, in a ledger that is stored.
    """

    label: str
    event: Event
    alone: Total
    added: float
    total: Total
    who: str = ""
    why: str = ""
    seq: int | None = None
    time: str = ""
    hash: str = ""

    def __str__(self) -> str:
        at = f" at delta={self.alone.delta:g}" if self.alone.delta != self.total.delta else ""
        added = f"{self.added:.6g}"
        more = "" if added == f"{self.alone.epsilon:.6g}" else f" by itself, added {added}"
        total = f"total {self.total.epsilon:.6g} ({self.total.accountant})"
        by = "".join([f" [{self.who}" if self.who else "", f": {self.why}" if self.why and self.who else ""])
        return f"{self.label}{by}{']' if by else ''}: epsilon={self.alone.epsilon:.6g}{at}{more}, {total}"

    def to_dict(self) -> dict[str, Any]:
        """Return in JSON types what is not noted beside every line: all but number, time and hash."""
        totals = {"alone": total_to_dict(self.alone), "added": repr(self.added), "total": total_to_dict(self.total)}
        return {"label": self.label, "event": self.event.to_dict(), **totals, "who": self.who, "why": self.why}

    @classmethod
    def from_dict(cls, written: Mapping[str, Any], seq: int, time: str, digest: str) -> Self:
        """Return the line that `to_dict` wrote."""
        return cls(
            label=written["label"],
            event=read_event(written["event"]),
            alone=total_from_dict(written["alone"]),
            added=float(written["added"]),
            total=total_from_dict(written["total"]),
            who=written["who"],
            why=written["why"],
            seq=seq,
            time=time,
            hash=digest,
        )


@final
@dataclass(frozen=True, kw_only=True)
class State:
    """What was spent so far, by all together and by everybody who has a share; a value.

    Attributes
    ----------
    account : Account
        Of the whole budget.
    total : Total or None
        What it comes to; None where nothing was spent.
    shares : mapping of str to Account
        Of each analyst to whom a part of it was granted. Parts may add up to more than the whole.
    """

    account: Account
    total: Total | None = None
    shares: Mapping[str, Account] = field(default_factory=dict)

    @classmethod
    def opened(cls, terms: Terms) -> Self:
        """Return the state before anything was spent."""
        return cls(account=Account(epsilon=terms.budget.epsilon, delta=terms.budget.delta))

    def after(self, event: Event, alone: Total, share: tuple[str, Total] | None) -> tuple[State, Total | None]:
        """Return the state with `event` spent, and the total of the share that pays as well.

        Parameters
        ----------
        event : Event
        alone : Total
            What it costs by itself, at the δ of the budget.
        share : (str, Total) pair or None
            Whose share pays, and what the event costs by itself at the δ of that.
        """
        account, total = self.account.after(event, alone)
        if share is None:
            return replace(self, account=account, total=total), None
        name, cost = share
        own, used = self.shares[name].after(event, cost)
        return State(account=account, total=total, shares={**self.shares, name: own}), used

    def added(self, before: State) -> float:
        """Return by how much the total grew since `before`, rounded up."""
        return float_up(decimal(self.epsilon) - decimal(before.epsilon))

    @property
    def epsilon(self) -> float:
        """All that was spent, at the δ of the budget."""
        return 0.0 if self.total is None else self.total.epsilon

    def granted(self, who: str, budget: Budget) -> State:
        """Return the state in which `who` has a share, of which nothing was spent."""
        if who in self.shares:
            raise ArgumentError(
                f"{who!r} has a share already, epsilon={self.shares[who].epsilon!r}. A share cannot be changed: what "
                "was spent from it could not be taken back. Grant another name a share of its own."
            )
        return replace(self, shares={**self.shares, who: Account(epsilon=budget.epsilon, delta=budget.delta)})

    def to_dict(self) -> dict[str, Any]:
        """Return the state in JSON types."""
        return {
            "account": account_to_dict(self.account),
            "total": None if self.total is None else total_to_dict(self.total),
            "shares": {name: account_to_dict(share) for name, share in self.shares.items()},
        }

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> Self:
        """Return the state that `to_dict` wrote."""
        shares = {name: account_from_dict(share) for name, share in written["shares"].items()}
        total = None if written["total"] is None else total_from_dict(written["total"])
        return cls(account=account_from_dict(written["account"]), total=total, shares=shares)


def recounted(terms: Terms, entries: Iterable[Entry]) -> list[str]:
    """Count all spends anew, and say where the total comes out otherwise than when it was written."""
    state, found = State.opened(terms), []
    for entry in entries:
        if isinstance(entry.event, UnreadEvent):
            kind = entry.event.to_dict().get("kind")
            found.append(
                f"line {entry.seq} ({entry.label}): an event of kind {kind!r} is not known here, so that nothing from "
                "this line on was counted again"
            )
            break
        state, _ = state.after(entry.event, total_epsilon(entry.event, terms.budget.delta), None)
        now = state.total
        if now is not None and now != entry.total:
            found.append(
                f"line {entry.seq} ({entry.label}): the total was counted as {entry.total.epsilon!r} "
                f"({entry.total.accountant}), this version counts {now.epsilon!r} ({now.accountant})"
            )
    return found


__all__ = ["FORMAT", "Entry", "State", "Terms", "UnreadEvent", "recounted"]
