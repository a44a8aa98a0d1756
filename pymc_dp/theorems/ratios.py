"""The largest likelihood over the marginal one: the constant C of stochastic Lipschitz continuity, by quadrature."""

from __future__ import annotations

import math

import numpy as np

MOST_POINTS = 2**17
NODES = 96
FAR = 40.0
"""Nats below its largest value at which an integrand is cut."""
ROUNDING = 1 + 1e-9
MOST_NATS = 700.0
PER_NAT = 500
"""Points of the grid per nat that the logarithm of the ratio can change."""


def largest_ratio(low: float, high: float, prior: float, *, power: float, exponents: tuple[float, float]) -> float:
    """Bound the largest ``p / φ`` of densities ``p = θ^power e^{-θ s}``, over s and over θ in [low, high].

    By the logarithm of a ratio of s: its largest value on a grid of s, and its slope, at most high - low, times half of
    a step of the grid. φ, the mean of p under the prior, is computed without its tail beyond `FAR` nats. The bound is
    inf where it is above what floats hold, which a grid of `MOST_POINTS` makes of exponents in too wide a range.
    """
    first, last = exponents
    count = min(MOST_POINTS, max(2, math.ceil((last - first) * (high - low) * PER_NAT) + 1))
    grid, step = np.linspace(first, last, count, retstep=True)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    constant = math.log(prior) - math.log(-math.expm1(-prior * (high - low)))
    largest = -math.inf
    for s in np.array_split(grid, math.ceil(count / 2**13)):
        # θ = v², for roots of θ are not smooth at 0; relative to e^{-low (prior + s)}.
        top = np.sqrt(np.minimum(high, low + FAR / (prior + s)))[:, None]
        half = (top - math.sqrt(low)) / 2
        v = math.sqrt(low) + half * (nodes + 1)
        inside = v ** (2 * power + 1) * np.exp(-(v**2 - low) * (prior + s[:, None]))
        mean = np.log((2 * half * weights * inside).sum(axis=1)) + constant - low * s
        with np.errstate(divide="ignore"):
            at = np.clip(power / s, low, high)
        largest = max(largest, float((power * np.log(at) - at * s - mean).max()))
    return exponential_up(largest + (high - low) * float(step) / 2)


def exponential_up(nats: float) -> float:
    """Return ``e^nats``, 1 at least, with room for rounding; inf where that is above what floats hold."""
    return max(1.0, math.exp(nats) * ROUNDING) if nats < MOST_NATS else math.inf


__all__ = ["ROUNDING", "exponential_up", "largest_ratio"]
