"""Losses of pairs on a grid that all pairs of a composition share, rounded such that what is there dominates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dp.accounting.pairs import ContinuousPair, Floats, LaplacePair

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


__all__ = ["common_unit", "distribution", "fine", "grid", "laplace_distribution"]
