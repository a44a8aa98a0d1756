"""Moments of a normal number within bounds: compiled, and a part of kernels."""

from __future__ import annotations

from math import erfc, exp, sqrt

import numpy as np

from pymc_dp.families.normal import FLAT, NODES
from pymc_dp.transforms.jit import part

ROOT_2, ROOT_2PI = sqrt(2.0), sqrt(2 * np.pi)
CHOOSE = np.array([[1.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 2, 1, 0, 0], [1, 3, 3, 1, 0], [1, 4, 6, 4, 1]])
_X, _W = np.polynomial.legendre.leggauss(NODES)


@part
def standard_density(z):  # type: ignore[no-untyped-def]
    """Density of N(0, 1)."""
    return exp(-0.5 * z * z) / ROOT_2PI


@part
def write_moments_within(m, s, low, high, inner):  # type: ignore[no-untyped-def]
    """Write E t^k 1(low < t < high) for t ~ N(m, s), k = 0..4."""
    for k in range(5):
        inner[k] = 0.0
    if s >= FLAT:
        for i in range(NODES):
            t = low + (high - low) * 0.5 * (_X[i] + 1)
            weight = (high - low) * 0.5 * _W[i] * standard_density((t - m) / s) / s
            for k in range(5):
                inner[k] += weight
                weight *= t
        return
    a, b = (low - m) / s, (high - m) / s
    at_a, at_b = standard_density(a), standard_density(b)
    inside = np.empty(5)
    inside[0], inside[1] = 1 - 0.5 * erfc(-a / ROOT_2) - 0.5 * erfc(b / ROOT_2), at_a - at_b
    for k in range(2, 5):
        at_a, at_b = at_a * a, at_b * b
        inside[k] = (k - 1) * inside[k - 2] + at_a - at_b
    for k in range(5):
        for i in range(k + 1):
            inner[k] += CHOOSE[k, i] * m ** (k - i) * s**i * inside[i]


__all__ = ["standard_density", "write_moments_within"]
