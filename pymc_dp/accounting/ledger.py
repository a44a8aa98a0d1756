"""One account for one data set: check, then record, then release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, final, override

from pymc_dp import _validate
from pymc_dp.accounting.book import Book, Memory, Stored, check_chain, store_of
from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.entry import Entry, State, Terms, recounted
from pymc_dp.accounting.ledger_texts import (
    audit,
    check_relation,
    frame,
    page,
    refusal,
    relation_of,
    relation_of_persons,
    share_refusal,
    text,
)
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel.accounting.adaptive_account import alone_at
from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.composed import relations
from pymc_dp.kernel.accounting.totals import total_epsilon
from pymc_dp.kernel.relations import PER_PERSON, PER_UNIT
from pymc_dp.metrics import Metric

if TYPE_CHECKING:
    import pandas as pd

NEIGHBOURS = ("replace", "add_remove")


class _Releases:
    """How a ``dp.Release`` is made of what is stored: said by the layer that knows it."""

    layer = "pymc_dp.ledgers"
    read: Callable[[Mapping[str, Any]], Any] | None = None


RELEASES = _Releases()


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
    unit : str, optional
        Count ε per person with several rows, who come and go: of releases under ``Domain(unit=dp.Unit(unit, ...))``
        with this column, whatever the number of rows, and of nothing else. `neighbours` has no meaning then.

    Notes
    -----
    **Guarantee.** Everything paid for here is together (epsilon, delta)-DP for one row, even where the number and the
    parameters of later releases are chosen by looking at earlier ones; `adaptive_account` has the proof. The budget is
    the guarantee; the running total is bookkeeping.

    Pure losses add, at no delta, and so does an (epsilon, delta) of a mechanism of which nothing else is known
    (`dp.find_levels`), as long as it comes before the opening: its delta is then not there for what follows. The first
    spend that needs more of delta opens what is left to two ways of counting, of which the better one decides at each
    spend: that spend's (epsilon, delta) plus pure losses, and concentrated losses (zCDP, Renyi), by which k equal
    spends cost about sqrt(k) of one. Each has half of what is left of delta, which costs some 3% of epsilon. So spend
    what is pure first; then an (epsilon, delta) may follow that uses up the rest exactly. A spend of more than half of
    what is left takes all of that delta, and only pure losses may follow it.

    The accountants of Gaussian noise and of privacy loss distributions need parameters fixed in advance: they count
    within a spend. To have their saving over many releases, spend them at once, as one `ComposedEvent` or
    `SelfComposedEvent`, before the first is made.

    Sums and comparisons are exact, without tolerance: ten spends of 0.1 fit a budget of 1.0.

    ``Ledger(epsilon=...)`` is forgotten with the process. `create` keeps it in a file or in PostgreSQL, where it
    outlives the process and where all who release something of the data open it. Every spend is on the disk before
    rows are read. The database cannot check what is written: who may write into it may lie. It protects from crashes,
    races and accidents, and shows changes: each line has a hash of all before it, and traces and reports state it.

    A ledger in memory cannot be copied or pickled, since two copies could spend the same budget twice. For the same
    reason it pays in the process that opened it alone: a fork of that process has a copy, which can be read and never
    spent. A script whose workers import it again (``spawn``, ``forkserver``) opens its ledger below ``if __name__ ==
    "__main__":``, or each of them opens one of its own. One that is stored may be pickled, forked and opened often.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
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
        unit: str | None = None,
    ) -> None:
        terms = _terms(epsilon, delta, neighbours, metric, unit)
        self._begin(Memory(terms, State.opened(terms)))

    def _begin(self, book: Book, who: str = "", why: str = "") -> None:
        self._book, self._who, self._why = book, who, why

    @classmethod
    def _of(cls, book: Book, who: str = "", why: str = "") -> Self:
        made = cls.__new__(cls)
        made._begin(book, who, why)
        return made

    @classmethod
    def create(
        cls,
        place: str | Path,
        *,
        dataset: str,
        epsilon: float,
        delta: float = 0.0,
        neighbours: Literal["replace", "add_remove"] = "replace",
        metric: Metric | None = None,
        unit: str | None = None,
        columns: Sequence[str] = (),
    ) -> Self:
        """Make a ledger that outlives the process; once, by whoever answers for the data.

        Parameters
        ----------
        place : path or str
            An SQLite file, made if there is none, on a local disk; or a PostgreSQL database,
            ``"postgresql://user@server/database"`` (``pip install pymc-dp[postgres]``). Either may hold the ledgers of
            several data sets. Keep a password in ``~/.pgpass``: error texts show none, but pickles of the ledger do.
        dataset : str
            Name of the data set, public.
        epsilon, delta, neighbours, metric, unit
            As for ``Ledger(...)``. They cannot be changed later.
        columns : sequence of str
            Names of the observed variables that releases may have; any by default.

        Raises
        ------
        ArgumentError
            If there is a ledger of this data set: its budget would be there twice.
        PrivacyError
            If the database cannot be written, or would not keep what it confirms.

        Examples
        --------
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "budget.sqlite"
        >>> ledger = Ledger.create(place, dataset="survey-2026", epsilon=4.0, delta=1e-6)
        >>> Ledger.open(place).budget
        Budget(epsilon=4.0, delta=1e-06)
        """
        terms = _terms(
            epsilon, delta, neighbours, metric, unit, _named("dataset", dataset), _validate.names("columns", columns)
        )
        return cls._of(Stored.create(store_of(place), terms, State.opened(terms)))

    @classmethod
    def open(cls, place: str | Path, *, dataset: str | None = None) -> Self:
        """Open a ledger that `create` made.

        Parameters
        ----------
        place : path or str
            The file or the URL.
        dataset : str, optional
            Which data set, where there are ledgers of several.

        Raises
        ------
        ArgumentError
            If there is none: opening never makes one.
        PrivacyError
            If lines were changed or are missing, if it is an older copy than this account has seen, or one of a later
            version of the package.
        """
        return cls._of(Stored.open(store_of(place), dataset))

    def as_(self, who: str, *, why: str = "") -> Self:
        """Return the same ledger, where each spend says by whom and what for; it pays from the share of `who`, if any.

        Parameters
        ----------
        who : str
            Public. Where shares were granted, one who has none is refused.
        why : str
            Public.
        """
        who = _named("who", who)
        _require_share(who, self._book.state)
        return self._of(self._book, who, _validate.text("why", why) if why else "")

    def grant(self, who: str, *, epsilon: float, delta: float = 0.0) -> None:
        """Give somebody a share: what they spend must fit it, and what is left of the whole.

        Parameters
        ----------
        who : str
            As it is given to `as_`.
        epsilon, delta : float
            At most those of the ledger. Shares may add up to more than the whole, which still decides.

        Notes
        -----
        **Guarantee.** That of the ledger for everybody. A share is a limit: it bounds what one analyst learns only as
        long as analysts do not show each other what they were given.
        """
        budget = Budget(_validate.epsilon(epsilon), delta)
        if not self.budget.covers(budget):
            raise ArgumentError(f"A share must be within the budget of the ledger, {self.budget}; got {budget}.")
        with self._book.changing(f"the share of {who}") as state:
            self._book.granted(who, state.granted(_named("who", who), budget))

    @property
    def budget(self) -> Budget:
        """Everything that may be spent."""
        return self._book.terms.budget

    @property
    def dataset(self) -> str:
        """Name of the data set; "" for a ledger in memory."""
        return self._book.terms.dataset

    @property
    def neighbours(self) -> str:
        """The relation of this ledger."""
        return self._book.terms.relation

    @property
    def metric(self) -> str | None:
        """The metric per unit of which this ledger counts, as it prints; None where it counts per row."""
        return self.neighbours.removeprefix(PER_UNIT) if self.neighbours.startswith(PER_UNIT) else None

    @property
    def history(self) -> list[Entry]:
        """What was spent, oldest first."""
        return list(self._book.entries)

    @property
    def spent(self) -> Budget:
        """Total loss of everything spent, at the delta of the ledger."""
        return Budget(self._book.state.epsilon, self.budget.delta)

    @property
    def remaining(self) -> float:
        """A pure epsilon that would be accepted now, rounded down; 0 if there is none.

        With `as_`, one that the share accepts as well. In a fork of the process that opened a ledger in memory: what
        was left when it was forked.
        """
        state = self._book.state
        own = state.shares.get(self._who)
        if own is None and self._who and state.shares:
            return 0.0  # shares were granted since `as_`, to others
        return state.account.remaining if own is None else min(state.account.remaining, own.remaining)

    @property
    def head(self) -> dict[str, Any] | None:
        """Number and hash of the last line, for traces and reports; None for a ledger in memory.

        Whoever has them can see later that the ledger still has this line and all before it.
        """
        if not isinstance(self._book, Stored):
            return None
        last = self._book.store.last(self._book.name)
        return {"dataset": self.dataset, "ledger": self._book.name, "line": last.seq, "hash": last.hash}

    def head_at(self, entry: Entry) -> dict[str, Any] | None:
        """What `head` was when an entry of this ledger was the last line; it is known without the database."""
        if not isinstance(self._book, Stored) or entry.seq is None:
            return None
        return {"dataset": self.dataset, "ledger": self._book.name, "line": entry.seq, "hash": entry.hash}

    @property
    def who(self) -> str:
        """Who spends, as it was given to `as_`; "" for all together."""
        return self._who

    @property
    def book(self) -> Book:
        """Where the lines are: what this ledger shares with those that `as_` returns."""
        return self._book

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
        self._book.require_payable()
        if not isinstance(label, str) or not label:
            raise ArgumentError(f"label must be a text that says what is released, got {_validate.shown(label)}.")
        if not (isinstance(neighbours, str) and neighbours.startswith((PER_UNIT, PER_PERSON))):
            _validate.choice("neighbours", neighbours, tuple(dict.fromkeys([*NEIGHBOURS, self.neighbours])))
        for relation in {neighbours, *relations(leaves(event))}:
            check_relation(self, relation)
        here = total_epsilon(event, self.budget.delta)  # may take seconds: before anybody has to wait
        alone = here if delta in (None, self.budget.delta) else total_epsilon(event, delta)
        with self._book.changing(label) as before:
            _require_share(self._who, before)  # shares may have been granted since `as_`
            own = before.shares.get(self._who)
            share = (
                None if own is None else (self._who, here if own.delta == here.delta else alone_at(event, own.delta))
            )
            state, used = before.after(event, here, share)
            assert state.total is not None
            if state.epsilon > self.budget.epsilon:
                raise BudgetExceeded(refusal(self, label, alone, state.total, before))
            if own is not None and used is not None and used.epsilon > own.epsilon:
                raise BudgetExceeded(share_refusal(label, alone, used, self._who, own))
            added = state.added(before)
            entry = Entry(
                label=label, event=event, alone=alone, added=added, total=state.total, who=self._who, why=self._why
            )
            return self._book.spent(entry, state)

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
        return self._book.remarked(entry, text)

    def require_columns(self, names: Sequence[str]) -> None:
        """Raise ArgumentError where the ledger was made for other observed variables than these."""
        other = [name for name in names if self._book.terms.columns and name not in self._book.terms.columns]
        if other:
            raise ArgumentError(
                f"The ledger of {self.dataset!r} is for {', '.join(self._book.terms.columns)}; this release observes "
                f"{', '.join(other)}. Pass the ledger of the data that the model has, or make one for them: "
                "dp.Ledger.create(..., columns=[...])."
            )

    def keep_release(self, entry: Entry, release: Mapping[str, Any]) -> None:
        """Write beside an entry what was released, where the ledger is stored; a ledger in memory keeps nothing.

        Parameters
        ----------
        entry : Entry
        release : mapping
            As ``dp.Release`` is written, in JSON types.
        """
        if isinstance(self._book, Stored):
            self._book.keep_release(entry, release)

    def release(self, seq: int) -> Any:
        """Return what was released under a number of `history`: it was paid for, and costs nothing to have again.

        Parameters
        ----------
        seq : int
            ``Entry.seq``.

        Returns
        -------
        dp.Release
            For ``dp.condition(model, release)``.

        Raises
        ------
        ArgumentError
            If nothing is stored under this number, as for draws of samplers, and where a process ended too early.
        """
        seq = _validate.integer("seq", seq, 0)
        if RELEASES.read is None:  # a worker that was given a ledger has imported nothing else
            import_module(RELEASES.layer)
        found = self._book.release(seq) if isinstance(self._book, Stored) else None
        if found is None or RELEASES.read is None:
            kept = "" if isinstance(self._book, Stored) else "; a ledger in memory keeps none"
            raise ArgumentError(
                f"No release is stored under number {seq}{kept}. Released sums and gradients are, in a ledger that "
                "dp.Ledger.create made; print the ledger to see the numbers."
            )
        return RELEASES.read(found)

    def verify(self) -> list[str]:
        """Check every line of a stored ledger against its hash, and count all spends again.

        Returns
        -------
        list of str
            Where this version of the package counts otherwise than the one that wrote a line; mostly none. What was
            decided then is what holds.

        Raises
        ------
        PrivacyError
            If a line was changed, is missing, or was put in.
        """
        if not isinstance(self._book, Stored):
            return []
        check_chain(self._book.lines, self.dataset)
        return recounted(self._book.terms, self._book.entries)

    def export(self, path: str | Path) -> Path:
        """Write terms and history as a text in Markdown, for an audit.

        Parameters
        ----------
        path : path or str
            Ends in ``.md``.
        """
        target = _validate.path("path", path, (".md",))
        _validate.folder("path", target)
        target.write_text(audit(self), encoding="utf-8")
        return target

    def to_frame(self) -> pd.DataFrame:
        """Return the history as a pandas DataFrame, one row per spend."""
        return frame(self)

    @override
    def __repr__(self) -> str:
        return text(self, self._copied)

    def _repr_html_(self) -> str:
        return page(self, self._copied).html()

    @property
    def _copied(self) -> str:
        if isinstance(self._book, Memory) and not self._book.birthplace.here:
            return "; a copy that a fork of its process made, which cannot spend"
        return ""

    @override
    def __eq__(self, other: object) -> bool:
        return self._book.key == other._book.key if isinstance(other, Ledger) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self._book.key)

    @override
    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if isinstance(self._book, Stored):
            return Ledger._of, (self._book, self._who, self._why)
        raise PrivacyError(
            "A ledger in memory cannot be copied or pickled: the copies could spend the same budget twice. Pass the "
            "ledger itself, keep it in a file (dp.Ledger.create), or save ledger.to_frame() as a record."
        )


def _terms(
    epsilon: float,
    delta: float,
    neighbours: str,
    metric: Metric | None,
    unit: str | None = None,
    dataset: str = "",
    columns: Sequence[str] = (),
) -> Terms:
    budget = Budget(_validate.epsilon(epsilon), delta)
    relation = _validate.choice("neighbours", neighbours, NEIGHBOURS)
    if metric is not None:
        relation = relation_of(metric, neighbours, budget.delta)
    if unit is not None:
        relation = relation_of_persons(unit, metric)
    return Terms(budget=budget, relation=relation, dataset=dataset, columns=tuple(columns))


def _named(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"{name} must be a name, got {_validate.shown(value)}.")
    return value


def _require_share(who: str, state: State) -> None:
    if who and state.shares and who not in state.shares:
        raise ArgumentError(
            f"{who!r} has no share of this ledger; {', '.join(map(repr, state.shares))} have one. Nothing was spent. "
            f"Its owner grants it: ledger.grant({who!r}, epsilon=...)."
        )


__all__ = ["RELEASES", "Ledger"]
