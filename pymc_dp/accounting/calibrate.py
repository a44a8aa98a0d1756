"""From a budget back to a mechanism: the most loss, or the least noise, of which so many uses fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Literal

from pymc_dp import _validate
from pymc_dp.accounting.changed import changed
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
)
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting import gdp, pure, rdp, zcdp
from pymc_dp.kernel.accounting.decimals import decimal, float_down, float_up
from pymc_dp.kernel.accounting.totals import total_epsilon

_TOLERANCE = 1e-4  # of the noise found, relative, above the least there is; never below it


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
    >>> from pymc_dp.accounting import DiscreteLaplaceEvent, PureEvent
    >>> calibrated(PureEvent(epsilon=1.0), 1.0, uses=10)
    PureEvent(epsilon=0.1)
    >>> table = DiscreteLaplaceEvent(scale=1.0, shifts=(1, 1))
    >>> round(calibrated(table, 1.0, 1e-6, uses=100).scale)
    59
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    uses = _validate.integer("uses", uses)

    def total(factor: float) -> float:
        return total_epsilon(_times(with_noise_times(like, factor), uses), delta).epsilon

    loss = pure.total(_times(like, uses))
    factor = math.inf if loss is None else float_up(loss / decimal(epsilon))
    if loss is not None and math.isinf(factor):
        raise ArgumentError(f"epsilon={epsilon} is too small for {uses} uses. Ask for fewer uses or a larger epsilon.")
    while math.isfinite(factor) and total(factor) > epsilon:  # by the last digits only
        factor = math.nextafter(factor, math.inf)
    if delta > 0 or loss is None:
        start = factor if loss is not None else max(total(1.0) / epsilon, 1e-3)
        factor = min(factor, least_noise(total, epsilon, start))
    return with_noise_times(like, factor)


def with_noise_times(event: Event, factor: float) -> Event:
    """Return the same event with `factor` > 0 times all its noise (`noisier`).

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> with_noise_times(PureEvent(epsilon=1.0), 4.0)
    PureEvent(epsilon=0.25)
    """
    return changed(event, lambda leaf: noisier(leaf, factor), "with_noise_times")


@singledispatch
def noisier(event: Event, factor: float) -> Event | None:
    """Return an elementary event with `factor` > 0 times the noise: losses are divided by it, rhos by its square.

    The noise is rounded to a float, so that a total has to be taken of the event returned. Default: None, it cannot be
    calibrated.
    """
    return None


@noisier.register
def _(event: PureEvent | ApproximateEvent, factor: float) -> Event:
    return replace(event, epsilon=_divided(event.epsilon, factor))  # a failure probability is what it is


@noisier.register
def _(event: BoundedRangeEvent, factor: float) -> Event:
    return replace(event, eta=_divided(event.eta, factor))


@noisier.register
def _(event: ZCDPEvent, factor: float) -> Event:
    return replace(event, rho=_divided(event.rho, factor, factor))


@noisier.register
def _(event: GDPEvent, factor: float) -> Event:
    return replace(event, mu=_divided(event.mu, factor))


@noisier.register
def _(event: PenaltyBitEvent, factor: float) -> Event:
    return replace(event, ratio=_divided(event.ratio, factor))


@noisier.register
def _(event: DiscreteLaplaceEvent | DiscreteGaussianEvent, factor: float) -> Event:
    return replace(event, scale=event.scale * factor)


@noisier.register
def _(event: GaussianEvent | SubsampledGaussianEvent, factor: float) -> Event:
    return replace(event, noise_multiplier=event.noise_multiplier * factor)


def _divided(loss: float, *factors: float) -> float:
    """Return a loss with so much more noise, rounded down."""
    try:
        return float_down(decimal(loss) / math.prod(map(decimal, factors), start=Fraction(1)))
    except OverflowError:
        raise ArgumentError(
            f"A loss of {loss!r} with {factors[0]!r} of its noise is beyond any float. Ask for a smaller epsilon."
        ) from None


def rho_budget(epsilon: float, delta: float) -> float:
    """Return the greatest rho of which every rho-zCDP mechanism is (`epsilon`, `delta`)-DP; delta must be > 0.

    Examples
    --------
    >>> round(rho_budget(2.52, 1e-6), 3)
    0.135
    """
    return zcdp.rho_for(epsilon, delta)


def mu_budget(epsilon: float, delta: float, *, uses: int = 1) -> float:
    """Return the greatest mu of each of `uses` mu-GDP mechanisms that together are (`epsilon`, `delta`)-DP.

    Parameters
    ----------
    epsilon, delta : float
        Budget > 0 for all uses together, per row.
    uses : int
        Number of uses, fixed in advance. Squares of mu add up, so that each has a 1 / sqrt(uses) of the whole mu.

    Returns
    -------
    float
        mu > 0 per use, rounded down.

    Raises
    ------
    ArgumentError
        For ``delta=0``: the loss of two shifted normal distributions has no largest value.

    Notes
    -----
    **Guarantee.** ``total_epsilon`` of so many `GDPEvent` is never above `epsilon`.

    References
    ----------
    Dong, Roth, Su 2022, corollaries 1 and 2.

    Examples
    --------
    >>> round(mu_budget(1.0, 1e-6), 4), round(mu_budget(1.0, 1e-6, uses=100), 5)
    (0.2367, 0.02367)
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    if delta == 0:
        raise ArgumentError(
            "mu_budget needs delta > 0: the loss of a mu-GDP mechanism is unbounded, as that of Gaussian noise is. "
            "Allow a delta far below 1 / number of rows, or truncate the parameters and use range_per_use."
        )
    return _mu_budget(epsilon, delta, _validate.integer("uses", uses))


