"""Basic composition of two parts: what has a privacy loss distribution, and what is known by Renyi divergences alone.

An accountant reads a whole composition in one currency, and may read a part of it badly: a single zCDP event leaves all
batches beside it to Renyi accounting. Here each part is read by the accountant that is best for it, and epsilons and
deltas add (Dwork, Roth 2014, theorem 3.16), since all parameters are fixed in advance. Any number of ways to share
epsilon may be tried: each gives a bound that holds.
"""

from __future__ import annotations

import math
from functools import lru_cache

from pymc_dp.accounting import continuous, gdp, pld, pure, rdp, zcdp
from pymc_dp.accounting.events import ComposedEvent, Event, SelfComposedEvent, leaves

_PLACES = 48  # on the curve of the part with distributions


def has_distribution(leaf: Event) -> bool:
    """Return whether the PLD accountant knows an elementary event."""
    return not (pld.pairs(leaf) is None and gdp.half_square(leaf) is None and continuous.pair_of(leaf) is None)


@lru_cache(maxsize=16)
def split(event: Event) -> tuple[Event, Event] | None:
    """Return the part with distributions and the other; None where one is empty, or the first has a pure loss.

    A pure loss adds as much to a Renyi divergence at most, so that Renyi accounting does no worse.
    """
    parts: tuple[list[Event], list[Event]] = [], []
    for leaf, count in leaves(event).items():
        parts[not has_distribution(leaf)].append(SelfComposedEvent(event=leaf, count=count))
    if not all(parts):
        return None
    known, other = (ComposedEvent(events=tuple(part)) for part in parts)
    return None if pure.total(known) is not None else (known, other)


@lru_cache(maxsize=16)
def curve(known: Event) -> tuple[tuple[float, float], ...]:
    """Return epsilons, from 0 to where the arithmetic ends, each with a delta at which `known` has it."""
    composed = pld.compose(known)
    greatest = math.inf if composed is None else pld.epsilon_at(known, 20 * composed.margin)
    if not math.isfinite(greatest):
        return ()
    epsilons = sorted({greatest * place / _PLACES for place in range(_PLACES + 1)})
    return tuple((epsilon, pld.delta_at(known, epsilon)) for epsilon in epsilons)


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon at which `event` is (epsilon, `delta`)-DP; inf where there are no two parts.

    Examples
    --------
    >>> from pymc_dp.accounting.events import SubsampledGaussianEvent, ZCDPEvent
    >>> step = SubsampledGaussianEvent(noise_multiplier=1.0, sampling="poisson", sample_rate=0.01, neighbours="replace")
    >>> both = ComposedEvent(events=(step, ZCDPEvent(rho=0.0001)))
    >>> epsilon_at(both, 1e-6) < rdp.epsilon_at(both, 1e-6)
    True
    """
    parts, best = split(event), math.inf
    if parts is None:
        return best
    for first, used in curve(parts[0]):
        if first < best and used < delta:
            left = math.nextafter(delta - used, 0.0)
            second = min(rdp.epsilon_at(parts[1], left), zcdp.epsilon_at(parts[1], left))
            best = min(best, math.nextafter(first + second, math.inf))
    return best


def delta_at(event: Event, epsilon: float) -> float:
    """Return a delta in [0, 1] at which `event` is (`epsilon`, delta)-DP; 1 where there are no two parts."""
    parts, best = split(event), 1.0
    if parts is None:
        return best
    for first, used in curve(parts[0]):
        if first <= epsilon and used < best:
            left = max(0.0, math.nextafter(epsilon - first, 0.0))
            second = min(rdp.delta_at(parts[1], left), zcdp.delta_at(parts[1], left))
            best = min(best, math.nextafter(used + second, math.inf))
    return best
