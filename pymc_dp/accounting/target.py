"""From any event to the one of its kind that fills a budget: all its noise grows or shrinks by one factor."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from pymc_dp import _validate
from pymc_dp.accounting import pure
from pymc_dp.accounting._exact import decimal, float_down, float_up
from pymc_dp.accounting.calibrate import least_noise
from pymc_dp.accounting.conversion import total_epsilon
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
    refuse,
)
from pymc_dp.errors import ArgumentError


@singledispatch
def with_noise_times(event: object, factor: float) -> Event:
    """Return the same event with `factor` > 0 times the noise: losses are divided by it, rhos by its square.

    The noise is rounded to a float, so that a total has to be taken of the event returned.

    Examples
    --------
    >>> with_noise_times(PureEvent(epsilon=1.0), 4.0)
    PureEvent(epsilon=0.25)
    """
    refuse(event, "with_noise_times")


@with_noise_times.register
def _(event: PureEvent, factor: float) -> Event:
    return PureEvent(epsilon=_divided(event.epsilon, factor))


@with_noise_times.register(DiscreteGaussianEvent)
@with_noise_times.register(DiscreteLaplaceEvent)
def _(event: DiscreteGaussianEvent | DiscreteLaplaceEvent, factor: float) -> Event:
    return replace(event, scale=event.scale * factor)


@with_noise_times.register
def _(event: ZCDPEvent, factor: float) -> Event:
    return ZCDPEvent(rho=_divided(event.rho, factor, factor))


@with_noise_times.register
def _(event: BoundedRangeEvent, factor: float) -> Event:
    return BoundedRangeEvent(eta=_divided(event.eta, factor))


@with_noise_times.register
def _(event: GDPEvent, factor: float) -> Event:
    return GDPEvent(mu=_divided(event.mu, factor))


@with_noise_times.register
def _(event: PenaltyBitEvent, factor: float) -> Event:
    return replace(event, ratio=_divided(event.ratio, factor))


@with_noise_times.register
def _(event: ApproximateEvent, factor: float) -> Event:
    return replace(event, epsilon=_divided(event.epsilon, factor))  # its failure probability is what it is


@with_noise_times.register(GaussianEvent)
@with_noise_times.register(SubsampledGaussianEvent)
def _(event: GaussianEvent | SubsampledGaussianEvent, factor: float) -> Event:
    return replace(event, noise_multiplier=event.noise_multiplier * factor)


@with_noise_times.register
def _(event: ComposedEvent, factor: float) -> Event:
    return ComposedEvent(events=tuple(with_noise_times(part, factor) for part in event.events))


@with_noise_times.register
def _(event: SelfComposedEvent, factor: float) -> Event:
    return SelfComposedEvent(event=with_noise_times(event.event, factor), count=event.count)


def _divided(loss: float, *factors: float) -> float:
    try:
        return float_down(decimal(loss) / math.prod(map(decimal, factors), start=Fraction(1)))
    except OverflowError:
        raise ArgumentError(
            f"A loss of {loss!r} with {factors[0]!r} of its noise is beyond any float. Ask for a smaller epsilon."
        ) from None


def calibrated(like: Event, epsilon: float, delta: float = 0.0, *, uses: int = 1) -> Event:
    """Return the event of the kind of `like`, of least noise, of which `uses` are together (`epsilon`, `delta`)-DP.

    Parameters
    ----------
    like : Event
        The mechanism at some noise. All its noise is multiplied by one number, so that parts of a composition keep
        their shares; sampling rates, shifts and counts stay.
    epsilon : float
        Budget > 0 for all uses together, per row.
    delta : float
        In [0, 1), for all uses together. At 0 losses add.
    uses : int
        Number of uses, fixed in advance.

    Returns
    -------
    Event
        Its noise is at most a ten-thousandth above the least that the accountants prove to do; at ``delta=0`` the
        rounding of a float.

    Raises
    ------
    ArgumentError
        If no amount of noise has a bound, as for Gaussian noise at ``delta=0``, or it lies outside of what the event
        can hold.

    Notes
    -----
    **Guarantee.** ``total_epsilon`` of so many of the returned event is never above `epsilon`.

    Examples
    --------
    >>> calibrated(PureEvent(epsilon=1.0), 1.0, uses=10)
    PureEvent(epsilon=0.1)
    >>> table = DiscreteLaplaceEvent(scale=1.0, shifts=(1, 1))
    >>> round(calibrated(table, 1.0, 1e-6, uses=100).scale)
    59
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    uses = _validate.integer("uses", uses)

    def total(factor: float) -> float:
        return total_epsilon(SelfComposedEvent(event=with_noise_times(like, factor), count=uses), delta).epsilon

    loss = pure.total(SelfComposedEvent(event=like, count=uses))
    factor = math.inf if loss is None else float_up(loss / decimal(epsilon))
    if loss is not None and math.isinf(factor):
        raise ArgumentError(f"epsilon={epsilon} is too small for {uses} uses. Ask for fewer uses or a larger epsilon.")
    while math.isfinite(factor) and total(factor) > epsilon:  # by the last digits only
        factor = math.nextafter(factor, math.inf)
    if delta > 0 or loss is None:
        start = factor if loss is not None else max(total(1.0) / epsilon, 1e-3)
        factor = min(factor, least_noise(total, epsilon, start))
    return with_noise_times(like, factor)
