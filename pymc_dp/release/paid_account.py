"""What stands behind the account of a kernel: warnings, the ledger, the record, and Ctrl+C that waits."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self, final

from pymc_dp.accounting import Budget, Event, Ledger
from pymc_dp.errors import PrivacyError
from pymc_dp.release.paid import Paid, paid
from pymc_dp.release.source import Source


@final
class PaidAccount:
    """An account of one release: `paid` is entered where a kernel charges, and left where this context ends.

    Parameters
    ----------
    source : Source
        Whose rows will be read.
    budget : Budget
        What was asked for.
    called : str
        The label of the user, which stands in the ledger instead of that of the charge.
    ledger : Ledger, optional
    diameter : float
        Largest distance of two rows under the domain's metric.
    """

    def __init__(
        self,
        source: Source,
        budget: Budget,
        *,
        called: str = "",
        ledger: Ledger | None = None,
        diameter: float = 1.0,
    ) -> None:
        self._source, self._budget, self._called, self._ledger = source, budget, called, ledger
        self._diameter, self._held, self._payment = diameter, ExitStack(), list[Paid]()

    @property
    def relation(self) -> str:
        """Under which neighbours the budget is counted."""
        return self._source.domain.relation

    @property
    def payment(self) -> Paid:
        """What was charged."""
        (payment,) = self._payment
        return payment

    def charge(self, event: Event, label: str) -> None:
        """Warn, charge and remember, or raise and spend nothing; once."""
        if self._payment:
            raise PrivacyError("A release is charged once; this is an error of pymc_dp.")
        release = paid(
            self._source,
            self._budget,
            event=event,
            label=label,
            called=self._called,
            ledger=self._ledger,
            diameter=self._diameter,
        )
        self._payment.append(self._held.enter_context(release))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        return self._held.__exit__(kind, error, at)


__all__ = ["PaidAccount"]