@lru_cache(maxsize=256)
def _mu_budget(epsilon: float, delta: float, uses: int) -> float:
    result = mu_for(epsilon, delta) / math.sqrt(uses)
    while gdp.epsilon_at(_times(GDPEvent(mu=result), uses), delta) > epsilon:  # by the last digits only
        result = math.nextafter(result, 0.0)
    return result


def range_per_use(epsilon: float, delta: float = 0.0, *, uses: int) -> float:
    """Return the greatest range of each of `uses` exponential mechanisms that together are (`epsilon`, `delta`)-DP.

    Parameters
    ----------
    epsilon : float
        Budget > 0 for all uses together, per row.
    delta : float
        In [0, 1), for all uses together. At 0 the ranges add.
    uses : int
        Number of draws or updates, fixed in advance.

    Returns
    -------
    float
        eta > 0: by adding ranges, epsilon / uses; at delta > 0 at least sqrt(8 rho / uses) with the rho of the budget,
        and more where another accountant proves more.

    Notes
    -----
    **Guarantee.** ``total_epsilon`` of so many `BoundedRangeEvent` is never above `epsilon`.

    Examples
    --------
    >>> range_per_use(1.0, uses=10)
    0.1
    >>> range_per_use(1.0, 1e-6, uses=1000) > (8 * rho_budget(1.0, 1e-6) / 1000) ** 0.5 * (1 - 1e-9)
    True
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    return _range_per_use(epsilon, delta, _validate.integer("uses", uses))


@lru_cache(maxsize=256)
def _range_per_use(epsilon: float, delta: float, uses: int) -> float:
    best = float_down(decimal(epsilon) / uses)
    if best == 0:
        raise ArgumentError(f"epsilon={epsilon} is too small for {uses} uses. Ask for fewer uses or a larger epsilon.")
    if delta == 0:
        return best

    def total(noise: float) -> float:
        return total_epsilon(_times(BoundedRangeEvent(eta=1 / noise), uses), delta).epsilon

    eta = math.sqrt(8 * rho_budget(epsilon, delta) / uses)
    while zcdp.epsilon_at(_times(BoundedRangeEvent(eta=eta), uses), delta) > epsilon:  # by the last digits only
        eta *= 1 - 1e-15
    best = max(best, eta)
    return max(best, 1 / least_noise(total, epsilon, 1 / best))


def penalty_ratio(epsilon: float, delta: float, *, uses: int, most_noise: float) -> float:
    """Return the greatest ratio of range to noise of which `uses` accept bits are together (`epsilon`, `delta`)-DP.

    Parameters
    ----------
    epsilon, delta : float
        Budget > 0 for all bits together, per row.
    uses : int
        Number of bits, fixed in advance.
    most_noise : float
        The largest standard deviation of the noise on a log ratio; as for `PenaltyBitEvent`.

    Returns
    -------
    float
        ratio > 0 per bit; for many bits about a fifth above the mu of as many releases of the noised ratios themselves.

    Notes
    -----
    **Guarantee.** ``total_epsilon`` of so many `PenaltyBitEvent` is never above `epsilon`.

    Examples
    --------
    >>> bits = penalty_ratio(1.0, 1e-6, uses=1000, most_noise=3.0)
    >>> 1.1 < bits / mu_budget(1.0, 1e-6, uses=1000) < 1.3
    True
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    if delta == 0:
        raise ArgumentError("penalty_ratio needs delta > 0: Gaussian noise has no pure guarantee.")
    return _penalty_ratio(epsilon, delta, _validate.integer("uses", uses), most_noise)


