"""The one way from a plan to the rows: the ledger is charged, the release noted."""

from __future__ import annotations

from pymc_dp.accounting import Budget, Entry, Event, Ledger, charge, loss_at
from pymc_dp.inspection.findings import Inspection
from pymc_dp.mechanisms.repeats import note_release


def spend(
    inspection: Inspection,
    budget: Budget,
    *,
    event: Event | None = None,
    label: str = "",
    ledger: Ledger | None = None,
    diameter: float = 1.0,
) -> Entry | None:
    """Charge, remember; rows may be read afterwards.

    Parameters
    ----------
    inspection : Inspection
        Of the model whose rows will be read.
    budget : Budget
        What was asked for: per row, or per unit of the domain's metric.
    event : Event, optional
        What is charged; without a ledger it is not needed.
    label : str
        What it is for, public.
    ledger : Ledger, optional
    diameter : float
        Largest distance of two rows under the domain's metric.

    Returns
    -------
    Entry or None
        The line of the ledger.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        From the ledger; nothing is spent or remembered.
    """
    entry = None
    if ledger is not None:
        assert event is not None
        entry = charge(ledger, event, label=label, domain=inspection.domain, diameter=diameter)
    note_release(inspection, loss_at(budget.epsilon, diameter), warn=ledger is None)
    return entry


__all__ = ["spend"]
