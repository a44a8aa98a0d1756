"""A ledger as text: for a terminal, a notebook, a data frame and an audit, and what it refuses."""

from __future__ import annotations

import json
import math
from decimal import ROUND_DOWN, Context
from typing import TYPE_CHECKING

from pymc_dp import _validate
from pymc_dp._display import Page, Table
from pymc_dp.accounting.calibrate import mu_budget
from pymc_dp.accounting.entry import Entry, State
from pymc_dp.accounting.events import Event, GDPEvent
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting import pure
from pymc_dp.kernel.accounting.adaptive_account import Account
from pymc_dp.kernel.accounting.totals import Total
from pymc_dp.kernel.relations import PER_PERSON, PER_UNIT
from pymc_dp.metrics import Metric
from pymc_dp.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from pymc_dp.accounting.ledger import Ledger


def check_relation(ledger: Ledger, neighbours: str) -> None:
    """Raise ArgumentError where a loss counts under another relation than a ledger."""
    if neighbours == ledger.neighbours:
        return
    if ledger.neighbours.startswith(PER_PERSON) or neighbours.startswith(PER_PERSON):
        raise ArgumentError(
            f"This ledger counts under {ledger.neighbours!r}, but the event counts under {neighbours!r}: a person has "
            "any number of rows, so that a loss per row is none per person, and a person is counted by one column. Use "
            'a ledger of the same persons, dp.Ledger(epsilon, unit="patient_id"), or one of rows for what protects '
            "rows."
        )
    if neighbours.startswith(PER_UNIT):
        raise ArgumentError(
            f"This ledger counts under {ledger.neighbours!r}, but the event counts per unit of something else, "
            f"{neighbours!r}. Convert the event by accounting.at_distance with the largest distance of two rows, "
            "or open a ledger of that metric, dp.Ledger(epsilon, metric=...)."
        )
    if ledger.metric is not None:
        raise ArgumentError(
            f"This ledger counts ε per unit of ρ = {ledger.metric}, but the event counts under {neighbours!r}: a "
            "loss per row says nothing about rows that are near to each other. Use another ledger for it."
        )
    if neighbours == "add_remove":
        way_out = (
            "Convert first: an (epsilon, delta) under add_remove is (2 epsilon, (1 + e^epsilon) delta) under "
            "replace, see accounting.replace_from_add_remove; or convert the event, by accounting.replace_event."
        )
    else:
        way_out = (
            "A guarantee under replace says nothing about the number of rows and cannot be converted: "
            'release under add_remove, or use Ledger(neighbours="replace").'
        )
    raise ArgumentError(
        f"This ledger counts under {ledger.neighbours!r}, but the event counts under {neighbours!r}. {way_out}"
    )


def require_ledger_delta(ledger: Ledger | None, delta: float, event: Event | None = None) -> None:
    """Raise ArgumentError where a ledger that has no delta is to pay for what has no loss without one.

    Parameters
    ----------
    ledger : Ledger or None
    delta : float
        Of the release.
    event : Event, optional
        What is to be paid for. None: Gaussian noise, which is not planned yet. That may take seconds.
    """
    delta = _validate.delta(delta)
    if ledger is None or delta == 0 or ledger.budget.delta > 0 or (event is not None and pure.total(event) is not None):
        return
    written = f"dp.Ledger({ledger.budget.epsilon:g}, delta={delta:g})"
    if ledger.dataset:
        written = f"dp.Ledger.create(..., delta={delta:g}), by whoever answers for the data; it cannot be changed"
    raise ArgumentError(
        f"The ledger has delta=0, and this release needs delta={delta:g}: its noise has no finite epsilon without. "
        f"Nothing was spent. Open it with one: {written}."
    )


def relation_of(metric: object, neighbours: str, delta: float) -> str:
    """Return the relation of a metric, if a ledger can count per unit of it."""
    if not isinstance(metric, Metric):
        raise ArgumentError(
            f"metric must be one of dp.metrics, got {_validate.shown(metric)}. Write metric=dp.metrics.L1('age')."
        )
    if neighbours != "replace":
        raise ArgumentError(
            f"A metric compares tables with equally many rows, neighbours={neighbours!r} does not. Leave it out."
        )
    if delta:
        raise ArgumentError(
            f"delta must be 0 where ε is per unit of a metric, got {delta}: such losses are pure. Leave delta out."
        )
    return metric.relation


