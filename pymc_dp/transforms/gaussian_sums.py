"""Normal sums with discrete Gaussian noise: normal, with the variance of the noise added."""

from __future__ import annotations

from typing import final, override

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.normal_sums import LOG_2PI, SMALL
from pymc_dp.transforms.sum_noise import SumNoise, Tensors


@final
class GaussianSums(SumNoise):
    """Discrete Gaussian noise: ``P(k)`` proportional to ``exp(-k² / 2 scale²)``."""

    @override
    def log_density(self, distance: TensorVariable, scale: TensorVariable) -> TensorVariable:
        return -0.5 * (distance / scale) ** 2 - pt.log(scale) - 0.5 * LOG_2PI

    @override
    def reach(self, scale: TensorVariable) -> TensorVariable:
        return 8 * scale

    @override
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Tensors, n: TensorVariable
    ) -> TensorVariable:
        z = [item - n * middle for item, middle in zip(value, mean, strict=True)]
        v = [
            [n * item + (SMALL + scales[i] ** 2 if i == j else 0.0) for j, item in enumerate(row)]
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


__all__ = ["GaussianSums", "normal_logp"]
