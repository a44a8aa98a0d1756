"""Poisson counts under noise of several counts, in closed form: compiled, a fifth of a microsecond each.

Laplace noise splits the sum at the noised count x. On either side it is a part of a Poisson distribution of another
rate, so that an incomplete gamma function and its hazard give the log probability and every cumulant. Gaussian noise is
smooth: with K the cumulant function of the noised count, K(t) = log E e^{tS} + scale² t² / 2, and t the root of K'(t) =
x, the density is ``exp(K(t) - t x) / sqrt(2 π K''(t))`` times 1 + K⁗/8K''² - 5K‴²/24K''³ (Daniels 1954, Ann. Math.
Stat. 25(4), equation 2.6), whose error falls with the fourth power of the noise.
"""

from __future__ import annotations

from math import erfc, exp, expm1, floor, inf, lgamma, log, log1p, pi, sqrt

from pymc_dp.transforms.jit import kernel, part

SHORT = 64
"""Terms of a sum from which the uniform expansion is taken instead."""
FAR = 25.0
"""Logarithm of what is left out of a sum."""
DEEP = 15.0
"""Argument of the error function in the expansion from which sums are taken: it would vanish in floats."""


@kernel
def laplace_poisson(x: float, eta: float, scale: float) -> tuple[float, float, float, float]:
    """Return what `noised_count` returns but for the log probability of no noise; scale of 2 or more."""
    rate, k = exp(eta), floor(x)
    tilt, low_side = exp(1 / scale), k >= 0  # no constants: numba would compile functions for each of them
    high = _part(k, rate / tilt, not low_side)
    log_high = high[0] + x / scale + rate * expm1(-1 / scale)
    if k < 0:
        return log_high, high[1], high[2], high[3]
    low = _part(k, rate * tilt, low_side)
    log_low = low[0] - x / scale + rate * expm1(1 / scale)
    top = max(log_high, log_low)
    total = top + log(exp(log_high - top) + exp(log_low - top))
    share, other = exp(log_low - total), exp(log_high - total)
    apart = low[1] - high[1]
    both = share * other * apart
    third = 3 * (low[2] - high[2]) + (other - share) * apart**2
    return (
        total,
        share * low[1] + other * high[1],
        share * low[2] + other * high[2] + both * apart,
        share * low[3] + other * high[3] + both * third,
    )


@kernel
def laplace_poisson_logp(x: float, eta: float, scale: float) -> float:
    """Return the log probability alone: compiled in half the time."""
    rate, k = exp(eta), floor(x)
    tilt, low_side = exp(1 / scale), k >= 0
    log_high = x / scale + rate * expm1(-1 / scale)
    if k < 0:
        return log_high
    log_high += _log_part(k, rate / tilt, not low_side)[0]
    log_low = _log_part(k, rate * tilt, low_side)[0] - x / scale + rate * expm1(1 / scale)
    top = max(log_high, log_low)
    return top + log(exp(log_high - top) + exp(log_low - top))


@part
def _part(k: float, rate: float, lower: bool) -> tuple[float, float, float, float]:
    """Log probability and three cumulants of a Poisson count within 0..k, or above k.

    Cumulants are slopes of the logarithm of a part in the logarithm of the rate, and follow from the hazard at k; those
    of a summed part follow from its sums.
    """
    if k < 0:
        return 0.0, rate, rate, rate
    log_part, hazard, summed = _log_part(k, rate, lower)
    if summed:
        sums = _edge_sums(k, rate, lower)
        start, sign = (k, -1.0) if lower else (k + 1, 1.0)
        shift, square, cube = sums[1] / sums[0], sums[2] / sums[0], sums[3] / sums[0]
        third = sign * (cube - 3 * shift * square + 2 * shift**3)
        return log_part, start + sign * shift, max(square - shift**2, 0.0), third
    lost = rate * hazard if lower else -rate * hazard
    mean = rate - lost
    change = 1 + k - mean
    variance = max(rate - lost * change, 0.0)
    return log_part, mean, variance, rate - lost * (change**2 - variance)


