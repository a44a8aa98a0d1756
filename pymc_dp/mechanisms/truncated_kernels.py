"""Compiled rejection from three-piece envelopes of log-concave densities; imported at first use.

In a coordinate t whose origin is the mode of the density within the bounds, every density here has the logarithm

    h(t) = linear t - curved L(t),    h(0) = 0,    curved >= 0,    L convex with L(0) = 0,

with L(t) = log(1 - p + p e^t) (logit of a beta variable), e^t - 1 (logarithm of a gamma variable) or t^2 (normal). So h
is concave, lies below each of its tangents and below 0, its largest value.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

BETA, GAMMA, NORMAL = 0, 1, 2
SMALLEST = 1e-300
SEARCH_STEPS = 1200
"""More than a doubling from the least to the largest float64 can take."""


def _jit(**options: Any) -> Any:
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False, **options)


@_jit()
def _convex(kind, p, t):  # type: ignore[no-untyped-def]
    """L(t), and its derivative at t."""
    if kind == BETA:
        if t < 700.0:
            growth = p * np.expm1(t)
            return np.log1p(growth), (p + growth) / (1.0 + growth)
        return np.logaddexp(0.0, np.log(p) + t), 1.0 / (1.0 + np.exp(-t) / p)
    if kind == GAMMA:
        return np.expm1(t), np.exp(t)
    return t * t, 2.0 * t


@_jit()
def _height(kind, p, linear, curved, t):  # type: ignore[no-untyped-def]
    """h(t), and its derivative at t."""
    if curved == 0.0:
        return linear * t, linear
    value, slope = _convex(kind, p, t)
    return linear * t - curved * value, linear - curved * slope


@_jit()
def _touch(kind, p, linear, curved, end, drop):  # type: ignore[no-untyped-def]
    """Place between 0 and `end` where h has dropped by about `drop`, and h and its derivative there.

    Returns `end` and slope 0 where h has not dropped that far. Any place gives a valid tangent; this one gives a tight
    envelope.
    """
    if end == 0.0:
        return end, 0.0, 0.0
    if np.isfinite(end):
        height, _ = _height(kind, p, linear, curved, end)
        if -height <= 1.1 * drop:
            return end, 0.0, 0.0
    bend = (p * (1.0 - p) if kind == BETA else 1.0 if kind == GAMMA else 2.0) * curved
    _, slope = _height(kind, p, linear, curved, 0.0)
    slope = abs(slope)
    step = 2.0 * drop / (slope + np.sqrt(slope * slope + 2.0 * bend * drop))
    if not 0.0 < step < 1e300:
        step = 1.0
    sign = 1.0 if end > 0.0 else -1.0
    inner, outer = 0.0, abs(end)
    step = min(step, outer)
    for _ in range(SEARCH_STEPS):
        height, slope = _height(kind, p, linear, curved, sign * step)
        if -height < 0.9 * drop:
            inner = step
            step = min(2.0 * step, 0.5 * (step + outer))
        elif not -height <= 1.1 * drop:
            outer = step
            step = 0.5 * (inner + step)
        else:
            break
    return sign * step, height, slope


@_jit()
def _side(kind, p, linear, curved, end):  # type: ignore[no-untyped-def]
    """One side of the envelope: width of the flat piece, rate and area of the exponential one, and its length."""
    place, height, slope = _touch(kind, p, linear, curved, end, 1.0)
    rate = abs(slope)
    if rate == 0.0 or not np.isfinite(height):
        return abs(end) if rate == 0.0 else abs(place), 0.0, 0.0, 0.0
    flat = max(abs(place) + height / rate, 0.0)  # where the tangent reaches the height of the flat piece
    length = abs(end) - flat
    return flat, rate, -np.expm1(-rate * length) / rate, length


@_jit()
def _draw(rng, kind, p, linear, curved, low, high):  # type: ignore[no-untyped-def]
    """Draw t in [low, high], low <= 0 <= high, with density proportional to exp(h(t))."""
    left, left_rate, left_area, left_length = _side(kind, p, linear, curved, low)
    right, right_rate, right_area, right_length = _side(kind, p, linear, curved, high)
    total = left + right + left_area + right_area
    if not total > 0.0:
        return 0.0
    while True:
        place = rng.random() * total
        if place < left_area:
            beyond = -np.log1p(rng.random() * np.expm1(-left_rate * left_length)) / left_rate
            t, envelope = -left - beyond, -left_rate * beyond
        elif place < left_area + right_area:
            beyond = -np.log1p(rng.random() * np.expm1(-right_rate * right_length)) / right_rate
            t, envelope = right + beyond, -right_rate * beyond
        else:
            t, envelope = place - left_area - right_area - left, 0.0
        height, _ = _height(kind, p, linear, curved, t)
        if not height < envelope - rng.standard_exponential():
            return t


@_jit()
def one_beta(rng, a, b, low, high):  # type: ignore[no-untyped-def]
    """Draw from Beta(a, b) on [low, high], through the logit, in which it is log-concave for all a, b > 0."""
    first, last = np.log(low) - np.log1p(-low), np.log(high) - np.log1p(-high)
    origin = min(max(np.log(a) - np.log(b), first), last)
    if origin <= 0.0:
        p = max(np.exp(origin) / (1.0 + np.exp(origin)), SMALLEST)
        logit = origin + _draw(rng, BETA, p, a, a + b, first - origin, last - origin)
    else:  # mirrored, so that p is the smaller of both and keeps its digits
        p = max(np.exp(-origin) / (1.0 + np.exp(-origin)), SMALLEST)
        logit = origin - _draw(rng, BETA, p, b, a + b, origin - last, origin - first)
    x = 1.0 / (1.0 + np.exp(-logit)) if logit > 0.0 else np.exp(logit) / (1.0 + np.exp(logit))
    return min(max(x, low), high)


@_jit()
def one_gamma(rng, shape, rate, low, high):  # type: ignore[no-untyped-def]
    """Draw from the density x^(shape - 1) e^(-rate x) on [low, high], through log x, in which it is log-concave."""
    first, last = np.log(low), np.log(high)
    if rate == 0.0:
        origin = last if shape > 0.0 else first if shape < 0.0 else (first if np.isfinite(first) else last)
    elif shape <= 0.0:
        origin = first
    else:
        origin = min(max(np.log(shape) - np.log(rate), first), last)
    t = _draw(rng, GAMMA, 0.0, shape, rate * np.exp(origin), first - origin, last - origin)
    return min(max(np.exp(origin + t), low), high)


@_jit()
def one_normal(rng, mean, sd, low, high):  # type: ignore[no-untyped-def]
    """Draw from N(mean, sd^2) on [low, high]; an infinite sd is the uniform."""
    precision = min(1.0 / (sd * sd), 1.0 / SMALLEST)
    origin = min(max(mean, low), high)
    t = _draw(rng, NORMAL, 0.0, -precision * (origin - mean), 0.5 * precision, low - origin, high - origin)
    return min(max(origin + t, low), high)


@_jit()
def fill_beta(rng, a, b, low, high, out):  # type: ignore[no-untyped-def]
    """Draw one truncated beta variable per entry."""
    for i in range(out.size):
        out[i] = one_beta(rng, a[i], b[i], low[i], high[i])


@_jit()
def fill_gamma(rng, shape, rate, low, high, out):  # type: ignore[no-untyped-def]
    """Draw one truncated gamma variable per entry."""
    for i in range(out.size):
        out[i] = one_gamma(rng, shape[i], rate[i], low[i], high[i])


@_jit()
def fill_normal(rng, mean, sd, low, high, out):  # type: ignore[no-untyped-def]
    """Draw one truncated normal variable per entry."""
    for i in range(out.size):
        out[i] = one_normal(rng, mean[i], sd[i], low[i], high[i])
