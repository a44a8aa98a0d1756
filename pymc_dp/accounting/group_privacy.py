"""From one row to a person with several, and from ``add_remove`` to ``replace``, event by event.

Each event's own group property is tighter than that of a total (`group`): m rows multiply a pure loss, a
range and a mu by m, a rho by m^2; an (epsilon, delta) loses e^((m-1) epsilon) in delta besides.
"""

from __future__ import annotations

from pymc_dp import _validate
from pymc_dp.accounting.events import Event, leaves
from pymc_dp.accounting.events.approximate import group
from pymc_dp.accounting.events.base import changed
from pymc_dp.errors import ArgumentError


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


__all__ = ["group", "group_event", "replace_event", "replace_from_add_remove"]
