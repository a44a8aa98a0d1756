"""Noised counts, one at a time: compiled sums over what the exact count may be; imported at first use.

An exact count s has probability ``c(s) exp(s η - A(η))``: Poisson with rate ``exp(η)``, or binomial of n trials with
odds ``exp(η)``. The noise has probability ``ν(x - s)``. Terms of the sum over s are log-concave: they are added from
the largest one outward, each from the one before by a ratio of two numbers, until they are of no account. Where they
would be too many they are a smooth function between its kinks, and are integrated by Gauss-Legendre panels. Poisson
counts under wide noise have closed forms (`wide_noise`).
"""

from __future__ import annotations

from math import ceil, exp, floor, lgamma, log, log1p, tanh

import numpy as np

from pymc_dp.transforms.jit import kernel
from pymc_dp.transforms.sum_noise import legendre
from pymc_dp.transforms.wide_noise import gaussian_poisson, laplace_poisson

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


__all__ = ["GAUSSIAN", "LAPLACE", "log_mass_at_zero", "log_noise", "noised_count"]
