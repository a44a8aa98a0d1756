"""Moments of a normal number within bounds: compiled, and a part of kernels."""

from __future__ import annotations

from math import erfc, exp, sqrt

import numpy as np

from pymc_dp.families.normal import FLAT, NODES
from pymc_dp.transforms.jit import inlined

ROOT_2, ROOT_2PI = sqrt(2.0), sqrt(2 * np.pi)
_X, _W = np.polynomial.legendre.leggauss(NODES)


@inlined
def standard_density(z):  # type: ignore[no-untyped-def]
    """Density of N(0, 1)."""
    return exp(-0.5 * z * z) / ROOT_2PI


@inlined
def write_moments_within(m, s, low, high, inner):  # type: ignore[no-untyped-def]
    """Write E t^k 1(low < t < high) for t ~ N(m, s), k = 0..4.

    Return the probabilities below and above, and the standard densities at both bounds.
    """
    a, b = (low - m) / s, (high - m) / s
    below, above = 0.5 * erfc(-a / ROOT_2), 0.5 * erfc(b / ROOT_2)
    at_a, at_b = standard_density(a), standard_density(b)
    if s < FLAT:
        # By parts: E t^k is m E t^(k-1) + (k - 1) s² E t^(k-2), and what the bounds add.
        inner[0] = 1 - below - above
        first, second = s * at_a, s * at_b
        inner[1] = m * inner[0] + first - second
        for k in range(2, 5):
            first, second = first * low, second * high
            inner[k] = m * inner[k - 1] + (k - 1) * s * s * inner[k - 2] + first - second
        return below, above, at_a, at_b
    for k in range(5):
        inner[k] = 0.0
    for i in range(NODES):
        t = low + (high - low) * 0.5 * (_X[i] + 1)
        weight = (high - low) * 0.5 * _W[i] * standard_density((t - m) / s) / s
        for k in range(5):
            inner[k] += weight
            weight *= t
    return below, above, at_a, at_b


__all__ = ["standard_density", "write_moments_within"]
