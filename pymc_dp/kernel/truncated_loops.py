"""Compiled draws from restricted distributions; imported at first use.

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
    origin = min(max(mean, low), high)
    if np.isinf(sd):
        t = _draw(rng, NORMAL, 0.0, 0.0, 0.0, low - origin, high - origin)
    else:  # in units of sd, so that no precision over- or underflows
        t = sd * _draw(rng, NORMAL, 0.0, (mean - origin) / sd, 0.5, (low - origin) / sd, (high - origin) / sd)
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


@_jit()
def _peak(shape, rate, low, high):  # type: ignore[no-untyped-def]
    """Where x^(shape - 1) e^(-rate x) is largest on [low, high]."""
    if shape < 1.0:
        return low
    return high if rate == 0.0 else min(max((shape - 1.0) / rate, low), high)


@_jit()
def _log_density(shape, rate, x):  # type: ignore[no-untyped-def]
    """Logarithm of x^(shape - 1) e^(-rate x)."""
    return (0.0 if shape == 1.0 else (shape - 1.0) * np.log(x)) - rate * x


@_jit()
def _gamma_moments(shape, rate, low, high, nodes, weights):  # type: ignore[no-untyped-def]
    """Mean and variance of a truncated gamma variable and its effective width, mass over greatest density.

    By quadrature: good to a few digits, which is enough, for they only tune a sampler that is exact whatever they are.
    """
    first, last = np.log(low), np.log(high)
    origin = last if rate == 0.0 else min(max(np.log(shape) - np.log(rate), first), last)
    curved = rate * np.exp(origin)
    left, _, _ = _touch(GAMMA, 0.0, shape, curved, first - origin, 12.0)
    right, _, _ = _touch(GAMMA, 0.0, shape, curved, last - origin, 12.0)
    mass = mean = square = 0.0
    unit = np.exp(origin)
    for end in (left, right):
        for i in range(nodes.size):
            t = end * nodes[i]
            height, _ = _height(GAMMA, 0.0, shape, curved, t)
            weight = abs(end) * weights[i] * np.exp(height)
            shift = np.expm1(t)
            mass += weight
            mean += weight * shift
            square += weight * shift * shift
    if not mass > 0.0:
        return unit, 0.0, 0.0
    mean, square = mean / mass, square / mass
    peak = _peak(shape, rate, low, high)
    width = 0.0
    if peak > 0.0 or shape == 1.0:
        width = mass * unit * np.exp(_log_density(shape, rate, unit) - _log_density(shape, rate, peak))
    return unit * (1.0 + mean), unit * unit * max(square - mean * mean, 0.0), width


@_jit()
def _tune(alpha, lower, upper, nodes, weights):  # type: ignore[no-untyped-def]
    """Rate at which independent truncated gammas add up to about 1, and the component to close the sum with."""
    inner, outer, rate = 0.0, np.inf, max(alpha.sum(), 1e-10)
    widths = np.zeros(alpha.size)
    for _ in range(200):
        total = spread = 0.0
        for i in range(alpha.size):
            mean, variance, widths[i] = _gamma_moments(alpha[i], rate, lower[i], upper[i], nodes, weights)
            total += mean
            spread += variance
        if abs(total - 1.0) <= 0.05 * np.sqrt(spread):
            break
        if total > 1.0:
            inner = rate
            rate = 2.0 * rate if np.isinf(outer) else 0.5 * (inner + outer)
        else:
            outer = rate
            rate = 0.5 * (inner + outer)
        if inner == 0.0 and rate < 1e-12:
            break
    last, widest = 0, -1.0
    for i in range(alpha.size):
        if widths[i] > widest and (alpha[i] >= 1.0 or lower[i] > 0.0):  # only these have a bounded density
            last, widest = i, widths[i]
    return rate, last


@_jit()
def _simplex(rng, alpha, lower, out):  # type: ignore[no-untyped-def]
    """Draw from an untruncated Dirichlet in logarithms, where nothing underflows; whether it is above the bounds."""
    top = -np.inf
    for i in range(alpha.size):
        out[i] = np.log(rng.standard_gamma(alpha[i] + 1.0)) - rng.standard_exponential() / alpha[i]
        top = max(top, out[i])
    total = 0.0
    for i in range(alpha.size):
        out[i] = np.exp(out[i] - top)
        total += out[i]
    inside = True
    for i in range(alpha.size):
        out[i] /= total
        inside = inside and out[i] >= lower[i]
    return inside


@_jit()
def _closed(rng, alpha, lower, upper, rate, last, out):  # type: ignore[no-untyped-def]
    """Propose truncated gammas for all components but `last`, which closes the sum; whether they are accepted."""
    rest = 1.0
    for i in range(alpha.size):
        if i != last:
            out[i] = one_gamma(rng, alpha[i], rate, lower[i], upper[i])
            rest -= out[i]
    if not rest >= lower[last] or not rest > 0.0:
        return False
    out[last] = rest
    best = _log_density(alpha[last], rate, _peak(alpha[last], rate, lower[last], upper[last]))
    return not _log_density(alpha[last], rate, rest) - best < -rng.standard_exponential()


@_jit()
def fill_dirichlet(rng, alpha, lower, nodes, weights, out):  # type: ignore[no-untyped-def]
    """Draw truncated Dirichlet vectors; returns the number of proposals, for tests."""
    n_draws, n_rows, size = out.shape
    tries = 0
    for row in range(n_rows):
        bounds = lower[row]
        slack = 1.0 - bounds.sum()
        upper = bounds + slack
        free = bounds.max() <= 0.0
        few = alpha[row].max() < 1.0
        rate, last = (0.0, 0) if free or size <= 2 else _tune(alpha[row], bounds, upper, nodes, weights)
        for draw in range(n_draws):
            found = out[draw, row]
            if size == 1:
                found[0] = 1.0
                continue
            if size == 2:
                found[0] = one_beta(rng, alpha[row, 0], alpha[row, 1], bounds[0], 1.0 - bounds[1])
                found[1] = max(1.0 - found[0], bounds[1])
                continue
            while True:
                tries += 1
                if (free or few) and _simplex(rng, alpha[row], bounds, found):
                    break
                if not free and _closed(rng, alpha[row], bounds, upper, rate, last, found):
                    break
    return tries
