"""From one row to a person with several, and from ``add_remove`` to ``replace``, event by event.

Each event's own group property is tighter than that of a total (`group`): m rows multiply a pure loss, a
range and a mu by m, a rho by m^2; an (epsilon, delta) loses e^((m-1) epsilon) in delta besides.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from pymc_dp import _validate
from pymc_dp.accounting.changed import changed
from pymc_dp.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PenaltyBitEvent,
    PureEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    leaves,
)
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.decimals import decimal, float_up


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
    return event if rows == 1 else changed(event, lambda leaf: of_rows(leaf, rows), "group_event")


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
    return changed(event, under_replace, "group_event")


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


def group(epsilon: float, delta: float = 0.0, *, rows: int) -> tuple[float, float]:
    """Return the guarantee for a person who owns `rows` rows, from the one for a single row.

    (m epsilon, delta (e^(m epsilon) - 1) / (e^epsilon - 1)): between the two data sets lie m steps of one row, and
    delta of step i is multiplied by e^(i epsilon), i = 0..m-1 (Dwork, Roth 2014, theorem 2.2; Vadhan 2017, lemma 2.2).
    A delta of 1 says nothing.

    Examples
    --------
    >>> group(0.5, rows=3)
    (1.5, 0.0)
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    rows = _validate.integer("rows", rows)
    total = float_up(rows * decimal(epsilon))
    if delta == 0 or rows == 1:
        return total, delta
    # The factor as e^((m-1) epsilon) (1 - e^(-m epsilon)) / (1 - e^-epsilon), which overflows nowhere, in logarithms.
    terms = (total - epsilon, math.log(math.expm1(-total) / math.expm1(-epsilon)), math.log(delta))
    return total, math.exp(min(0.0, sum(terms) + 1e-14 * sum(map(abs, terms))))


@singledispatch
def of_rows(event: Event, rows: int) -> Event | None:
    """Return what an elementary event is for a person who owns `rows` rows, at least as costly. Default: not known."""
    return None


@of_rows.register
def _(event: PureEvent, rows: int) -> PureEvent:
    return PureEvent(epsilon=float_up(rows * decimal(event.epsilon)))


@of_rows.register
def _(event: ApproximateEvent, rows: int) -> ApproximateEvent:
    epsilon, delta = group(event.epsilon, event.delta, rows=rows)
    if delta >= 1:
        raise ArgumentError(f"{event} promises nothing to a person with {rows} rows. Use a smaller delta per row.")
    return ApproximateEvent(epsilon=epsilon, delta=delta)


@of_rows.register
def _(event: BoundedRangeEvent, rows: int) -> BoundedRangeEvent:
    return BoundedRangeEvent(eta=float_up(rows * decimal(event.eta)))


@of_rows.register
def _(event: DiscreteLaplaceEvent, rows: int) -> DiscreteLaplaceEvent:
    return DiscreteLaplaceEvent(scale=event.scale, sensitivity=rows * event.sensitivity)


@of_rows.register
def _(event: DiscreteGaussianEvent, rows: int) -> DiscreteGaussianEvent:
    squares = rows**2 * event.l2_squared
    return DiscreteGaussianEvent(scale=event.scale, l2_squared=squares, coordinates=event.coordinates)


@of_rows.register
def _(event: ZCDPEvent, rows: int) -> ZCDPEvent:
    return ZCDPEvent(rho=float_up(rows**2 * decimal(event.rho)))


@of_rows.register
def _(event: GDPEvent, rows: int) -> GDPEvent:
    return GDPEvent(mu=float_up(rows * decimal(event.mu)))


@of_rows.register
def _(event: GaussianEvent, rows: int) -> GaussianEvent:
    return GaussianEvent(noise_multiplier=_float_below(Fraction(event.noise_multiplier) / rows))


@of_rows.register
def _(event: SubsampledGaussianEvent, rows: int) -> Event | None:
    return of_rows(GaussianEvent.of_all_rows(event), rows)


@of_rows.register
def _(event: PenaltyBitEvent, rows: int) -> PenaltyBitEvent:
    return replace(event, ratio=float_up(rows * decimal(event.ratio)))


def _float_below(value: Fraction) -> float:
    """Return a float that is not above `value` in binary, which is what noise is read as."""
    result = float(value)
    return result if Fraction(result) <= value else math.nextafter(result, 0.0)


@singledispatch
def under_replace(event: Event) -> Event | None:
    """Return what an elementary event, computed under add_remove, is under replace. Default: that of two rows."""
    return of_rows(event, 2)


@under_replace.register
def _(event: SubsampledGaussianEvent) -> SubsampledGaussianEvent:
    return replace(event, neighbours="replace")


__all__ = ["group", "group_event", "of_rows", "replace_event", "replace_from_add_remove", "under_replace"]
