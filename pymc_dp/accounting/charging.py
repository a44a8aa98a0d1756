"""Which ledger a release goes to: one of its neighbours, of persons, or of its metric."""

from __future__ import annotations

import math

from pymc_dp import _validate
from pymc_dp.accounting.entry import Entry
from pymc_dp.accounting.ledger import Ledger
from pymc_dp.accounting.per_unit import ANY_SIZE, at_distance
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.events import Event


def check_ledger(ledger: object) -> None:
    """Refuse what is no ledger, before anything is planned with it.

    Raises
    ------
    ArgumentError
    """
    if ledger is not None:
        _validate.instance("ledger", ledger, Ledger, "Write dp.Ledger(epsilon=...), or leave it out.")


def charge(
    ledger: Ledger, event: Event, *, label: str, domain: Domain, diameter: float, delta: float | None = None
) -> Entry:
    """Charge a ledger for what was accounted under a domain, or raise and change nothing.

    Parameters
    ----------
    ledger : Ledger
        One of the domain's metric is charged per unit of it; one of neighbours what the event is for whole rows.
    event : Event
        Per row, or per unit of the domain's metric.
    label : str
    domain : Domain
    diameter : float
        Largest distance of two rows of the domain; not used without a metric.
    delta : float, optional
        At which the trace states its ε; that of the ledger by default.

    Returns
    -------
    Entry
        The line recorded.

    Raises
    ------
    BudgetExceeded
    ArgumentError
        If the ledger counts something else.
    """
    if domain.metric is not None and ledger.metric is None:
        if math.isinf(diameter):
            raise ArgumentError(f"A ledger of neighbours counts ε per row. {ANY_SIZE}")
        event, label = at_distance(event, diameter), f"{label} (whole rows: ρ up to {diameter:.6g})"
        return ledger.spend(event, label=label, neighbours=domain.neighbours, delta=delta)
    return ledger.spend(event, label=label, neighbours=domain.relation, delta=delta)


__all__ = ["charge", "check_ledger"]
