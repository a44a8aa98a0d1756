"""Privacy loss distributions: the tightest composition, for events whose parameters are fixed in advance.

What is known here is a product of pairs of distributions. Discrete ones are discrete Laplace noise and the same noise
shifted; a pure loss e is dominated by randomised response, which is the pair of shift 1 and unit loss e (see `atoms`).
Others (Gaussian noise, continuous and discrete, batches, bounded ranges) are in `continuous`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_dp.accounting import continuous, pure
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting.continuous import ContinuousPair
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
    refuse,
)
from pymc_dp.accounting.subsampled import few_kinds

# Limits of the computation; beyond them there is no answer here, and the other accountants stand.
_MOST_COMPOSITIONS = 10**6
_GREATEST_LOSS = 100.0  # of one coordinate of one event; there exp() is still far from overflow
_LEAST_LOSS = 1e-200  # the greatest of a continuous pair; below, spacings of the grid have no digits left
_MOST_ATOMS = 2**14  # of one pair; larger shifts are coarsened
_MOST_POINTS = 2**17  # of a grid that holds every loss exactly
_POINTS = 2**16  # of a grid that does not
_LEAST_POINTS = 2**12  # where losses are continuous
_MOST_KINDS = 64  # of continuous pairs that differ
# The composed distribution comes out of fast Fourier transforms, with errors of either sign that do not shrink in the
# tail as the masses do. Measured on tail sums against convolution by positive sums, per composition: below 1e-16 in
# the tail and 1e-15 of the sum itself.
_FOURIER_ERROR = 1e-14


class Pair(NamedTuple):
    """Discrete Laplace noise of scale 1 / `unit`, against itself moved by `shift`."""

    unit: Fraction
    shift: int


@singledispatch
def pairs(event: object) -> tuple[Pair, ...] | None:
    """Return pairs whose product dominates an elementary event in both directions, or None where there is none.

    Each pair is its own mirror image (reflect k to shift - k, which swaps the two distributions), so the order of two
    neighbours and the sign of each movement do not matter and one direction is the whole of it.
    """
    refuse(event, "The PLD accountant")


@pairs.register
def _(event: PureEvent) -> tuple[Pair, ...]:
    return (Pair(decimal(event.epsilon), 1),)


@pairs.register
def _(event: DiscreteLaplaceEvent) -> tuple[Pair, ...]:
    # A coordinate that moves by less than its shift is dominated: the noise is log-concave, so the best test is
    # k <= t, and P(k <= t) - e^epsilon P(k + shift <= t) grows with the shift. Products of dominated pairs are
    # dominated (Zhu, Dong, Wang 2022, theorem 10). Without shifts only the pure loss of the vector is known.
    if event.shifts is None:
        return (Pair(event.sensitivity * event.unit, 1),)
    return tuple(Pair(event.unit, shift) for shift in event.shifts)


@pairs.register(ZCDPEvent)
@pairs.register(DiscreteGaussianEvent)
@pairs.register(BoundedRangeEvent)
@pairs.register(GaussianEvent)
@pairs.register(GDPEvent)
@pairs.register(SubsampledGaussianEvent)
@pairs.register(PenaltyBitEvent)
@pairs.register(ApproximateEvent)
def _(event: Event) -> None:
    return (
        None  # a bound on Renyi divergences belongs to no single dominating pair, the others have those of `continuous`
    )


def coarse(pair: Pair) -> Pair:
    """Return a pair of at most 2^14 steps that dominates `pair`, its loss larger by less than 1 / 2^14 of it.

    Discrete Laplace noise divides: with r = exp(-1 / scale), noise of `scale` is m times noise of scale / m plus U - V,
    where U and V are independent on 0..m-1 with P(j) proportional to r^j. (Generating functions:
    (1-r)/(1-rz) = (1-r^m)/(1-(rz)^m) * (1-r)/(1-r^m) * sum_j (rz)^j, times the same with 1/z.)
    So a movement by m s under `scale` is post-processing of a movement by s under scale / m.
    """
    step = -(-pair.shift // _MOST_ATOMS)
    return Pair(pair.unit * step, -(-pair.shift // step))


def atoms(pair: Pair) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the losses of `pair`, in units, and their probabilities under the noise that is not moved.

    At k the loss is (|k - shift| - |k|) * unit: `shift` units for k <= 0, shift - 2k between, -shift for k >= shift.
    With r = exp(-unit) and P(k) = (1-r) / (1+r) r^|k|, the masses are 1 / (1+r), P(k) and r^shift / (1+r).
    At shift 1 these are +-unit with odds e^unit: randomised response.
    """
    unit = float(pair.unit)
    inner = np.arange(1, pair.shift)
    norm = 1 + math.exp(-unit)
    masses = np.concatenate([[1.0], -math.expm1(-unit) * np.exp(-unit * inner), [math.exp(-unit * pair.shift)]]) / norm
    return np.concatenate([[pair.shift], pair.shift - 2 * inner, [-pair.shift]]).astype(np.int64), masses


