"""The one way from a plan to the rows: say what a budget is worth, charge, note, read, and say what became of it.

Spending twice is seen: releases from the same columns in one process, counted by schema, never by value.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pymc_dp._interrupts import HeldBack
from pymc_dp.accounting import Budget, Entry, Event, Ledger, charge, loss_at, require_ledger_delta, total_epsilon
from pymc_dp.accounting.book import Book
from pymc_dp.errors import BudgetWarning, PrivacyError, ReleaseError, RepeatedReleaseWarning, WeakGuaranteeWarning
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, written_release
from pymc_dp.release.source import Source
from pymc_dp.rows.gate import opened_gate

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
PACKAGE = str(Path(__file__).parents[1])
OURS = (PACKAGE, contextlib.__file__.removesuffix(".py"))  # as a prefix CPython 3.13 takes no whole name
"""Files that no warning points to: what charges is a context, entered through the second one."""
Key = tuple[str, str, int | None]


@dataclass
class _Noted:
    """What is known of the columns of one schema.

    Attributes
    ----------
    alone : list of float
        ε of the releases that no ledger paid for.
    ledgers : mapping of Book to int
        How many releases each ledger that is still open paid for. It is open as long as the user holds it, or one of
        the same book (`Ledger.as_`): nothing here keeps it.
    """

    alone: list[float] = field(default_factory=list)
    ledgers: WeakKeyDictionary[Book, int] = field(default_factory=WeakKeyDictionary)


_lock = threading.RLock()
_noted: dict[Key, _Noted] = {}


def _unlock() -> None:
    """Give a forked process a lock of its own: another thread may have held the one that was copied."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


@contextlib.contextmanager
def noted_release(source: Source, epsilon: float, ledger: Ledger | None) -> Iterator[None]:
    """Remember the release that is charged within; warn if its cost is not added to that of others before it.

    Columns count as the same if name, dtype and public number of rows agree: PyMC copies the arrays it is given, so
    neither identity nor (because no message may depend on values) content can tell. The warning comes before the
    charge, and what raises there is not remembered: where warnings are errors, nothing is spent.

    Parameters
    ----------
    source : Source
    epsilon : float
        Loss per row.
    ledger : Ledger or None
        The one that pays.

    Warns
    -----
    RepeatedReleaseWarning
        Of a release without a ledger, where others were made without; of any, where another ledger that is still open
        paid for these rows and this one did not.
    """
    noted, book = _of(source), None if ledger is None else ledger.book
    with _lock:
        before = max((tuple(one.alone) for one in noted), key=sum, default=())
        known = any(book in one.ledgers for one in noted) if book is not None else False
        others = {} if known else {id(other): other for one in noted for other in one.ledgers}
        _remember(noted, epsilon, book, 1)
    try:
        names = ", ".join(name for name, _ in source.schema)
        if others:
            _warn(_beside(list(others.values()), epsilon, ledger, names))
        elif before and ledger is None:
            _warn(_again(before, epsilon, names))
        yield
    except Exception:
        with _lock:
            _remember(noted, epsilon, book, -1)
        raise


def forget_releases() -> None:
    """Forget what was released in this process (for tests and for new tables with the same column names)."""
    with _lock:
        _noted.clear()


def _of(source: Source) -> list[_Noted]:
    keys = [(*column, source.n_rows if source.domain.n_max is None else None) for column in source.schema]
    with _lock:
        return [_noted.setdefault(key, _Noted()) for key in keys]


def _remember(noted: list[_Noted], epsilon: float, book: Book | None, times: int) -> None:
    """Count one release more (`times` = 1), or take it back (-1)."""
    for one in noted:
        if book is not None:
            one.ledgers[book] = one.ledgers.get(book, 0) + times
            if one.ledgers[book] <= 0:
                del one.ledgers[book]
        elif times > 0:
            one.alone.append(epsilon)
        else:
            one.alone.remove(epsilon)


def _warn(text: str) -> None:
    warnings.warn(text, RepeatedReleaseWarning, skip_file_prefixes=OURS)


def _again(before: tuple[float, ...], epsilon: float, names: str) -> str:
    times = len(before) + 1
    which = f"{_ORDINALS[times - 1]} release" if times <= len(_ORDINALS) else f"release number {times}"
    return (
        f"{which} from these rows, ε={sum(before) + epsilon:g} in total (columns: {names}). Pass one dp.Ledger to "
        "every release from one table to have the cost added up and limited; if these are other rows, give them a "
        "ledger of their own."
    )


def _spent(other: Book) -> str:
    try:
        spent = f"ε={other.state.epsilon:g}"
    except PrivacyError:  # its database is not there now, which is no reason to refuse a release that another one pays
        spent = "what is not known now"
    return f"{spent} of {other.terms.budget.epsilon:g} is spent"


