"""Sums with discrete Gaussian noise: their log density given the distribution of the exact sum.

* Counts are summed over what is near the release where the noise is narrow; else the saddle point of their cumulant
  function gives the density to a few thousandths, however skewed they are (`saddle_points`).
* Any number of normal sums has a normal density with the variance of the noise added.
"""

from __future__ import annotations

from math import ceil, log, pi
from typing import final, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.transforms.saddle_points import binomial_saddle, poisson_saddle
from pymc_dp.transforms.sum_noise import SMALL, Array, SumNoise, Tensors

LOG_2PI = log(2 * pi)
WINDOW = 9
"""Half width, in noise scales, of the sum over exact counts (what is left out is below e^-40)."""
EXACT_BELOW = 1.0
"""Noise scale under which counts are summed; noise is no longer smooth there."""
MAX_ENTRIES = 100_000


@final
class GaussianSums(SumNoise):
    """Discrete Gaussian noise: ``P(k)`` proportional to ``exp(-k² / 2 scale²)``."""

    @override
    def log_density(self, distance: TensorVariable, scale: float) -> TensorVariable:
        return -0.5 * (distance / scale) ** 2 - log(scale) - 0.5 * LOG_2PI

    @override
    def reach(self, scale: float) -> float:
        return 8 * scale

    @override
    def binomial(self, value: TensorVariable, p: TensorVariable, scale: float, n: Array) -> TensorVariable:
        size = pt.as_tensor(n.astype(float))
        half = min(_half(scale), int(n.max()))
        if not _summed(scale, half, len(n)):
            return binomial_saddle(value, p, size, scale)
        centre = pt.clip(pt.round(value), 0, size)
        s = centre[:, None] + np.arange(-half, half + 1)
        inside = (s >= 0) & (s <= size[:, None])
        s = pt.clip(s, 0, size[:, None])
        ways = pt.gammaln(size[:, None] + 1) - pt.gammaln(s + 1) - pt.gammaln(size[:, None] - s + 1)
        terms = ways + s * pt.log(p)[:, None] + (size[:, None] - s) * pt.log1p(-p)[:, None]
        terms += _log_mass(value[:, None] - s, scale)
        return pt.logsumexp(pt.switch(inside, terms, -np.inf), axis=-1)

    @override
    def poisson(
        self, value: TensorVariable, rate: TensorVariable, scale: float, entries: int
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        rate = pt.maximum(rate, 1e-300)
        half = _half(scale)
        if not _summed(scale, half, entries):
            return poisson_saddle(value, rate, max(scale, 0.05))
        s = pt.maximum(pt.round(value), 0)[..., None] + np.arange(-half, half + 1)
        inside = s >= 0
        s, rate = pt.maximum(s, 0), rate[..., None]
        terms = s * pt.log(rate) - rate - pt.gammaln(s + 1) + _log_mass(value[..., None] - s, scale)
        terms = pt.switch(inside, terms, -np.inf)
        logp = pt.logsumexp(terms, axis=-1)
        weight = pt.exp(terms - logp[..., None])
        mean = (weight * s).sum(axis=-1)
        return logp, mean, (weight * (s - mean[..., None]) ** 2).sum(axis=-1)

    @override
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Array, n: TensorVariable
    ) -> TensorVariable:
        z = [item - n * middle for item, middle in zip(value, mean, strict=True)]
        v = [
            [n * item + (SMALL + float(scales[i]) ** 2 if i == j else 0.0) for j, item in enumerate(row)]
            for i, row in enumerate(covariance)
        ]
        return normal_logp(z, v)


def normal_logp(z: Tensors, covariance: list[Tensors]) -> TensorVariable:
    """Log density at `z` of a normal vector with mean 0, elementwise over cells: by one sum after the other.

    Each sum is normal given those before it; their regressions are eliminated one by one (the factors L D Lᵀ).
    """
    rest, left = list(z), [list(row) for row in covariance]
    total = pt.zeros_like(z[0])
    for i in range(len(z)):
        total += _normal(rest[i], left[i][i])
        for j in range(i + 1, len(z)):
            slope = left[j][i] / left[i][i]
            rest[j] = rest[j] - slope * rest[i]
            for k in range(j, len(z)):
                left[k][j] = left[k][j] - slope * left[k][i]
    return total


def _normal(z: TensorVariable, variance: TensorVariable) -> TensorVariable:
    return -0.5 * (LOG_2PI + pt.log(variance) + z**2 / variance)


def _half(scale: float) -> int:
    return ceil(WINDOW * max(scale, 0.05)) + 1


def _summed(scale: float, half: int, entries: int) -> bool:
    return scale < EXACT_BELOW and (2 * half + 1) * entries <= MAX_ENTRIES


def _log_mass(distance: TensorVariable, scale: float) -> TensorVariable:
    """Log probability of discrete Gaussian noise at whole distances; of none, where there is no noise."""
    scale = max(scale, 1e-3)
    reach = np.arange(-ceil(40 * scale) - 1, ceil(40 * scale) + 2)
    return -0.5 * (distance / scale) ** 2 - log(np.exp(-0.5 * (reach / scale) ** 2).sum())


__all__ = ["GaussianSums", "normal_logp"]