def on_grid(pair: Pair, interval: Fraction) -> dict[int, float]:
    """Return masses on multiples of `interval` that dominate the losses of `pair`.

    An atom of loss x between neighbouring points a < b, with masses p and q = p e^-x under the two distributions, is
    split over a and b such that both masses are kept. The pair so made dominates, since merging the two halves gives
    the old one back; no other pair on the grid is closer (Doroshenko et al. 2022, "Connect the dots").
    """
    losses, masses = atoms(pair)
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


def grid(counts: dict[Pair, int]) -> Fraction:
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


def common_unit(units: Sequence[Fraction]) -> Fraction:
    """Return the greatest number of which all `units` are multiples; 0 for none."""
    common = Fraction(0)
    for unit in units:
        common = Fraction(
            math.gcd(common.numerator * unit.denominator, unit.numerator * common.denominator),
            common.denominator * unit.denominator,
        )
    return common


def fine(counts: dict[Pair, int], continua: dict[ContinuousPair, int]) -> Fraction:
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
    spacing = Fraction(max(min(needed, window / _LEAST_POINTS), window / _POINTS, span / continuous.MOST_POINTS))
    unit = common_unit([unit for unit in (*(pair.unit for pair in counts), *(pair.unit for pair in continua)) if unit])
    return unit / math.ceil(unit / spacing) if unit > spacing else spacing


class Composed(NamedTuple):
    """A composed privacy loss distribution, and what its numbers may be wrong by."""

    distribution: Any
    margin: float


@lru_cache(maxsize=16)
def compose(event: Event) -> Composed | None:
    """Return the composed distribution of `event`, pessimistic, or None where it cannot be had."""
    counts: dict[Pair, int] = {}
    others: dict[Event, int] = {}
    for leaf, count in few_kinds(leaves(event)).items():
        known = pairs(leaf)
        if known is None:
            others[leaf] = count
        for pair in known or ():
            pair = coarse(pair)
            counts[pair] = counts.get(pair, 0) + count
    continua = continuous.pairs_of(others)
    if continua is None:
        return None
    total = sum(counts.values()) + sum(continua.values())
    if (
        total > _MOST_COMPOSITIONS
        or len(continua) > _MOST_KINDS
        or any(pair.unit * pair.shift > _GREATEST_LOSS for pair in counts)
        or not all(_LEAST_LOSS <= pair.greatest <= _GREATEST_LOSS for pair in continua)
    ):
        return None
    # Imported here: slow, and needed only where delta > 0.
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    interval = fine(counts, continua) if continua else grid(counts)
    # Rounded up, a positive total loss can only come out too large; negative ones never enter a divergence.
    spacing = math.nextafter(float_up(interval), math.inf)
    one: Any
    result = None
    for pair, count in counts.items():
        one = PrivacyLossDistribution.create_from_rounded_probability(on_grid(pair, interval), 0.0, spacing)
        many = one.self_compose(count)
        result = many if result is None else result.compose(many)
    for other, count in continua.items():
        one = continuous.distribution(other, spacing)
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
    >>> from pymc_dp.accounting.events import SelfComposedEvent
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