def _beside(others: list[Book], epsilon: float, ledger: Ledger | None, names: str) -> str:
    spent = " and ".join(map(_spent, others))
    without = "has no ledger" if ledger is None else "is charged to another one"
    return (
        f"These rows (columns: {names}) have an open ledger, where {spent}, but this release of ε={epsilon:g} "
        f"{without}: nothing adds up the two. Pass the ledger of these rows, ledger=..., to every release. Rows are "
        "distinguished by names, types and number alone: if these are others, nothing is wrong."
    )


WEAK = 10.0
"""ε above which a guarantee bounds next to nothing: e^10 is 22,000."""
GIVEN_UP = (
    "Ended after the budget was charged and before anything was released: the budget is spent, and nothing was "
    "released. Press Ctrl+C once only to let a release be made."
)
FLOATS = "invalid value|overflow|underflow|divide by zero"
KEPT = (
    "What was released is paid for, and is in the attribute {name} of this error: {how}, at no further cost. The "
    "budget is spent."
)
NOT_KEPT = (
    "What was released is paid for, and could not be written into the ledger ({}: {}). Here it is, and nowhere else: "
    "dp.Release.of(private_model).save(path) keeps it."
)
HOW = {
    "private_model": "sample it with pm.sample and pass the trace through dp.scrub",
    "idata": "it is what the call would have returned, as far as it came",
    **dict.fromkeys(("domain", "levels"), "it is what the call would have returned"),
}


class Paid:
    """A release that was charged and is being made; `made` says whether it is, and only has to be kept."""

    def __init__(self, interrupt: HeldBack, ledger: Ledger | None, entry: Entry | None, called: str) -> None:
        self.interrupt, self.made = interrupt, False
        self._ledger, self._entry, self._called = ledger, entry, called

    def read[T](self, work: Callable[[], T], *, holder: object = None) -> T:
        """Return what `work` makes of the rows. What it raises could show one of them, and is not passed on.

        Parameters
        ----------
        work : callable
        holder : object, optional
            What holds rows, or what was computed from them. It is emptied if `work` fails: frames of the error have it.

        Raises
        ------
        ReleaseError
            If `work` fails, by any error that is not of this package: with one text, and without a cause.
        KeyboardInterrupt
            If a second Ctrl+C has ended it.
        """
        failure: BaseException
        try:
            # Floats that overflow are warned of where some row makes them; a filter that raises would end the call.
            with opened_gate(), np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.filterwarnings("ignore", FLOATS, RuntimeWarning)
                return work()
        except KeyboardInterrupt as error:
            _bare(error)
            failure = KeyboardInterrupt(GIVEN_UP)
        except Exception as error:
            failure = _bare(error)  # those of the package hold nothing private in their texts
            if self.interrupt.taken:
                failure = KeyboardInterrupt(GIVEN_UP)
            elif not isinstance(error, PrivacyError):
                failure = ReleaseError()
        except (SystemExit, GeneratorExit) as error:
            failure = _bare(error)
        except BaseException as error:  # the panics of some engines, whose texts show values
            _bare(error)
            failure = ReleaseError()
        if holder is not None:
            vars(holder).clear()
        raise failure  # out here, where it has no context

    def noted(self, record: ReleaseRecord) -> ReleaseRecord:
        """Return a record that states the label of the user, and which ledger paid: by the line where it is stored."""
        if self._ledger is None or self._entry is None:
            return replace(record, label=self._called)
        head = self._ledger.head_at(self._entry)
        named = head is not None or record.guarantee == "none"  # with seeded noise runs are to be compared
        return replace(record, label=self._called, ledger=head, account="" if named else self._ledger.book.key)

    def keep(self, record: ReleaseRecord, tables: Mapping[str, Array]) -> None:
        """Write what was released into a ledger that is stored: it was paid for, and this process may end.

        Warns
        -----
        BudgetWarning
            If that fails: what was released is not lost with it.
        """
        self.made = True
        if self._ledger is None or self._entry is None:
            return
        try:
            self._ledger.keep_release(self._entry, written_release(record, tables))
        except Exception as error:
            warnings.warn(NOT_KEPT.format(type(error).__name__, error), BudgetWarning, skip_file_prefixes=OURS)

    def state(self, text: str) -> None:
        """Write what was released, where it is that short, beside the entry of the ledger."""
        self.made = True
        self.remark(text)

    def remark(self, text: str) -> None:
        """Write beside the entry of the ledger what became of the release; if this fails, the trace alone says it."""
        if self._ledger is not None and self._entry is not None:
            with suppress(PrivacyError):
                self._entry = self._ledger.remark(self._entry, text)