@lru_cache(maxsize=256)
def _penalty_ratio(epsilon: float, delta: float, uses: int, most_noise: float) -> float:
    def total(noise: float) -> float:
        event = PenaltyBitEvent(ratio=1 / noise, most_noise=most_noise)
        counted = _times(event, uses)
        return min(gdp.epsilon_at(counted, delta), rdp.epsilon_at(counted, delta))

    released = _mu_budget(epsilon, delta, uses)
    return max(released, 1 / least_noise(total, epsilon, 1 / (1.2 * released)))


def gaussian_multiplier(epsilon: float, delta: float, *, uses: int = 1) -> float:
    """Return the least noise of `uses` Gaussian mechanisms on all rows: standard deviation over L2 **sensitivity**.

    Parameters
    ----------
    epsilon, delta : float
        Budget > 0 for all uses together, per row.
    uses : int
        Number of releases, fixed in advance.

    Notes
    -----
    **Guarantee.** For continuous noise in float64 arithmetic: ``total_epsilon`` of so many `GaussianEvent` is never
    above `epsilon`.

    Examples
    --------
    >>> round(gaussian_multiplier(1.0, 1e-6), 3)
    4.225
    """
    uses = _validate.integer("uses", uses)
    result = math.sqrt(uses) / mu_for(epsilon, delta)
    while gdp.epsilon_at(_times(GaussianEvent(noise_multiplier=result), uses), delta) > epsilon:
        result *= 1 + 1e-15
    return result


