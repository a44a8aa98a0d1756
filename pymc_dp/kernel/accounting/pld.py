"""Privacy loss distributions: the tightest composition, for events whose parameters are fixed in advance.

An event is known here by the pairs of distributions that dominate it (`pairs`); their losses are put on one grid
(`loss_grid`), where they are composed.

Losses of pairs on a grid that all pairs of a composition share, rounded such that what is there dominates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pymc_dp.kernel.accounting import gdp, pure
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.subsampled_gaussian import few_kinds
from pymc_dp.kernel.accounting.pairs import ContinuousPair, Floats, LaplacePair, Normal, Shift

_MOST_POINTS = 2**17  # of a grid that holds every loss exactly
_POINTS = 2**16  # of a grid that does not
_LEAST_POINTS = 2**12  # where losses are continuous
MOST_CELLS = 2**16  # of the grid of one pair
_ROUNDING = 1e-14  # of a mass, relative


def grid(counts: dict[LaplacePair, int]) -> Fraction:
    """Return the spacing of losses: one that holds all losses exactly if it can be had, else a fine one.

    The total loss has mean <= V / 2 and sub-Gaussian variance V = sum of squared losses (Hoeffding), so that all but
    1e-16 of it lies in the window used here. The window steers only the fineness, never soundness: splitting on a
    spacing h adds a variance of at most h^2 / 4 per composition, which is small against V by construction.
    """
    losses = {pair: float(pair.unit) * pair.shift for pair in counts}
    variance = sum(count * losses[pair] ** 2 for pair, count in counts.items())
    largest = sum(count * losses[pair] for pair, count in counts.items())
    window = 2 * min(largest, variance / 2 + math.sqrt(2 * 37 * variance))
    common = common_unit([pair.unit for pair in counts])
    return common if window <= _MOST_POINTS * common else Fraction(window) / _POINTS


def fine(counts: dict[LaplacePair, int], continua: dict[ContinuousPair, int]) -> Fraction:
    """Return a spacing fine enough for all losses together, where some are continuous or too many to list.

    Splitting on a spacing h adds a variance of at most h^2 / 4 per composition: at h = 0.03 sqrt(V / compositions) less
    than 1 / 4000 of V. A fixed spacing would not do: one of 1e-3 over 3e4 steps is worse than Renyi accounting. Losses
    that are multiples of a unit coarser than that are held exactly.
    """
    variance = sum(count * (float(pair.unit) * pair.shift) ** 2 for pair, count in counts.items())
    variance += sum(count * pair.variance for pair, count in continua.items())
    window = variance + 2 * math.sqrt(2 * 37 * variance)
    needed = 0.03 * math.sqrt(variance / (sum(counts.values()) + sum(continua.values())))
    span = max(pair.greatest - pair.least for pair in continua)
    spacing = Fraction(max(min(needed, window / _LEAST_POINTS), window / _POINTS, span / MOST_CELLS))
    unit = common_unit([unit for unit in (*(pair.unit for pair in counts), *(pair.unit for pair in continua)) if unit])
    return unit / math.ceil(unit / spacing) if unit > spacing else spacing


def common_unit(units: Sequence[Fraction]) -> Fraction:
    """Return the greatest number of which all `units` are multiples; 0 for none."""
    common = Fraction(0)
    for unit in units:
        common = Fraction(
            math.gcd(common.numerator * unit.denominator, unit.numerator * common.denominator),
            common.denominator * unit.denominator,
        )
    return common


def distribution(pair: ContinuousPair, spacing: float) -> Any:
    """Return dp_accounting's distribution of the losses of `pair`, on multiples of `spacing`, pessimistic."""
    # Imported here: slow, and needed only where delta > 0.
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    first, last = math.floor(pair.least / spacing), math.ceil(pair.greatest / spacing)
    cuts = np.arange(first, last + 1) * np.float64(spacing)
    p, q = pair.masses(cuts)
    forward = DensePLDPmf(spacing, first, *cells_on_grid(p, q, cuts, spacing), True)
    if pair.symmetric:
        return PrivacyLossDistribution(forward)
    backward = DensePLDPmf(spacing, -last, *cells_on_grid(q[::-1], p[::-1], -cuts[::-1], spacing), True)
    return PrivacyLossDistribution(forward, backward)


