"""One account for one data set: check, then record, then release."""

from __future__ import annotations

import html
import json
import math
import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Never, SupportsIndex, final

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting._process import Birthplace
from pymc_dp.accounting.adaptive_account import Account
from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.events import Event, leaves
from pymc_dp.accounting.events.composed import relations
from pymc_dp.accounting.totals import Total, total_epsilon
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.metrics import PER_UNIT, Metric

if TYPE_CHECKING:
    import pandas as pd

NEIGHBOURS = ("replace", "add_remove")


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
    """

    label: str
    event: Event
    alone: Total
    added: float
    total: Total

    def __str__(self) -> str:
        at = f" at delta={self.alone.delta:g}" if self.alone.delta != self.total.delta else ""
        added = f"{self.added:.6g}"
        more = "" if added == f"{self.alone.epsilon:.6g}" else f" by itself, added {added}"
        total = f"total {self.total.epsilon:.6g} ({self.total.accountant})"
        return f"{self.label}: epsilon={self.alone.epsilon:.6g}{at}{more}, {total}"


@final
class Ledger:
    """What was spent on one data set, under one neighbour relation; mutable and safe for threads.

    Parameters
    ----------
    epsilon : float
        Budget > 0 for everything together, per row, read as the decimal number it prints.
    delta : float
        Failure probability in [0, 1) for everything together. At 0 losses add; above, the best accountant counts.
    neighbours : {"replace", "add_remove"}
        The relation of all that is spent here.
    metric : Metric, optional
        Count ε per unit of this metric instead of per row: of releases under ``Domain(metric=...)`` with the same one,
        and of nothing else. Losses are pure, `delta` is 0.

    Notes
    -----
    **Guarantee.** Everything paid for here is together (epsilon, delta)-DP for one row, even where the number and the
    parameters of later releases are chosen by looking at earlier ones; `adaptive_account` has the proof. The budget is
    the guarantee; the running total is bookkeeping.

    Pure losses add, at no delta. The first spend that needs delta opens what is left to two ways of counting, of which
    the better one decides at each spend: that spend's (epsilon, delta) plus pure losses, and concentrated losses (zCDP,
    Renyi), by which k equal spends cost about sqrt(k) of one. Each has half of delta, which costs some 3% of epsilon.
    So spend what is pure first; then an (epsilon, delta) may follow that uses up the rest exactly. A spend of more than
    half of what is left takes all of delta, and only pure losses may follow it.

    The accountants of Gaussian noise and of privacy loss distributions need parameters fixed in advance: they count
    within a spend. To have their saving over many releases, spend them at once, as one `ComposedEvent` or
    `SelfComposedEvent`, before the first is made.

    Sums and comparisons are exact, without tolerance: ten spends of 0.1 fit a budget of 1.0.

    A ledger cannot be copied or pickled, since two copies could spend the same budget twice. For the same reason it
    pays in the process that opened it alone: a fork of that process has a copy, which can be read and never spent. A
    script whose workers import it again (``spawn``, ``forkserver``) opens its ledger below ``if __name__ ==
    "__main__":``, or each of them opens one of its own.

    Examples
    --------
    >>> from pymc_dp.accounting.events import PureEvent
    >>> ledger = Ledger(epsilon=1.0)
    >>> _ = ledger.spend(PureEvent(epsilon=0.25), label="ages", neighbours="replace")
    >>> ledger.spent, ledger.remaining
    (Budget(epsilon=0.25, delta=0.0), 0.75)

    References
    ----------
    Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        neighbours: Literal["replace", "add_remove"] = "replace",
        metric: Metric | None = None,
    ) -> None:
        self._budget = Budget(_validate.epsilon(epsilon), delta)
        self._neighbours = _validate.choice("neighbours", neighbours, NEIGHBOURS)
        self._metric = metric
        if metric is not None:
            self._neighbours = _relation_of(metric, neighbours, self._budget.delta)
        self._account = Account(epsilon=self._budget.epsilon, delta=self._budget.delta)
        self._history: tuple[Entry, ...] = ()
        self._lock = threading.RLock()
        self._spending = False
        self._birthplace = Birthplace()

    @property
    def budget(self) -> Budget:
        """Everything that may be spent."""
        return self._budget

    @property
    def neighbours(self) -> str:
        """The relation of this ledger."""
        return self._neighbours

    @property
    def metric(self) -> Metric | None:
        """The metric per unit of which this ledger counts; None where it counts per row."""
        return self._metric

    @property
    def history(self) -> list[Entry]:
        """What was spent, oldest first."""
        return list(self._history)

    @property
    def spent(self) -> Budget:
        """Total loss of everything spent, at the delta of the ledger."""
        history = self._history
        return Budget(history[-1].total.epsilon if history else 0.0, self._budget.delta)

    @property
    def remaining(self) -> float:
        """A pure epsilon that would be accepted now, rounded down; 0 if there is none.

        In a fork of the process that opened the ledger: what was left when it was forked.
        """
        return self._account.remaining

    def spend(self, event: Event, *, label: str, neighbours: str, delta: float | None = None) -> Entry:
        """Charge `event` to the ledger, or raise and change nothing. Call it before the data are read.

        Parameters
        ----------
        event : Event
            What will be done to the data.
        label : str
            What it is for, public; shown in `history`.
        neighbours : {"replace", "add_remove"}
            The relation under which `event` was computed, or that of a metric (``Domain.relation``).
        delta : float, optional
            At which the trace of `event` states its ε, for `Entry.alone`; by default that of the ledger. What is added,
            and whether it is refused, does not depend on it.

        Returns
        -------
        Entry
            The line recorded.

        Raises
        ------
        BudgetExceeded
            If the new total would be above the budget.
        ArgumentError
            If the relation, or the one that the event itself is bound to, is not that of the ledger, or the event has
            no finite epsilon at the delta of the ledger.
        PrivacyError
            In another process than the one that opened the ledger.
        """
        self._require_birthplace()  # before the lock, which a fork may have copied while a thread held it
        if not isinstance(label, str) or not label:
            raise ArgumentError(f"label must be a text that says what is released, got {_validate.shown(label)}.")
        known = NEIGHBOURS if self._metric is None else (*NEIGHBOURS, self._neighbours)
        if not (isinstance(neighbours, str) and neighbours.startswith(PER_UNIT)):
            _validate.choice("neighbours", neighbours, known)
        for relation in {neighbours, *relations(leaves(event))}:
            self._check_relation(relation)
        with self._lock:
            if self._spending:
                raise PrivacyError(
                    f"{label!r} would be paid for by a signal handler or a finalizer, in the middle of another spend "
                    "of the same thread. Nothing was spent for it. Release where the program itself is running."
                )
            self._spending = True
            try:
                return self._spend(event, label, delta)
            finally:
                self._spending = False

    def _spend(self, event: Event, label: str, delta: float | None) -> Entry:
        here = total_epsilon(event, self._budget.delta)
        alone = here if delta in (None, self._budget.delta) else total_epsilon(event, delta)
        account, total = self._account.after(event, here)
        if total.epsilon > self._budget.epsilon:
            raise BudgetExceeded(self._refusal(label, alone, total))
        added = float_up(decimal(total.epsilon) - decimal(self.spent.epsilon))
        entry = Entry(label=label, event=event, alone=alone, added=added, total=total)
        self._account, self._history = account, (*self._history, entry)
        return entry

    def _require_birthplace(self) -> None:
        if not self._birthplace.here:
            raise PrivacyError(
                f"This ledger was opened in process {self._birthplace.pid}, and process {os.getpid()} holds a copy of "
                "it, which cannot spend: the other copies would not know, and the same budget would be spent twice. "
                "Nothing was spent and no data were read. Make the release in the process that opened the ledger, and "
                "hand its trace or its private model to the others; or split the budget before the fork, "
                "ledger.budget.split([1, 1]), and open a ledger with a part of it in each process."
            )

    def remark(self, entry: Entry, text: str) -> Entry:
        """Write beside an entry what became of it; what was spent stays as it is.

        Parameters
        ----------
        entry : Entry
            One of `history`.
        text : str
            Public.

        Returns
        -------
        Entry
            The line that stands there now.

        Raises
        ------
        ArgumentError
            If `entry` is not in this ledger.
        """
        with self._lock:
            if not any(line is entry for line in self._history):
                raise ArgumentError(f"entry must be a line of this ledger's history, got {entry!r}.")
            new = replace(entry, label=f"{entry.label} ({text})")
            self._history = tuple(new if line is entry else line for line in self._history)
            return new

    def _refusal(self, label: str, alone: Total, total: Total) -> str:
        left = self.remaining
        then = f"with it the total would be {total.epsilon!r} of a budget of {self._budget}"
        if math.isinf(total.epsilon):
            then = f"all of delta in {self._budget} is used, so that only pure losses may follow"
        pure = " at delta=0" if self._budget.delta > 0 else ""
        way_out = f"Ask for an epsilon of at most {left!r}{pure}, or work" if left > 0 else "Work"
        return (
            f"{label!r} asks for epsilon={alone.epsilon!r}. Spent so far: epsilon={self.spent.epsilon!r}; {then}. "
            f"Left: {left!r}. Nothing was spent and no data were read. {way_out} with what was already released, "
            "which is free."
        )

    def _check_relation(self, neighbours: str) -> None:
        if neighbours == self._neighbours:
            return
        if neighbours.startswith(PER_UNIT):
            raise ArgumentError(
                f"This ledger counts under {self._neighbours!r}, but the event counts per unit of something else, "
                f"{neighbours!r}. Convert the event by accounting.at_distance with the largest distance of two rows, "
                "or open a ledger of that metric, dp.Ledger(epsilon, metric=...)."
            )
        if self._metric is not None:
            raise ArgumentError(
                f"This ledger counts ε per unit of ρ = {self._metric}, but the event counts under {neighbours!r}: a "
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
            f"This ledger counts under {self._neighbours!r}, but the event counts under {neighbours!r}. {way_out}"
        )

    def to_frame(self) -> pd.DataFrame:
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
                }
                for entry in self._history
            ],
            columns=["label", "epsilon", "at_delta", "added_epsilon", "total_epsilon", "delta", "accountant", "event"],
        )

    def __repr__(self) -> str:
        head = (
            f"Ledger({self._budget}, neighbours={self._neighbours!r}): spent epsilon={self.spent.epsilon!r}"
            f" in {len(self._history)} spend{'s' * (len(self._history) != 1)}{self._copied}"
        )
        return "\n".join([head, *(f"  {entry}" for entry in self._history)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(entry.label)}</td><td>{entry.alone.epsilon:.6g}</td><td>{entry.alone.delta:g}</td>"
            f"<td>{entry.added:.6g}</td><td>{entry.total.epsilon:.6g}</td><td>{entry.total.accountant}</td></tr>"
            for entry in self._history
        )
        return (
            f"<table><caption>Ledger, {html.escape(str(self._budget))}, {self._neighbours}; "
            f"spent epsilon={self.spent.epsilon:.6g}{self._copied}</caption>"
            "<thead><tr><th>label</th><th>epsilon by itself</th><th>at delta</th><th>added</th><th>total epsilon</th>"
            "<th>accountant</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    @property
    def _copied(self) -> str:
        return "" if self._birthplace.here else "; a copy that a fork of its process made, which cannot spend"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        raise PrivacyError(
            "A ledger cannot be copied or pickled: the copies could spend the same budget twice. Pass the ledger "
            "itself, and save ledger.to_frame() or the events' to_dict() as a record."
        )


def _relation_of(metric: object, neighbours: str, delta: float) -> str:
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
