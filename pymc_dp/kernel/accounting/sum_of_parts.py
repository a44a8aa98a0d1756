"""Basic composition of two parts: what has a privacy loss distribution, and what is known by Renyi divergences alone.

An accountant reads a whole composition in one currency, and may read a part of it badly: a single zCDP event leaves all
batches beside it to Renyi accounting. Here each part is read by the accountant that is best for it, and epsilons and
deltas add (Dwork, Roth 2014, theorem 3.16), since all parameters are fixed in advance. The parts may be interleaved: a
mechanism with a dominating pair can be made from a draw of the pair (Blackwell 1953), and these can all be drawn first.
Any number of ways to share epsilon may be tried: each gives a bound that holds.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pymc_dp.kernel.accounting import pld, pure, rdp, zcdp
from pymc_dp.kernel.accounting.events import ComposedEvent, Event, SelfComposedEvent, leaves
from pymc_dp.kernel.accounting.rdp import least_on_grid

_PLACES = 400  # on the curve of the part with distributions, 1.6% apart
STEP = 32  # in a first search along it
_GREATEST = 500.0  # of its epsilons, far from where exp() overflows


@lru_cache(maxsize=16)
def split(event: Event) -> tuple[Event, Event] | None:
    """Return the part with distributions and the other; None where one is empty, or the first has a pure loss.

    A pure loss adds as much to a Renyi divergence at most, so that Renyi accounting does no worse.
    """
    parts: tuple[list[Event], list[Event]] = [], []
    for leaf, count in leaves(event).items():
        parts[leaf.loss_pairs() is None].append(SelfComposedEvent(event=leaf, count=count))
    if not all(parts):
        return None
    known, other = (ComposedEvent(events=tuple(part)) for part in parts)
    return None if pure.total(known) is not None else (known, other)


@lru_cache(maxsize=16)
def curve(known: Event) -> tuple[tuple[float, float], ...]:
    """Return epsilons, up to where the arithmetic ends, each with a delta at which `known` has it."""
    composed = pld.compose(known)
    # A failure probability of its own is a part of every delta.
    least = 0.0 if composed is None else max(20 * composed.margin, 1.001 * pld.deltas_at(known, [_GREATEST])[0])
    greatest = math.inf if composed is None else pld.epsilon_at(known, least)
    if not 0 < greatest < _GREATEST:
        return ()
    epsilons = np.concatenate([[0.0], np.geomspace(greatest / 500, greatest, _PLACES)]).tolist()
    return tuple(zip(epsilons, pld.deltas_at(known, epsilons), strict=True))


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon at which `event` is (epsilon, `delta`)-DP; inf where there are no two parts.

    Examples
    --------
    >>> from pymc_dp.accounting import SubsampledGaussianEvent, ZCDPEvent
    >>> step = SubsampledGaussianEvent(noise_multiplier=1.0, sampling="poisson", sample_rate=0.01, neighbours="replace")
    >>> both = ComposedEvent(events=(step, ZCDPEvent(rho=0.0001)))
    >>> epsilon_at(both, 1e-6) < rdp.epsilon_at(both, 1e-6)
    True
    """
    parts = split(event) if delta > 0 else None
    places = curve(parts[0]) if parts else ()
    if parts is None or not places:
        return math.inf
    other = parts[1]

    def total(place: int) -> float:
        first, used = places[place]
        left = math.nextafter(delta - used, 0.0)
        second = min(rdp.epsilon_at(other, left), zcdp.epsilon_at(other, left)) if used < delta else math.inf
        return math.nextafter(first + second, math.inf)

    return least_on_grid(total, len(places), STEP)
