"""Gaussian differential privacy: for Gaussian noise alone, squares of mu add, and nothing is lost."""

from __future__ import annotations

import math
from fractions import Fraction

import scipy  # its parts are imported when first used

from pymc_dp.kernel.accounting.events import Event, leaves

# Room for the rounding of log_ndtr and of the few operations on it, relative to the terms they are made of.
_ROUNDING = 1e-14


def mu(event: Event) -> float:
    """Return a mu at which `event` is mu-GDP, rounded up; inf where any part is not Gaussian noise.

    Composition: the square root of the sum of squares (Dong, Roth, Su 2022, corollary 2).

    Examples
    --------
    >>> from pymc_dp.accounting import GaussianEvent, SelfComposedEvent
    >>> mu(SelfComposedEvent(event=GaussianEvent(noise_multiplier=2.0), count=4))
    1.0
    """
    total = Fraction(0)
    for leaf, count in leaves(event).items():
        one = leaf.gdp_half_square()
        if one is None:
            return math.inf
        total += count * one
    return mu_of_rho(total)


def mu_of_rho(rho: Fraction) -> float:
    """Return sqrt(2 rho), rounded up."""
    # On whole numbers, since squares of floats overflow or lose their digits long before their roots do.
    places = 64 + (rho.denominator.bit_length() - rho.numerator.bit_length()) // 2
    scale = Fraction(2) ** places
    root = (math.isqrt(math.ceil(2 * rho * scale**2) - 1) + 1) / scale
    try:
        result = float(root)
    except OverflowError:
        return math.inf
    return result if Fraction(result) ** 2 >= 2 * rho else math.nextafter(result, math.inf)


def epsilon_at(event: Event, delta: float) -> float:
    """Return the least epsilon >= 0 at which `event` is (epsilon, `delta`)-DP; inf where it is not all Gaussian."""
    return epsilon_of_mu(mu(event), delta)


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Return the delta at which mu-GDP is (`epsilon`, delta)-DP, rounded up (Dong, Roth, Su 2022, corollary 1).

    Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2), in logarithms.

    Examples
    --------
    >>> round(delta_of_mu(1.0, 1.0), 4)
    0.1269
    """
    if not math.isfinite(mu):
        return 1.0
    first = float(scipy.special.log_ndtr(-epsilon / mu + mu / 2))
    second = epsilon + float(scipy.special.log_ndtr(-epsilon / mu - mu / 2))
    if not math.isfinite(first):  # below any float
        return math.nextafter(0.0, 1.0)
    # The arguments of log_ndtr are rounded too: near x its slope is about |x|, so its error is about x^2 ulps.
    size = _ROUNDING * (1 + abs(first) + epsilon + (epsilon / mu) ** 2 + mu * mu)
    value = math.exp(min(0.0, first + size)) * min(1.0, -math.expm1(min(0.0, second - first)) + 2 * size)
    return min(1.0, max(value, math.nextafter(0.0, 1.0)))  # never 0: there is no pure guarantee


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return an epsilon at which mu-GDP is (epsilon, `delta`)-DP, rounded up; inf at delta = 0.

    Examples
    --------
    >>> round(epsilon_of_mu(0.25, 1e-6), 3)
    1.061
    """
    if delta <= 0 or not math.isfinite(mu):
        return math.inf
    if delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu
    while delta_of_mu(mu, high) > delta:
        low, high = high, 2 * high
        if high > 1e300:
            return math.inf
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if delta_of_mu(mu, middle) <= delta else (middle, high)
    return high