def relation_of_persons(unit: object, metric: Metric | None) -> str:
    """Return the relation of persons whose rows have the same value of a column."""
    if metric is not None:
        raise ArgumentError("metric= and unit= both say what ε is for. Give one.")
    return Unit(_validate.text("unit", unit), max_rows=1).relation


def text(ledger: Ledger, copied: str) -> str:
    """Write a ledger for a terminal."""
    entries, spent, state = ledger.history, ledger.spent, ledger.book.state
    of = f"{ledger.dataset!r}, " if ledger.dataset else ""
    head = (
        f"Ledger({of}{ledger.budget}, neighbours={ledger.neighbours!r}): spent epsilon={spent.epsilon!r}"
        f" in {len(entries)} spend{'s' * (len(entries) != 1)}, left {state.account.remaining!r}{copied}"
    )
    granted = [
        f"  share of {name}: epsilon={share.epsilon!r}, left {share.remaining!r}"
        for name, share in state.shares.items()
    ]
    numbers = ["" if entry.seq is None else f"{entry.seq}. " for entry in entries]
    return "\n".join([head, *granted, *(f"  {n}{entry}" for n, entry in zip(numbers, entries, strict=True))])


def page(ledger: Ledger, copied: str = "") -> Page:
    """Write a ledger for a notebook, and for the command line."""
    state, budget, head = ledger.book.state, ledger.budget, ledger.head
    at, spent, left = f", δ = {budget.delta:g}" if budget.delta else "", ledger.spent.epsilon, state.account.remaining
    facts = [("data set", ledger.dataset)] if ledger.dataset else []
    facts.append(("counts for", COUNTS_FOR.get(ledger.neighbours, ledger.neighbours)))
    facts += [("last line", f"{head['line']}, {head['hash'][:16]}… (ledger {head['ledger'][:8]})")] if head else []
    parts = [Table(title="", rows=facts)]
    if state.shares:
        shares = [(name, f"{share.epsilon:g}", _down(share.remaining)) for name, share in state.shares.items()]
        parts.append(Table(title="Shares", columns=("who", "ε", "left of it"), rows=shares))
    if entries := ledger.history:
        kept = [place for place in range(len(SPENT_COLUMNS)) if any(_spent(entry)[place] for entry in entries)]
        rows = [[_spent(entry)[place] for place in kept] for entry in entries]
        parts.append(Table(title="Spent", columns=[SPENT_COLUMNS[place] for place in kept], rows=rows))
    return Page(
        title=f"Ledger of {ledger.dataset}" if ledger.dataset else "Ledger",
        headline=f"Of ε = {budget.epsilon:g}{at}, {spent:.6g} is spent and {_down(left)} is left{copied}.",
        good=left > 0,
        parts=parts,
    )


COUNTS_FOR = {"replace": "one row replaced", "add_remove": "one row more or fewer"}
SPENT_COLUMNS = ("line", "date", "what", "who", "why", "ε by itself", "added", "total ε")


def _spent(entry: Entry) -> tuple[str, ...]:
    at = f" at δ = {entry.alone.delta:g}" if entry.alone.delta != entry.total.delta else ""
    return (
        "" if entry.seq is None else str(entry.seq),
        entry.time[:10],
        entry.label,
        entry.who,
        entry.why,
        f"{entry.alone.epsilon:.6g}{at}",
        f"{entry.added:.6g}",
        f"{entry.total.epsilon:.6g} ({entry.total.accountant})",
    )


def _down(number: float, digits: int = 6) -> str:
    """Write a number with a few digits, never more than it is: so much is not left."""
    return f"{float(Context(prec=digits, rounding=ROUND_DOWN).create_decimal(repr(number))):g}"


