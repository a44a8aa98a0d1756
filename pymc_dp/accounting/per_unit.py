"""Losses per unit of a metric: what they are for rows at a distance, and which ledger they go to.

A release is ε-private per unit of ρ if its loss on two tables is at most ε times their distance. Losses of several add,
whatever the distance. That is all that is used here: concentrated losses do not grow in proportion to distance, and no
δ does, so that only pure losses are accounted per unit.
"""

from __future__ import annotations

import math

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting.entry import Entry
from pymc_dp.accounting.events import Event
from pymc_dp.accounting.events.base import changed
from pymc_dp.accounting.ledger import Ledger
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError

ANY_SIZE = (
    "The values of rows have no bounds, so rows may be at any distance: ε per unit of ρ gives no ε for a whole row. "
    "Give public bounds (Domain), or count in a ledger of the metric, dp.Ledger(epsilon, metric=...)."
)


def at_distance(event: Event, distance: float) -> Event:
    """Return what `event`, accounted per unit of a metric, is for data sets at `distance` at most: one for neighbours.

    Parameters
    ----------
    event : Event
        Pure losses, bounded ranges and Laplace noise, whose sensitivity is per unit.
    distance : float
        In units of ρ, >= 0 and finite. The diameter of the domain makes it one for whole rows under ``"replace"``.

    Raises
    ------
    ArgumentError
        If the event has no loss in proportion to distance, or `distance` is infinite.

    Examples
    --------
    >>> from pymc_dp.accounting import BoundedRangeEvent
    >>> at_distance(BoundedRangeEvent(eta=0.5), 6.0)
    BoundedRangeEvent(eta=3.0)
    """
    if not (math.isfinite(distance) and distance >= 0):
        raise ArgumentError(f"distance must be finite and >= 0, got {distance}. {ANY_SIZE}")
    exact = decimal(float(distance))
    return changed(event, lambda leaf: leaf.at_distance(exact), "at_distance")


def loss_at(epsilon: float, distance: float) -> float:
    """Return ε times a distance, rounded up; inf where rows may be at any distance."""
    return float_up(decimal(epsilon) * decimal(float(distance))) if math.isfinite(distance) else math.inf


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


__all__ = ["at_distance", "charge", "loss_at"]
