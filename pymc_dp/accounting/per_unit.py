"""Losses per unit of a metric: what they are for rows at a distance.

A release is ε-private per unit of ρ if its loss on two tables is at most ε times their distance. Losses of several add,
whatever the distance. That is all that is used here: concentrated losses do not grow in proportion to distance, and no
δ does, so that only pure losses are accounted per unit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from pymc_dp.accounting.changed import changed
from pymc_dp.accounting.events import BoundedRangeEvent, DiscreteLaplaceEvent, Event, PureEvent
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.decimals import decimal, float_up

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
    return changed(event, lambda leaf: apart(leaf, exact), "at_distance")


def loss_at(epsilon: float, distance: float) -> float:
    """Return ε times a distance, rounded up; inf where rows may be at any distance."""
    return float_up(decimal(epsilon) * decimal(float(distance))) if math.isfinite(distance) else math.inf


@singledispatch
def apart(event: Event, distance: Fraction) -> Event | None:
    """Return what an elementary event, accounted per unit of a metric, is for data sets at `distance`, in units.

    Default: None, for a loss that does not grow in proportion.
    """
    return None


@apart.register
def _(event: PureEvent, distance: Fraction) -> PureEvent:
    return PureEvent(epsilon=float_up(decimal(event.epsilon) * distance))


@apart.register
def _(event: BoundedRangeEvent, distance: Fraction) -> BoundedRangeEvent:
    return BoundedRangeEvent(eta=float_up(decimal(event.eta) * distance))


@apart.register
def _(event: DiscreteLaplaceEvent, distance: Fraction) -> DiscreteLaplaceEvent:
    return replace(event, sensitivity=math.ceil(event.sensitivity * distance), shifts=None)


__all__ = ["ANY_SIZE", "apart", "at_distance", "loss_at"]
