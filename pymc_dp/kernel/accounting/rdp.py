"""Renyi differential privacy: divergences of one order add; each order gives a bound, and the least is taken.

The least of many bounds, each of which holds; and the least noise of which a bound is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.base import leaf_divergence
from pymc_dp.kernel.accounting.events.subsampled_gaussian import few_kinds
from pymc_dp.kernel.errors import ArgumentError

_TOLERANCE = 1e-4  # of the noise found, relative, above the least there is; never below it


def least_on_grid(bound: Callable[[int], float], count: int, step: int) -> float:
    """Return the least of ``bound(0), ..., bound(count - 1)`` that is found: every `step`-th first, then the gaps.

    It is the least of all where they fall and then rise. Any of them holds, so that a worse one is still a bound.
    """
    found: dict[int, float] = {}
    places = [*range(0, count, step), count - 1]
    while True:
        for place in places:
            if 0 <= place < count and place not in found:
                found[place] = bound(place)
        centre = min(found, key=lambda place: found[place])
        if step == 1:
            return found[centre]
        step //= 2
        places = [centre - step, centre, centre + step]


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


# Every order gives a valid bound, so their choice steers only how close the best of them comes.
ORDERS = (
    *(1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 9.0, 10.0, 11.0, 12.0),
    *(14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 28.0, 31.0, 35.0, 39.0, 44.0, 49.0, 55.0, 62.0, 70.0, 78.0, 88.0, 99.0),
    *(111.0, 125.0, 140.0, 157.0, 176.0, 200.0, 225.0, 256.0, 320.0, 400.0, 512.0, 700.0, 1024.0, 2048.0, 4096.0),
)
_ROUNDING = 1e-14


def divergence(event: Event, order: float) -> float:
    """Return a bound on the Renyi divergence of `event` at `order` > 1 (composition: Mironov 2017, proposition 1).

    Examples
    --------
    >>> from pymc_dp.accounting import GaussianEvent
    >>> divergence(GaussianEvent(noise_multiplier=1.0), 4.0) >= 2.0
    True
    """
    return _sum(few_kinds(leaves(event)), order)


def epsilon_of(divergence: float, order: float, delta: float) -> float:
    """Return an epsilon at which a Renyi `divergence` at `order` is (epsilon, `delta`)-DP, rounded up.

    Canonne, Kamath, Steinke 2020, proposition 12.
    """
    if delta <= 0 or not math.isfinite(divergence):
        return math.inf
    x = order - 1
    terms = (divergence, -math.log(delta) / x, -math.log(order) / x, -math.log1p(1 / x))
    return max(0.0, math.fsum(terms) + _ROUNDING * sum(map(abs, terms)))


def delta_of(divergence: float, order: float, epsilon: float) -> float:
    """Return a delta at which a Renyi `divergence` at `order` is (`epsilon`, delta)-DP, rounded up."""
    if not math.isfinite(divergence):
        return 1.0
    x = order - 1
    terms = (x * divergence, -x * epsilon, -x * math.log1p(1 / x), -math.log(order))
    log = math.fsum(terms) + _ROUNDING + 1e-15 * sum(map(abs, terms))
    return max(math.exp(min(0.0, log)), math.nextafter(0.0, 1.0))


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon >= 0 at which `event` is (epsilon, `delta`)-DP; inf at delta = 0.

    Examples
    --------
    >>> from pymc_dp.accounting import SelfComposedEvent, SubsampledGaussianEvent
    >>> step = SubsampledGaussianEvent(
    ...     noise_multiplier=2.0, sampling="poisson", sample_rate=0.01, neighbours="add_remove"
    ... )
    >>> round(epsilon_at(SelfComposedEvent(event=step, count=1000), 1e-6), 2)
    0.78
    """
    counts = few_kinds(leaves(event))
    if delta <= 0:
        return math.inf
    return _least(lambda order: epsilon_of(_sum(counts, order), order, delta))


def delta_at(event: Event, epsilon: float) -> float:
    """Return a delta in [0, 1] at which `event` is (`epsilon`, delta)-DP."""
    counts = few_kinds(leaves(event))
    return _least(lambda order: delta_of(_sum(counts, order), order, epsilon))


def epsilon_at_order(event: Event, order: float, delta: float) -> float:
    """Return the epsilon that one `order`, chosen in advance, proves; a valid filter (Feldman, Zrnic 2021)."""
    return epsilon_of(divergence(event, order), order, delta)


def _sum(counts: dict[Event, int], order: float) -> float:
    # A count beyond any float has no bound here.
    floats = {leaf: float(count) if count < 2**1000 else math.inf for leaf, count in counts.items()}
    return math.fsum(count * leaf_divergence(leaf, order) for leaf, count in floats.items()) * (1 + _ROUNDING)


def _least(bound: Callable[[float], float]) -> float:
    """Return the least of `bound` over the orders, which falls and then rises."""
    return least_on_grid(lambda place: bound(ORDERS[place]), len(ORDERS), 8)
