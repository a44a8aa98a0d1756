"""Renyi differential privacy: divergences of one order add; each order gives a bound, and the least is taken."""

from __future__ import annotations

import math
from collections.abc import Callable

from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.base import leaf_divergence
from pymc_dp.kernel.accounting.events.subsampled_gaussian import few_kinds


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
    return divergence_of(few_kinds(leaves(event)), order)


def epsilon_of(divergence: float, order: float, delta: float) -> float:
    """Return an epsilon at which a Renyi `divergence` at `order` is (epsilon, `delta`)-DP, rounded up.

    Canonne, Kamath, Steinke 2020, proposition 12.
    """
    if delta <= 0 or not math.isfinite(divergence):
        return math.inf
    x = order - 1
    terms = (divergence, -math.log(delta) / x, -math.log(order) / x, -math.log1p(1 / x))
    return max(0.0, math.fsum(terms) + _ROUNDING * sum(map(abs, terms)))


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
    return least_over_orders(lambda order: epsilon_of(divergence_of(counts, order), order, delta))


def divergence_of(counts: dict[Event, int], order: float) -> float:
    """Return the sum of the divergences of elementary events, each so often, at one order."""
    # A count beyond any float has no bound here.
    floats = {leaf: float(count) if count < 2**1000 else math.inf for leaf, count in counts.items()}
    return math.fsum(count * leaf_divergence(leaf, order) for leaf, count in floats.items()) * (1 + _ROUNDING)


def least_over_orders(bound: Callable[[float], float]) -> float:
    """Return the least of `bound` over the orders, which falls and then rises."""
    return least_on_grid(lambda place: bound(ORDERS[place]), len(ORDERS), 8)
