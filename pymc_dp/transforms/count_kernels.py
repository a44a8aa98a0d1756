"""Noised counts, one at a time: compiled sums over what the exact count may be; imported at first use.

An exact count s has probability ``c(s) exp(s η - A(η))``: Poisson with rate ``exp(η)``, or binomial of n trials with
odds ``exp(η)``. The noise has probability ``ν(x - s)``. Terms of the sum over s are log-concave: they are added from
the largest one outward, each from the one before by a ratio of two numbers, until they are of no account. Where they
would be too many they are a smooth function between its kinks, and are integrated by Gauss-Legendre panels. Poisson
counts under wide noise have closed forms (`wide_noise`).

Poisson counts under noise of several counts, in closed form: compiled, a fifth of a microsecond each.

Laplace noise splits the sum at the noised count x. On either side it is a part of a Poisson distribution of another
rate, so that an incomplete gamma function and its hazard give the log probability and every cumulant. Gaussian noise is
smooth: with K the cumulant function of the noised count, K(t) = log E e^{tS} + scale² t² / 2, and t the root of K'(t) =
x, the density is ``exp(K(t) - t x) / sqrt(2 π K''(t))`` times 1 + K⁗/8K''² - 5K‴²/24K''³ (Daniels 1954, Ann. Math.
Stat. 25(4), equation 2.6), whose error falls with the fourth power of the noise.
"""

from __future__ import annotations

from math import ceil, erfc, exp, expm1, floor, inf, lgamma, log, log1p, pi, sqrt, tanh

import numpy as np

from pymc_dp.transforms.jit import kernel, part
from pymc_dp.transforms.released_logp import legendre

SHORT = 64
"""Terms of a sum from which the uniform expansion is taken instead."""
FAR_APART = 25.0
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
    if away < DEEP and min(FAR_APART / -log(ratio), 8 * sqrt(k + 1)) > SHORT:
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


LAPLACE, GAUSSIAN = 0.0, 1.0
"""Numbers of the kinds of noise."""
NEGLIGIBLE = 1e-12
"""Of the largest term: smaller ones, further out, are left out."""
MOST_TERMS = 2_000
"""Of a sum, to each side; more are integrated."""
FAR = 28.0
"""Logarithm of the part that is left out of an integral."""
WIDE = (2.0, 12.0)
"""Least scale of each kind of noise at which Poisson counts take a closed form."""
NODES, PANELS = 12, 5
_X, _W = legendre(NODES)


def log_mass_at_zero(noise: float, scale: float) -> float:
    """Log probability of no noise, on whole numbers."""
    if noise == LAPLACE:
        return log(tanh(1 / (2 * scale)))
    reach = np.arange(-ceil(40 * scale) - 1, ceil(40 * scale) + 2)
    return -log(np.exp(-0.5 * (reach / scale) ** 2).sum())


@kernel
def _log_count(s: float, eta: float, n: float) -> float:
    """``log c(s) + s η - A(η)``; n < 0 stands for a Poisson count."""
    if n < 0:
        return s * eta - exp(eta) - lgamma(s + 1)
    softplus = eta + log1p(exp(-eta)) if eta > 0 else log1p(exp(eta))
    return lgamma(n + 1) - lgamma(s + 1) - lgamma(n - s + 1) + s * eta - n * softplus


@kernel
def log_noise(distance: float, noise: float, scale: float) -> float:
    """Log probability of noise less that of none."""
    z = distance / scale
    return -abs(z) if noise == LAPLACE else -0.5 * z * z


@kernel
def _log_ratio(s: float, x: float, eta: float, n: float, noise: float, scale: float) -> float:
    """Logarithm of the term of s + 1 over that of s, where both may be."""
    found = eta + log((n - s if n >= 0 else 1.0) / (s + 1))
    return found + log_noise(x - s - 1, noise, scale) - log_noise(x - s, noise, scale)


@kernel
def _largest(x: float, eta: float, n: float, noise: float, scale: float) -> float:
    """Whole number with the largest term: where the ratio of neighbours falls below 1, by bisection."""
    low, high = -1.0, n  # the ratio is at least 1 at low and below 1 at high
    if n < 0:
        high = max(x, 0.0) + 2 * exp(min(eta, 600.0)) + 2
    while high - low > 1:
        middle = floor(low + (high - low) / 2)
        if _log_ratio(middle, x, eta, n, noise, scale) >= 0:
            low = middle
        else:
            high = middle
    return high


@kernel
def _reach(peak: float, sign: float, x: float, eta: float, n: float, noise: float, scale: float) -> float:
    """Distance from the peak at which a term is e^-FAR of it, on one side, by doubling and bisection."""
    most = peak if sign < 0 else (n - peak if n >= 0 else np.inf)
    top = _log_count(peak, eta, n) + log_noise(x - peak, noise, scale) - FAR
    high = 1.0
    while (
        high < most and _log_count(peak + sign * high, eta, n) + log_noise(x - peak - sign * high, noise, scale) > top
    ):
        high *= 2
    low, high = high / 2, min(high, most)
    for _ in range(6):
        middle = low + (high - low) / 2
        inside = _log_count(peak + sign * middle, eta, n) + log_noise(x - peak - sign * middle, noise, scale) > top
        low, high = (middle, high) if inside else (low, middle)
    return high


