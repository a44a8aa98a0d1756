"""Privacy loss distributions: the tightest composition, for events whose parameters are fixed in advance.

An event is known here by the pairs of distributions that dominate it (`pairs`); their losses are put on one grid
(`loss_grid`), where they are composed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pymc_dp.accounting import gdp, loss_grid, pure
from pymc_dp.accounting._exact import float_up
from pymc_dp.accounting.events import Event, leaves
from pymc_dp.accounting.events.subsampled_gaussian import few_kinds
from pymc_dp.accounting.pairs import ContinuousPair, LaplacePair, Normal, Shift

# Limits of the computation; beyond them there is no answer here, and the other accountants stand.
_MOST_COMPOSITIONS = 10**6
_GREATEST_LOSS = 100.0  # of one coordinate of one event; there exp() is still far from overflow
_LEAST_LOSS = 1e-200  # the greatest of a continuous pair; below, spacings of the grid have no digits left
_MOST_KINDS = 64  # of continuous pairs that differ
# The composed distribution comes out of fast Fourier transforms, with errors of either sign that do not shrink in the
# tail as the masses do. Measured on tail sums against convolution by positive sums, per composition: below 1e-16 in
# the tail and 1e-15 of the sum itself.
_FOURIER_ERROR = 1e-14


class Counts(NamedTuple):
    """Pairs and how often each is composed."""

    laplace: dict[LaplacePair, int]
    continuous: dict[ContinuousPair, int]


def pairs_of(counts: Mapping[Event, int]) -> Counts | None:
    """Return the pairs of elementary events, all Gaussian noise merged into one; None if any event has none."""
    found = Counts({}, {})
    rho = excess = tail = Fraction(0)
    for event, count in counts.items():
        known = event.loss_pairs()
        if known is None:
            return None
        for pair in known:
            if isinstance(pair, Normal):
                rho, excess, tail = rho + count * pair.rho, excess + count * pair.excess, tail + count * pair.tail
            elif isinstance(pair, LaplacePair):
                pair = pair.coarse()
                found.laplace[pair] = found.laplace.get(pair, 0) + count
            else:
                found.continuous[pair] = found.continuous.get(pair, 0) + count
    if rho:
        found.continuous[Shift(gdp.mu_of_rho(rho), float_up(excess), float_up(tail))] = 1
    return found


class Composed(NamedTuple):
    """A composed privacy loss distribution, and what its numbers may be wrong by."""

    distribution: Any
    margin: float


@lru_cache(maxsize=16)
def compose(event: Event) -> Composed | None:
    """Return the composed distribution of `event`, pessimistic, or None where it cannot be had."""
    found = pairs_of(few_kinds(leaves(event)))
    if found is None:
        return None
    counts, continua = found
    total = sum(counts.values()) + sum(continua.values())
    if (
        total > _MOST_COMPOSITIONS
        or len(continua) > _MOST_KINDS
        or any(pair.unit * pair.shift > _GREATEST_LOSS for pair in counts)
        or not all(_LEAST_LOSS <= pair.greatest <= _GREATEST_LOSS for pair in continua)
    ):
        return None
    interval = loss_grid.fine(counts, continua) if continua else loss_grid.grid(counts)
    # Rounded up, a positive total loss can only come out too large; negative ones never enter a divergence.
    spacing = math.nextafter(float_up(interval), math.inf)
    one: Any
    result = None
    for pair, count in counts.items():
        one = loss_grid.laplace_distribution(pair, interval, spacing)
        many = one.self_compose(count)
        result = many if result is None else result.compose(many)
    for other, count in continua.items():
        one = loss_grid.distribution(other, spacing)
        many = one.self_compose(count) if count > 1 else one
        result = many if result is None else result.compose(many)
    return Composed(result, _FOURIER_ERROR * (10 + total))


def delta_at(event: Event, epsilon: float) -> float:
    """Return a delta in [0, 1] at which `event` is (`epsilon`, delta)-DP; 1 where no distribution is known."""
    composed = compose(event)
    return 1.0 if composed is None else _delta(composed, epsilon)


def _delta(composed: Composed, epsilon: float) -> float:
    raw = float(composed.distribution.get_delta_for_epsilon(epsilon))
    # Below the margin there is noise of either sign, which must not make delta rise with epsilon.
    return min(1.0, max(composed.margin, raw * (1 + 1e-9)) + composed.margin)


def deltas_at(event: Event, epsilons: Sequence[float]) -> list[float]:
    """Return `delta_at` each of many rising epsilons, at little more than the cost of one, larger by a millionth."""
    composed = compose(event)
    if composed is None:
        return [1.0] * len(epsilons)
    raw = composed.distribution.get_delta_for_epsilon(np.asarray(epsilons))
    # Theirs are differences of sums over up to 2^17 masses, and exact to 1e-9 of themselves.
    return [min(1.0, max(composed.margin, float(one) * (1 + 1e-6)) + composed.margin) for one in raw]


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon at which `event` is (epsilon, `delta`)-DP, never above its pure loss.

    inf where there is no answer: a zCDP event within, no `delta`, or one below what the arithmetic can resolve.
    Batches without replacement have none either: their proved curve is one of Renyi divergences.

    Examples
    --------
    >>> from pymc_dp.accounting.events import PureEvent, SelfComposedEvent
    >>> event = SelfComposedEvent(event=PureEvent(epsilon=0.1), count=100)
    >>> pure.pure_epsilon(event), round(epsilon_at(event, 1e-6), 2)
    (10.0, 4.77)
    """
    composed = compose(event) if delta > 0 else None
    if composed is None or delta <= 10 * composed.margin:
        return math.inf
    if _delta(composed, 0.0) <= delta:
        return 0.0
    low, high = 0.0, pure.pure_epsilon(event)
    if not math.isfinite(high):
        high = 1.0
        while _delta(composed, high) > delta:
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
    elif _delta(composed, high) > delta:
        return high  # the pure loss holds anyway
    from scipy.optimize import brentq

    found = float(brentq(lambda at: math.log(_delta(composed, at) / delta), low, high, xtol=1e-10 * high, rtol=1e-10))
    step = 2e-10
    while _delta(composed, found) > delta:
        found, step = found + step * high, 2 * step
    return min(found, high)
