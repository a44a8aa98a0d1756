"""From the charge to the release: spend, note, read, and say honestly what became of it."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pymc_dp._interrupts import HeldBack
from pymc_dp.accounting import Budget, Entry, Event, Ledger
from pymc_dp.errors import BudgetWarning, PrivacyError, ReleaseError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, written_release
from pymc_dp.release.repeats import PACKAGE
from pymc_dp.release.spend import spend
from pymc_dp.rows.gate import opened_gate

GIVEN_UP = (
    "Ended after the budget was charged and before anything was released: the budget is spent, and nothing was "
    "released. Press Ctrl+C once only to let a release be made."
)
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
}


class Paid:
    """A release that was charged and is being made.

    Attributes
    ----------
    interrupt : HeldBack
    made : bool
        Whether it is made, and only has to be kept.
    """

    def __init__(self, interrupt: HeldBack, ledger: Ledger | None, entry: Entry | None) -> None:
        self.interrupt = interrupt
        self._ledger, self._entry = ledger, entry
        self.made = False

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
            with opened_gate():
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
        except BaseException as error:
            failure = _bare(error)
        if holder is not None:
            vars(holder).clear()
        raise failure  # out here, where it has no context

    def noted(self, record: ReleaseRecord) -> ReleaseRecord:
        """Return a record that states the line of the charge, where the ledger is stored."""
        head = None if self._ledger is None or self._entry is None else self._ledger.head_at(self._entry)
        return record if head is None else replace(record, ledger=head)

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
            warnings.warn(NOT_KEPT.format(type(error).__name__, error), BudgetWarning, skip_file_prefixes=(PACKAGE,))

    def remark(self, text: str) -> None:
        """Write beside the entry of the ledger what became of the release.

        Where this fails, the trace alone says it: draws that are paid for are not lost with it.
        """
        if self._ledger is not None and self._entry is not None:
            with suppress(PrivacyError):
                self._entry = self._ledger.remark(self._entry, text)


@contextmanager
def paid(
    inspection: Inspection,
    budget: Budget,
    *,
    event: Event | None = None,
    label: str = "",
    ledger: Ledger | None = None,
    diameter: float = 1.0,
) -> Iterator[Paid]:
    """Charge for a release as `spend` does, and hold Ctrl+C back until it is made.

    Parameters
    ----------
    inspection, budget, event, label, ledger, diameter
        As for `spend`.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        Before anything is read; the ledger is unchanged.
    KeyboardInterrupt
        At the end, where Ctrl+C was pressed once; at once, where it was pressed again, with a text that says that the
        budget is spent.
    """
    before, payment = _entries(ledger, label), None
    with HeldBack() as interrupt:
        try:
            entry = spend(inspection, budget, event=event, label=label, ledger=ledger, diameter=diameter)
            payment = Paid(interrupt, ledger, entry)
            yield payment
        except KeyboardInterrupt as error:
            if error.args or (payment is not None and payment.made):
                raise
            if ledger is not None and not _charged(ledger, label, before):
                raise
            raise KeyboardInterrupt(GIVEN_UP) from None


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


__all__ = ["Paid", "keep", "paid"]
