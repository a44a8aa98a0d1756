"""Spending twice is seen: releases from the same columns in one process, counted by schema, never by value."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from pymc_dp.accounting import Ledger
from pymc_dp.accounting.book import Book
from pymc_dp.errors import PrivacyError, RepeatedReleaseWarning
from pymc_dp.inspection.findings import Inspection

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
def noted_release(inspection: Inspection, epsilon: float, ledger: Ledger | None) -> Iterator[None]:
    """Remember the release that is charged within; warn if its cost is not added to that of others before it.

    Columns count as the same if name, dtype and public number of rows agree: PyMC copies the arrays it is given, so
    neither identity nor (because no message may depend on values) content can tell. The warning comes before the
    charge, and what raises there is not remembered: where warnings are errors, nothing is spent.

    Parameters
    ----------
    inspection : Inspection
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
    noted, book = _of(inspection), None if ledger is None else ledger.book
    with _lock:
        before = max((tuple(one.alone) for one in noted), key=sum, default=())
        known = any(book in one.ledgers for one in noted) if book is not None else False
        others = {} if known else {id(other): other for one in noted for other in one.ledgers}
        _remember(noted, epsilon, book, 1)
    try:
        names = ", ".join(observed.name for observed in inspection.observed)
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


def _of(inspection: Inspection) -> list[_Noted]:
    n_rows = inspection.n_rows if inspection.domain.n_max is None else None
    keys = [(observed.name, str(observed.leaf.type.dtype), n_rows) for observed in inspection.observed]
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