@contextmanager
def paid(
    source: Source,
    budget: Budget,
    *,
    event: Event | None = None,
    label: str = "",
    called: str = "",
    ledger: Ledger | None = None,
    diameter: float = 1.0,
) -> Iterator[Paid]:
    """Warn, charge, remember; rows may be read within, and Ctrl+C is held back until the release is made.

    Parameters
    ----------
    source : Source
        Whose rows will be read.
    budget : Budget
        What was asked for: per row, or per unit of the domain's metric.
    event : Event, optional
        What is charged; without a ledger it is not needed, and the budget is noted as spent.
    label : str
        What it is for, public.
    called : str
        The label of the user, which stands in the ledger instead, and in the record too.
    ledger : Ledger, optional
    diameter : float
        Largest distance of two rows under the domain's metric.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        From the ledger, before anything is read; nothing is spent or remembered.
    KeyboardInterrupt
        At the end, where Ctrl+C was pressed once; at once, where it was pressed again, with a text that says that the
        budget is spent.

    Warns
    -----
    WeakGuaranteeWarning, RepeatedReleaseWarning
        Before the charge: where warnings are errors, nothing is spent.
    """
    label = called or label
    before, payment = _entries(ledger, label), None
    with HeldBack() as interrupt:
        try:
            for text in weaknesses(source, budget):
                warnings.warn(text, WeakGuaranteeWarning, skip_file_prefixes=OURS)
            loss, entry = budget.epsilon if event is None else total_epsilon(event, budget.delta).epsilon, None
            if event is not None:
                require_ledger_delta(ledger, budget.delta, event)
            with noted_release(source, loss_at(loss, diameter), ledger):
                if ledger is not None:
                    assert event is not None
                    ledger.require_columns([name for name, _ in source.schema])
                    at = {"diameter": diameter, "delta": budget.delta}
                    entry = charge(ledger, event, label=label, domain=source.domain, **at)
            payment = Paid(interrupt, ledger, entry, called)
            yield payment
        except KeyboardInterrupt as error:
            if error.args or (payment is not None and payment.made):
                raise
            if ledger is not None and not _charged(ledger, label, before):
                raise
            raise KeyboardInterrupt(GIVEN_UP) from None


def weaknesses(source: Source, budget: Budget) -> list[str]:
    """Say where a budget bounds next to nothing.

    δ is held against the public number of rows, under ``"add_remove"`` against `n_max`. ε per unit of a metric is not
    judged: what a unit is, and how far apart rows are, is for the user to say.
    """
    domain, texts = source.domain, []
    each = "row" if domain.unit is None else "person"
    if budget.epsilon > WEAK and domain.metric is None:
        texts.append(
            f"ε = {budget.epsilon:g} bounds very little: what is released may be {_factor(budget.epsilon)} times "
            f"likelier with one {each} than with another in its place, so that it may show the {each}. Common values "
            "lie between 0.1 (strong) and 3 (weak)."
        )
    known = domain.n_max is None
    n_rows, name = (source.n_rows, "rows") if known else (domain.n_max, f"{each}s at most (n_max)")
    if n_rows and budget.delta >= 1 / n_rows:
        texts.append(
            f"δ = {budget.delta:g} is not below 1 / {n_rows}, for {n_rows} {name}: it would allow one {each}, chosen "
            f"at random, to be published as it is. Use a δ far below {1 / n_rows:.2g}, for example {0.01 / n_rows:.1g}."
        )
    return texts


def _factor(epsilon: float) -> str:
    return f"e^{epsilon:g} = {math.exp(epsilon):.2g}" if epsilon < 100 else f"e^{epsilon:g}"


def _entries(ledger: Ledger | None, label: str) -> list[Entry]:
    """Return the spends that may be of this release: of a stored ledger others spend at the same time."""
    if ledger is None:
        return []
    return [entry for entry in ledger.history if entry.who == ledger.who and entry.label.startswith(label)]


def _charged(ledger: Ledger, label: str, before: list[Entry]) -> bool:
    """Whether this release may be charged; so it is said where the ledger cannot be asked."""
    with suppress(PrivacyError):
        return _entries(ledger, label) != before
    return True


def keep(error: BaseException, **released: Any) -> None:
    """Put what was released already into attributes of an error that leaves; None is left out."""
    for name, value in released.items():
        if value is not None and not hasattr(error, name):
            setattr(error, name, value)
            error.add_note(KEPT.format(name=name, how=HOW[name]))


def _bare[E: BaseException](error: E) -> E:
    """Empty the frames that an error went through, whose variables hold rows, and forget what came before it."""
    found: BaseException | None = error
    while found is not None:
        traceback.clear_frames(found.__traceback__)
        found = found.__cause__ or found.__context__
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


__all__ = ["Paid", "keep", "paid", "weaknesses"]