@part
def _log_part(k: float, rate: float, lower: bool) -> tuple[float, float, bool]:
    """Log probability of a Poisson count within 0..k, or above k; the mass at k over it; and whether it was summed.

    The part that is the smaller one is summed from k outward, where few terms are needed. Otherwise its probability is
    one less that of the other part, or that of Temme's uniform expansion (1979, SIAM J. Math. Anal. 10(4)).
    """
    below = k < rate
    ratio = k / rate if below else rate / (k + 1)
    away = abs(log(ratio)) * sqrt((k + 1) / 2) if ratio > 0 else inf
    if away < DEEP and min(FAR / -log(ratio), 8 * sqrt(k + 1)) > SHORT:
        log_part, hazard = _expanded(k, rate, lower)
        return log_part, hazard, False
    log_mass = k * log(rate) - rate - lgamma(k + 1)
    log_part = (log_mass if below else log_mass + log(rate / (k + 1))) + log(_edge_sums(k, rate, below)[0])
    if below != lower:
        log_part = log1p(-min(exp(log_part), 1 - 1e-16))
    return log_part, exp(log_mass - log_part), below == lower


@part
def _edge_sums(k: float, rate: float, below: bool) -> tuple[float, float, float, float]:
    """Sums over the smaller part of masses over the first one, times powers 0 to 3 of the distance from it."""
    term, distance, s = 1.0, 0.0, k if below else k + 1
    zeroth, first, second, third = 1.0, 0.0, 0.0, 0.0
    while term > 1e-12:
        term *= s / rate if below else rate / (s + 1)
        s += -1.0 if below else 1.0
        distance += 1
        once = term * distance
        twice = once * distance
        zeroth += term
        first += once
        second += twice
        third += twice * distance
    return zeroth, first, second, third


@part
def _expanded(k: float, rate: float, lower: bool) -> tuple[float, float]:
    """Log probability of a part, and the mass at k over it, by Temme's expansion to the second term."""
    a = k + 1
    away = rate / a - 1
    level = away - log1p(away)
    slope = sqrt(2 * level) if away > 0 else -sqrt(2 * level)
    if abs(away) < 0.02:
        level = away**2 * (0.5 - away * (1 / 3 - away * (0.25 - away * (0.2 - away * (1 / 6 - away / 7)))))
        slope = sqrt(2 * level) if away > 0 else -sqrt(2 * level)
    if abs(slope) < 0.1:
        first = -1 / 3 + slope * (1 / 12 - slope * (2 / 135 - slope * (1 / 864 + slope / 2835)))
        second = -1 / 540 - slope * (1 / 288 - slope * (1 / 378 - slope * 0.00099022633744856))
    else:
        first = 1 / away - 1 / slope
        second = 1 / slope**3 - 1 / away**3 - 1 / away**2 - 1 / (12 * away)
    scaled = exp(-a * level)
    rest = scaled / sqrt(2 * pi * a) * (first + second / a)
    part = 0.5 * erfc(slope * sqrt(a / 2)) + rest if lower else 0.5 * erfc(-slope * sqrt(a / 2)) - rest
    mass = scaled * sqrt(a / (2 * pi)) / (rate * (1 + 1 / (12 * a) + 1 / (288 * a**2)))
    return log(part), mass / part


@kernel
def gaussian_poisson(x: float, eta: float, scale: float) -> tuple[float, float, float, float]:
    """Return what `noised_count` returns but for the log probability of no noise, by the saddle point.

    With m = rate e^t the root is that of ``m + scale² log(m / rate) = x``. By Tweedie's formula (Robbins 1956) the
    exact count has mean ``x + scale² (log f)'``; its variance and third cumulant are those at the saddle point.
    """
    square = scale**2
    goal = x / square + eta - log(square)
    v = goal if goal < 1 else log(goal)
    for _ in range(8):
        tilted = exp(v)
        v -= (tilted + v - goal) / (tilted + 1)
    m, t = exp(v) * square, v + log(square) - eta
    spread = m + square
    correction = m / (8 * spread**2) - 5 * m**2 / (24 * spread**3)
    logp = m - exp(eta) - t * m - 0.5 * square * t**2 + correction + 0.5 * log(square / spread)
    variance = square * m / spread
    return logp, m - 0.5 * square * m / spread**2, variance, square**2 * variance / spread**2


__all__ = ["gaussian_poisson", "laplace_poisson", "laplace_poisson_logp"]
