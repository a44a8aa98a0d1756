"""Losses per unit of a metric: what they are for rows at a distance.

A release is ε-private per unit of ρ if its loss on two tables is at most ε times their distance. Losses of several add,
whatever the distance. That is all that is used here: concentrated losses do not grow in proportion to distance, and no
δ does, so that only pure losses are accounted per unit.

From one row to a person with several, and from ``add_remove`` to ``replace``, event by event.

Each event's own group property is tighter than that of a total (`group`): m rows multiply a pure loss, a
range and a mu by m, a rho by m^2; an (epsilon, delta) loses e^((m-1) epsilon) in delta besides.
"""

from __future__ import annotations

import math

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.budget import decimal, float_up
from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.approximate import group
from pymc_dp.kernel.accounting.events.base import changed
from pymc_dp.kernel.errors import ArgumentError

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


def group_event(event: Event, *, rows: int) -> Event:
    """Return what `event` is for a person who owns `rows` rows of the table: an event at least as costly.

    Parameters
    ----------
    event : Event
        What it is for one row, under the relation of that event.
    rows : int
        Most rows that a person has, >= 1.

    Notes
    -----
    **Guarantee.** That of the event returned, for two data sets that differ in up to `rows` rows, each by one step of
    the relation. Between them lie `rows` steps, whose losses add: so do the intervals of a bounded range. What is known
    of the shifts of a vector for one row says too little about several, so that only its sensitivity remains. A random
    batch costs no more than all rows.

    References
    ----------
    Vadhan 2017, lemma 2.2 (pure); Bun, Steinke 2016, proposition 1.9 (zCDP); Dong, Roth, Su 2022, on groups (GDP).

    Examples
    --------
    >>> from pymc_dp.accounting import GDPEvent, ZCDPEvent
    >>> group_event(GDPEvent(mu=0.1), rows=3)
    GDPEvent(mu=0.3)
    >>> group_event(ZCDPEvent(rho=0.01), rows=3)
    ZCDPEvent(rho=0.09)
    """
    rows = _validate.integer("rows", rows)
    leaves(event)  # refuses what no accountant knows
    return event if rows == 1 else changed(event, lambda leaf: leaf.of_rows(rows), "group_event")


def replace_event(event: Event) -> Event:
    """Return what `event`, computed under ``add_remove``, is under ``replace``: for a removal and an addition.

    A Poisson batch is itself under ``replace``, with the same noise over the clip norm; anything else is `group_event`
    of two rows. There is no way back: under ``replace`` the number of rows is public.

    Examples
    --------
    >>> from pymc_dp.accounting import GDPEvent
    >>> replace_event(GDPEvent(mu=0.1))
    GDPEvent(mu=0.2)
    """
    if any(leaf.relation == "replace" for leaf in leaves(event)):
        raise ArgumentError("The event is bound to 'replace' already. Give one that was computed under add_remove.")
    return changed(event, lambda leaf: leaf.under_replace(), "group_event")


def replace_from_add_remove(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """Return the guarantee under ``replace`` from the one under ``add_remove``: (2 epsilon, (1 + e^epsilon) delta).

    To replace a row is to remove it and to add another: two steps, `group` with two rows. There is no way back: under
    ``replace`` the number of rows is public, which ``add_remove`` protects.

    Examples
    --------
    >>> replace_from_add_remove(0.5)
    (1.0, 0.0)
    """
    return group(epsilon, delta, rows=2)


__all__ = ["at_distance", "group", "group_event", "loss_at", "replace_event", "replace_from_add_remove"]
