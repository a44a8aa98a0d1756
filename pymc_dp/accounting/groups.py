"""From one row to a person with several, and from ``add_remove`` to ``replace``, event by event.

Each event's own group property is tighter than that of a total (`conversion.group`): m rows multiply a pure loss, a
range and a mu by m, a rho by m^2; an (epsilon, delta) loses e^((m-1) epsilon) in delta besides.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting.conversion import group
from pymc_dp.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PenaltyBitEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    leaves,
    refuse,
)
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
    >>> group_event(GDPEvent(mu=0.1), rows=3)
    GDPEvent(mu=0.3)
    >>> group_event(ZCDPEvent(rho=0.01), rows=3)
    ZCDPEvent(rho=0.09)
    """
    rows = _validate.integer("rows", rows)
    leaves(event)  # refuses what no accountant knows
    return event if rows == 1 else _of_rows(event, rows)


def replace_event(event: Event) -> Event:
    """Return what `event`, computed under ``add_remove``, is under ``replace``: for a removal and an addition.

    A Poisson batch is itself under ``replace``, with the same noise over the clip norm; anything else is `group_event`
    of two rows. There is no way back: under ``replace`` the number of rows is public.

    Examples
    --------
    >>> replace_event(GDPEvent(mu=0.1))
    GDPEvent(mu=0.2)
    """
    if any(isinstance(leaf, SubsampledGaussianEvent) and leaf.neighbours == "replace" for leaf in leaves(event)):
        raise ArgumentError("The event is bound to 'replace' already. Give one that was computed under add_remove.")
    return _replaced(event)


@singledispatch
def _of_rows(event: object, rows: int) -> Event:
    refuse(event, "group_event")


@_of_rows.register
def _(event: PureEvent, rows: int) -> Event:
    return PureEvent(epsilon=float_up(rows * decimal(event.epsilon)))


@_of_rows.register
def _(event: DiscreteLaplaceEvent, rows: int) -> Event:
    return DiscreteLaplaceEvent(scale=event.scale, sensitivity=rows * event.sensitivity)


@_of_rows.register
def _(event: DiscreteGaussianEvent, rows: int) -> Event:
    return DiscreteGaussianEvent(
        scale=event.scale, l2_squared=rows**2 * event.l2_squared, coordinates=event.coordinates
    )


@_of_rows.register
def _(event: ZCDPEvent, rows: int) -> Event:
    return ZCDPEvent(rho=float_up(rows**2 * decimal(event.rho)))


@_of_rows.register
def _(event: BoundedRangeEvent, rows: int) -> Event:
    return BoundedRangeEvent(eta=float_up(rows * decimal(event.eta)))


@_of_rows.register
def _(event: GDPEvent, rows: int) -> Event:
    return GDPEvent(mu=float_up(rows * decimal(event.mu)))


@_of_rows.register
def _(event: PenaltyBitEvent, rows: int) -> Event:
    return replace(event, ratio=float_up(rows * decimal(event.ratio)))


@_of_rows.register
def _(event: ApproximateEvent, rows: int) -> Event:
    epsilon, delta = group(event.epsilon, event.delta, rows=rows)
    if delta >= 1:
        raise ArgumentError(f"{event} promises nothing to a person with {rows} rows. Use a smaller delta per row.")
    return ApproximateEvent(epsilon=epsilon, delta=delta)


@_of_rows.register
def _(event: GaussianEvent, rows: int) -> Event:
    return GaussianEvent(noise_multiplier=_float_below(Fraction(event.noise_multiplier) / rows))


@_of_rows.register
def _(event: SubsampledGaussianEvent, rows: int) -> Event:
    return _of_rows(event.whole, rows)


@_of_rows.register
def _(event: ComposedEvent, rows: int) -> Event:
    return ComposedEvent(events=tuple(_of_rows(part, rows) for part in event.events))


@_of_rows.register
def _(event: SelfComposedEvent, rows: int) -> Event:
    return replace(event, event=_of_rows(event.event, rows))


@singledispatch
def _replaced(event: Event) -> Event:
    return _of_rows(event, 2)


@_replaced.register
def _(event: SubsampledGaussianEvent) -> Event:
    return replace(event, neighbours="replace")


@_replaced.register
def _(event: ComposedEvent) -> Event:
    return ComposedEvent(events=tuple(map(_replaced, event.events)))


@_replaced.register
def _(event: SelfComposedEvent) -> Event:
    return replace(event, event=_replaced(event.event))


def _float_below(value: Fraction) -> float:
    """Return a float that is not above `value` in binary, which is what noise is read as."""
    result = float(value)
    return result if Fraction(result) <= value else math.nextafter(result, 0.0)