def cells_on_grid(p: Floats, q: Floats, cuts: Floats, spacing: float) -> tuple[Floats, float]:
    """Return masses at the `cuts` that dominate, and the mass of infinite loss.

    Between cuts a and a + h, masses p and q are split over the two ends such that both are kept (Doroshenko et al.
    2022, "Connect the dots"): up + down = p and up e^(-a-h) + down e^-a = q. What lies below the first cut moves up to
    it, what lies above the last becomes infinite.
    """
    inner = p[1:-1]
    other = np.exp(cuts[:-1]) * q[1:-1]
    up = (inner - other + _ROUNDING * (inner + other)) / -math.expm1(-spacing)
    up = np.clip(up, 0.0, inner)
    masses = np.zeros(len(cuts))
    masses[:-1] += inner - up
    masses[1:] += up
    masses[0] += p[0]
    return masses, float(p[-1])


def laplace_distribution(pair: LaplacePair, interval: Fraction, spacing: float) -> Any:
    """Return dp_accounting's distribution of the losses of `pair`, on multiples of `interval`, pessimistic."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    return PrivacyLossDistribution.create_from_rounded_probability(laplace_on_grid(pair, interval), 0.0, spacing)


def laplace_on_grid(pair: LaplacePair, interval: Fraction) -> dict[int, float]:
    """Return masses on multiples of `interval` that dominate the losses of `pair`.

    An atom of loss x between neighbouring points a < b, with masses p and q = p e^-x under the two distributions, is
    split over a and b such that both masses are kept. The pair so made dominates, since merging the two halves gives
    the old one back; no other pair on the grid is closer (Doroshenko et al. 2022, "Connect the dots").
    """
    losses, masses = pair.atoms()
    ratio = pair.unit / interval
    if ratio.denominator == 1:  # exactly on the grid
        below, share = losses * ratio.numerator, np.zeros(len(losses))
    else:
        place = losses * float(ratio) + 1e-9  # up by far more than the rounding of the product
        floor = np.floor(place)
        step = float(interval)
        below, share = floor.astype(np.int64), np.expm1(-(place - floor) * step) / math.expm1(-step)
    indices, place_of = np.unique(np.concatenate([below, below + 1]), return_inverse=True)
    split = np.bincount(place_of, weights=np.concatenate([masses * (1 - share), masses * share]))
    return {int(index): float(mass) for index, mass in zip(indices, split, strict=True) if mass > 0}


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
    interval = fine(counts, continua) if continua else grid(counts)
    # Rounded up, a positive total loss can only come out too large; negative ones never enter a divergence.
    spacing = math.nextafter(float_up(interval), math.inf)
    one: Any
    result = None
    for pair, count in counts.items():
        one = laplace_distribution(pair, interval, spacing)
        many = one.self_compose(count)
        result = many if result is None else result.compose(many)
    for other, count in continua.items():
        one = distribution(other, spacing)
        many = one.self_compose(count) if count > 1 else one
        result = many if result is None else result.compose(many)
    return Composed(result, _FOURIER_ERROR * (10 + total))


def delta_of(composed: Composed, epsilon: float) -> float:
    """Return a delta in [0, 1] at which what was composed is (`epsilon`, delta)-DP."""
    raw = float(composed.distribution.get_delta_for_epsilon(epsilon))
    # Below the margin there is noise of either sign, which must not make delta rise with epsilon.
    return min(1.0, max(composed.margin, raw * (1 + 1e-9)) + composed.margin)


def deltas_at(event: Event, epsilons: Sequence[float]) -> list[float]:
    """Return a delta at each of many rising epsilons, at little more than the cost of one; 1 where none is known."""
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
    >>> from pymc_dp.accounting import PureEvent, SelfComposedEvent
    >>> event = SelfComposedEvent(event=PureEvent(epsilon=0.1), count=100)
    >>> pure.pure_epsilon(event), round(epsilon_at(event, 1e-6), 2)
    (10.0, 4.77)
    """
    composed = compose(event) if delta > 0 else None
    if composed is None or delta <= 10 * composed.margin:
        return math.inf
    if delta_of(composed, 0.0) <= delta:
        return 0.0
    low, high = 0.0, pure.pure_epsilon(event)
    if not math.isfinite(high):
        high = 1.0
        while delta_of(composed, high) > delta:
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
    elif delta_of(composed, high) > delta:
        return high  # the pure loss holds anyway
    from scipy.optimize import brentq

    found = float(brentq(lambda at: math.log(delta_of(composed, at) / delta), low, high, xtol=1e-10 * high, rtol=1e-10))
    step = 2e-10
    while delta_of(composed, found) > delta:
        found, step = found + step * high, 2 * step
    return min(found, high)


__all__ = ["common_unit", "distribution", "fine", "grid", "laplace_distribution"]