def noise_multiplier(
    epsilon: float,
    delta: float,
    steps: int,
    *,
    sampling: Literal["poisson", "without_replacement"],
    sample_rate: float | None = None,
    population: int | None = None,
    batch_size: int | None = None,
    neighbours: Literal["replace", "add_remove"] = "replace",
    beside: Event | None = None,
) -> float:
    """Return the least noise of `steps` clipped sums over random batches: standard deviation over **clip norm**.

    Parameters
    ----------
    epsilon, delta : float
        Budget > 0 for all steps together, per row.
    steps : int
        Number of batches, fixed in advance.
    sampling, sample_rate, population, batch_size, neighbours
        As for `SubsampledGaussianEvent`.
    beside : Event, optional
        What else the budget pays for, fixed in advance too; the steps get what the accountants say is left.

    Returns
    -------
    float
        At most a ten-thousandth above the least that the accountants of this sampler and relation prove.

    Raises
    ------
    ArgumentError
        For a sampler and relation without a proved curve, for ``delta=0``, or if nothing is left `beside`.

    Notes
    -----
    **Guarantee.** For continuous noise in float64 arithmetic: ``total_epsilon`` of so many `SubsampledGaussianEvent`,
    composed with `beside`, is never above `epsilon`.

    Examples
    --------
    >>> round(noise_multiplier(1.0, 1e-5, 1000, sampling="poisson", sample_rate=0.01, neighbours="add_remove"), 2)
    1.41
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    if delta == 0:
        raise ArgumentError("noise_multiplier needs delta > 0: Gaussian noise has no pure guarantee.")
    like = SubsampledGaussianEvent(
        noise_multiplier=1.0,
        sampling=sampling,
        sample_rate=sample_rate,
        population=population,
        batch_size=batch_size,
        neighbours=neighbours,
    )
    return _noise_multiplier(epsilon, delta, _validate.integer("steps", steps), like, beside)


@lru_cache(maxsize=256)
def _noise_multiplier(
    epsilon: float, delta: float, steps: int, like: SubsampledGaussianEvent, beside: Event | None
) -> float:
    def total(noise: float) -> float:
        event: Event = _times(with_noise(like, noise), steps)
        whole = event if beside is None else ComposedEvent(events=(beside, event))
        return total_epsilon(whole, delta).epsilon

    taken = 0.0 if beside is None else total_epsilon(beside, delta).epsilon
    if taken >= epsilon:
        raise ArgumentError(f"epsilon={epsilon} leaves nothing after other costs of {taken}. Spend less there.")
    # The central limit: steps of chi-square divergence q^2 (e^(1/z^2) - 1) add up to mu^2 (Dong, Roth, Su 2022).
    mu = mu_for(epsilon - taken, delta)
    sensitivity = like.noise_multiplier / like.over_sensitivity
    start = sensitivity / math.sqrt(math.log1p((mu / like.rate) ** 2 / steps))
    result = least_noise(lambda noise: total(noise) - taken, epsilon - taken, start)
    while beside is not None and total(result) > epsilon:  # by the last digits only
        result *= 1 + 1e-12
    return result


def mu_for(epsilon: float, delta: float) -> float:
    """Return the greatest mu found whose conversion is not above (`epsilon`, `delta`); delta must be > 0.

    Examples
    --------
    >>> gdp.epsilon_of_mu(mu_for(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    if delta == 0:
        raise ArgumentError(
            "mu_for needs delta > 0: Gaussian noise has no pure guarantee. Use delta far below 1 / rows."
        )
    low, high = 0.0, 1.0
    while gdp.epsilon_of_mu(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(100):
        if not low < (middle := (low + high) / 2) < high:
            break
        low, high = (middle, high) if gdp.epsilon_of_mu(middle, delta) <= epsilon else (low, middle)
    if low == 0:
        raise ArgumentError(f"epsilon={epsilon} is too small at delta={delta}: no mu > 0 was found. Ask for more.")
    return low


def least_noise(total: Callable[[float], float], epsilon: float, start: float) -> float:
    """Return a noise whose `total` was found to be at most `epsilon`, and at most a little above one that was not.

    In logarithms the total is nearly a line that falls, so that secants need few steps. Each aims past the root, away
    from the side last seen, so that both ends close in.
    """
    enough = short = 0.0  # noises that do and do not suffice, 0 until one is known
    at: dict[float, float] = {}
    noise = start
    for step in range(100):
        value = at[noise] = total(noise)
        if value <= epsilon:
            enough = noise if not enough else min(enough, noise)
        else:
            short = max(short, noise)
        if not short or not enough:
            move = min(max(value / epsilon, 0.25), 4.0)
            noise *= move * (1 + _TOLERANCE) if value > epsilon else move / (1 + _TOLERANCE)
            continue
        if enough <= short * (1 + 2 * _TOLERANCE):
            return enough
        middle = math.sqrt(short * enough)
        if step % 4 != 3 and math.isfinite(at[short]) and at[enough] > 0:
            share = math.log(at[short] / epsilon) / math.log(at[short] / at[enough])
            middle = short * (enough / short) ** share
        aim = middle / (1 + _TOLERANCE) if value <= epsilon else middle * (1 + _TOLERANCE)
        noise = min(max(aim, short * (1 + _TOLERANCE / 2)), enough / (1 + _TOLERANCE / 2))
    if not enough:
        raise ArgumentError(f"No noise was found for epsilon={epsilon}. Ask for a larger epsilon or fewer steps.")
    return enough


def with_noise(event: SubsampledGaussianEvent, noise_multiplier: float) -> SubsampledGaussianEvent:
    """Return the same step with other noise, standard deviation over clip norm."""
    return replace(event, noise_multiplier=noise_multiplier)


def _times(event: Event, count: int) -> SelfComposedEvent:
    return SelfComposedEvent(event=event, count=count)