@kernel
def _summed(peak: float, x: float, eta: float, n: float, noise: float, scale: float) -> tuple[float, ...]:
    """Sums of terms over the largest one, times powers 0 to 3 of the distance from it; 0 where they are too many."""
    zeroth, first, second, third = 1.0, 0.0, 0.0, 0.0
    faster = exp(-1 / scale**2) if noise == GAUSSIAN else 1.0
    for sign in (1.0, -1.0):
        term, s, distance = 1.0, peak, 0.0
        ratio = _next(s, sign, x, eta, n, noise, scale)
        while term * ratio > NEGLIGIBLE:
            term *= ratio
            s += sign
            distance += sign
            once = term * distance
            twice = once * distance
            zeroth += term
            first += once
            second += twice
            third += twice * distance
            if abs(distance) > MOST_TERMS:
                return 0.0, 0.0, 0.0, 0.0
            if noise == LAPLACE and abs(s - x) <= 1:
                ratio = _next(s, sign, x, eta, n, noise, scale)  # beyond the kink
            else:
                ratio *= faster * s / (s + 1) * ((n - s) / (n - s + 1) if n >= 0 else 1.0)
    return zeroth, first, second, third


@kernel
def _next(s: float, sign: float, x: float, eta: float, n: float, noise: float, scale: float) -> float:
    """Term of the neighbour of s, away from the peak, over that of s."""
    if sign > 0:
        return 0.0 if s == n else exp(_log_ratio(s, x, eta, n, noise, scale))
    return exp(-_log_ratio(s - 1, x, eta, n, noise, scale)) if s > 0 else 0.0


@kernel
def _integrated(
    peak: float, below: float, above: float, x: float, eta: float, n: float, noise: float, scale: float
) -> tuple[float, ...]:
    """Return the same as `_summed` by panels between the ends, the peak and the kink of the noise.

    At a whole kink a sum exceeds the integral by a twelfth of the jump of the slope (Euler, Maclaurin).
    """
    kink = min(max(x, peak - below), peak + above) if noise == LAPLACE else peak
    start, stop = min(kink, peak), max(kink, peak)
    top = _log_count(peak, eta, n) + log_noise(x - peak, noise, scale)
    zeroth, first, second, third = 0.0, 0.0, 0.0, 0.0
    edges = (peak - below, start, stop, peak + above)
    for piece in range(3):
        width = (edges[piece + 1] - edges[piece]) / PANELS
        for panel in range(PANELS if width > 0 else 0):
            for node in range(NODES):
                s = edges[piece] + (panel + _X[node]) * width
                term = width * _W[node] * exp(_log_count(s, eta, n) + log_noise(x - s, noise, scale) - top)
                distance = s - peak
                zeroth += term
                first += term * distance
                second += term * distance**2
                third += term * distance**3
    if noise == LAPLACE and kink == x:
        term = exp(_log_count(x, eta, n) - top) / (6 * scale)
        distance = x - peak
        zeroth += term
        first += term * distance
        second += term * distance**2
        third += term * distance**3
    return zeroth, first, second, third


@kernel
def noised_count(
    x: float, eta: float, n: float, noise: float, scale: float, log_zero: float
) -> tuple[float, float, float, float]:
    """Return the log probability of a noised count, and three cumulants of the exact count given it.

    Parameters
    ----------
    x : float
        Noised count.
    eta : float
        Logarithm of the rate, or of the odds, within [-700, 700].
    n : float
        Trials; negative for a Poisson count.
    noise : float
        LAPLACE or GAUSSIAN.
    scale : float
        Of the noise, at least 1/64.
    log_zero : float
        `log_mass_at_zero` of it.
    """
    if n < 0 and scale >= WIDE[int(noise)]:
        closed = laplace_poisson(x, eta, scale) if noise == LAPLACE else gaussian_poisson(x, eta, scale)
        return log_zero + closed[0], closed[1], closed[2], closed[3]
    if n == 0:
        return log_zero + log_noise(x, noise, scale), 0.0, 0.0, 0.0
    peak = _largest(x, eta, n, noise, scale)
    top = _log_count(peak, eta, n) + log_noise(x - peak, noise, scale)
    zeroth, first, second, third = _summed(peak, x, eta, n, noise, scale)
    if zeroth == 0:
        below = _reach(peak, -1.0, x, eta, n, noise, scale)
        above = _reach(peak, 1.0, x, eta, n, noise, scale)
        zeroth, first, second, third = _integrated(peak, below, above, x, eta, n, noise, scale)
    shift, square, cube = first / zeroth, second / zeroth, third / zeroth
    variance = max(square - shift**2, 0.0)
    return log_zero + top + log(zeroth), peak + shift, variance, cube - 3 * shift * square + 2 * shift**3


__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "gaussian_poisson",
    "laplace_poisson",
    "laplace_poisson_logp",
    "log_mass_at_zero",
    "log_noise",
    "noised_count",
]