def frame(ledger: Ledger) -> pd.DataFrame:
    """Return the history as a pandas DataFrame, one row per spend."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "label": entry.label,
                "epsilon": entry.alone.epsilon,
                "at_delta": entry.alone.delta,
                "added_epsilon": entry.added,
                "total_epsilon": entry.total.epsilon,
                "delta": entry.total.delta,
                "accountant": entry.total.accountant,
                "event": json.dumps(entry.event.to_dict()),
                "who": entry.who,
                "why": entry.why,
                "line": entry.seq,
                "time": entry.time,
            }
            for entry in ledger.history
        ],
        columns=[
            *("label", "epsilon", "at_delta", "added_epsilon", "total_epsilon", "delta", "accountant", "event"),
            *("who", "why", "line", "time"),
        ],
    )


def audit(ledger: Ledger) -> str:
    """Write the history of a ledger in Markdown."""
    head = ledger.head
    lines = [
        f"# Privacy budget of {ledger.dataset or 'a data set'}",
        "",
        f"- budget: {ledger.budget}, neighbours: {ledger.neighbours}",
        f"- spent: epsilon={ledger.spent.epsilon!r}; left: epsilon={ledger.remaining!r}",
        *([f"- head: line {head['line']}, {head['hash']} (ledger {head['ledger']})"] if head else []),
        "",
        "| line | time (UTC) | what | who | why | ε by itself | at δ | added | total ε | counted by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in ledger.history:
        texts = [entry.label, entry.who, entry.why]
        what, who, why = (text.replace("|", "\\|").replace("\n", " ") for text in texts)
        numbers = f"{entry.alone.epsilon:.6g} | {entry.alone.delta:g} | {entry.added:.6g} | {entry.total.epsilon:.6g}"
        seq = "" if entry.seq is None else entry.seq
        lines.append(f"| {seq} | {entry.time} | {what} | {who} | {why} | {numbers} | {entry.total.accountant} |")
    return "\n".join(lines) + "\n"


def refusal(ledger: Ledger, label: str, alone: Total, total: Total, before: State) -> str:
    """Say why a spend does not fit, and what would."""
    budget, account = ledger.budget, before.account
    left = account.remaining
    then = f"with it the total would be {total.epsilon!r} of a budget of {budget}"
    if math.isinf(total.epsilon):
        then = f"all of delta in {budget} is used, so that only pure losses may follow"
    return (
        f"{label!r} asks for epsilon={alone.epsilon!r}. Spent so far: epsilon={before.epsilon!r}; {then}. "
        f"Left: {_down(left)}{AT_NONE if left and budget.delta else ''}. Nothing was spent and no data were read. "
        f"{_way_out(account, alone)}"
    )


def share_refusal(label: str, alone: Total, used: Total, who: str, share: Account) -> str:
    """Say that a spend does not fit somebody's share."""
    return (
        f"{label!r} asks for epsilon={alone.epsilon!r}. With it {who!r} would have spent {used.epsilon!r} of a share "
        f"of epsilon={share.epsilon!r}. Left of it: {_down(share.remaining)}. Nothing was spent and no data were read. "
        f"{_way_out(share, alone)}"
    )


AT_NONE = " at delta=0"
USELESS = 1000
"""Of a budget, what is less than one part in so many is nothing to work with."""


def _way_out(account: Account, alone: Total) -> str:
    """Say what of the same kind would fit, as far as that is known and worth asking for."""
    free = "work with what was already released, which is free."
    free_of_delta, like = account.remaining, _fitting(account, alone.delta) if alone.delta else 0.0
    if max(free_of_delta, like) * USELESS < account.epsilon:
        return f"The budget is used up: {free}"
    if like * USELESS >= account.epsilon:
        at = min(alone.delta, account.delta_left)
        return f"Ask for an epsilon of at most {_down(like, 2)} at delta={at:g}, or {free}"
    most = f"an epsilon of at most {_down(free_of_delta, 3)}{AT_NONE if account.delta else ''}"
    if alone.delta:
        return f"What is left is for releases that need no delta, such as sums with Laplace noise: {most}. Or {free}"
    return f"Ask for {most}, or {free}"


def _fitting(account: Account, delta: float) -> float:
    """Return an epsilon at `delta` that would fit; once spends are counted together, that of Gaussian noise, about."""
    delta = min(delta, account.delta_left)
    if delta == 0 or not account.rules:
        return account.left if delta else 0.0
    low, high = 0.0, account.left
    for _ in range(20):
        middle = (low + high) / 2
        event = GDPEvent(mu=mu_budget(middle, delta))
        fits = account.after(event, Total(epsilon=middle, delta=delta, accountant="gdp"))[1].epsilon <= account.epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low * ABOUT


ABOUT = 0.99
"""Noise on a grid, and of several scales, costs a little more than Gaussian noise of the same epsilon."""


__all__ = [
    "audit",
    "check_relation",
    "frame",
    "page",
    "refusal",
    "relation_of",
    "require_ledger_delta",
    "share_refusal",
    "text",
]
