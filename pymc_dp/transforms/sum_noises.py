"""Noised normal sums: their density with the noise of a release integrated out.

Normal sums with discrete Gaussian noise: normal, with the variance of the noise added.

Normal sums with discrete Laplace noise: one has a closed form, a pair takes a quadrature over the first.
"""

from __future__ import annotations

from typing import final, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.released_logp import SumNoise, Tensors, held, legendre


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


SQRT2 = float(np.sqrt(2.0))
MOMENT_NODES = 24


@final
class LaplaceSums(SumNoise):
    """Discrete Laplace noise: ``P(k)`` proportional to ``exp(-|k| / scale)``."""

    @override
    def log_density(self, distance: TensorVariable, scale: TensorVariable) -> TensorVariable:
        return -pt.abs(distance) / scale - pt.log(2 * scale)

    @override
    def reach(self, scale: TensorVariable) -> TensorVariable:
        return 18 * scale

    @override
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Tensors, n: TensorVariable
    ) -> TensorVariable:
        """One sum has a closed form, two are integrated over the first; more have to stay free variables."""
        if len(mean) == 1:
            return normal_laplace(value[0] - n * mean[0], n * covariance[0][0] + SMALL, scales[0])
        first, second = (value[i] - n * mean[i] for i in range(2))
        variances = n * covariance[0][0] + SMALL, n * covariance[0][1], n * covariance[1][1] + SMALL
        return normal_laplace_pair([first, second], *variances, scales)


def normal_laplace(z: TensorVariable, variance: TensorVariable, scale: float | TensorVariable) -> TensorVariable:
    """Log density at `z` of N(0, variance) + Laplace(scale): stable in all tails.

    The two exponential pieces of the noise give two Gaussian tail integrals; each is written with the scaled
    complementary error function, so that e^{v/2b²} never meets its inverse.
    """
    scale = held(scale)
    return pt.logaddexp(*_pieces(z, variance, scale)) - pt.log(2 * scale)


def _pieces(z: TensorVariable, variance: TensorVariable, scale: TensorVariable) -> Tensors:
    s = pt.sqrt(variance)
    return [_tail(z / s - s / scale, z, variance, scale), _tail(-z / s - s / scale, -z, variance, scale)]


def _tail(a: TensorVariable, z: TensorVariable, variance: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """``v/2b² − z/b + log Φ(a)`` with ``a = z/√v − √v/b``; for negative a it is ``−z²/2v + log(erfcx(−a/√2)/2)``."""
    far = -(z**2) / (2 * variance) + pt.log(0.5 * pt.erfcx(-pt.minimum(a, 0) / SQRT2))
    near = variance / (2 * scale**2) - z / scale + pt.log1p(-0.5 * pt.erfc(pt.maximum(a, -1) / SQRT2))
    return pt.switch(a < -0.5, far, near)


def normal_laplace_pair(
    z: list[TensorVariable],
    v11: TensorVariable,
    v12: TensorVariable,
    v22: TensorVariable,
    scales: Tensors | Array,
) -> TensorVariable:
    """Log density of a correlated normal pair with independent Laplace noise on each: quadrature over the first sum.

    On either side of its release the first sum has an exponentially tilted normal density, ``exp(a d − d²/2)`` in
    standard deviations d of it; Gauss-Legendre panels cover what is above e^-20 of its peak. Where the second sum is
    nearly a function of the first, its noise has a kink too: the panels meet there, and nodes are denser at both kinks.
    """
    s = pt.sqrt(v11)
    slope = v12 / v11
    rest = pt.maximum(v22 - v12 * slope, SMALL * (1 + v22))
    level = pt.eq(slope, 0)
    crossing = pt.switch(level, 0.0, z[0] - z[1] / pt.switch(level, 1.0, slope))
    terms = []
    for sign in (1.0, -1.0):
        a = sign * z[0] / s - s / scales[0]
        low = pt.maximum(a - np.sqrt(40.0), 0)
        falling = pt.minimum(a, 0)
        high = pt.maximum(a, 0) + 40.0 / (pt.sqrt(falling**2 + 40.0) - falling)
        kink = pt.clip(sign * crossing / s, low, high)
        for start, end in ((low, kink), (kink, high)):
            width = pt.maximum(end - start, 1e-9 * (high - low))
            d = start[..., None] + width[..., None] * _PANEL
            first = z[0][..., None] - sign * s[..., None] * d
            second = z[1][..., None] - slope[..., None] * first
            logp = a[..., None] * d - 0.5 * d**2 + normal_laplace(second, rest[..., None], scales[1])
            terms.append(pt.logsumexp(logp + _PANEL_LOG_WEIGHTS, axis=-1) + pt.log(width))
    total = pt.logsumexp(pt.stack(terms), axis=0)
    return total - z[0] ** 2 / (2 * v11) - 0.5 * LOG_2PI - pt.log(2 * scales[0])


def dense_nodes(count: int = MOMENT_NODES) -> tuple[Array, Array]:
    """Return nodes on [0, 1], denser at both ends, and the logarithms of their weights."""
    x, w = legendre(count)
    return x**2 * (3 - 2 * x), np.log(w * 6 * x * (1 - x))


_PANEL, _PANEL_LOG_WEIGHTS = dense_nodes()


SUM_NOISES: dict[str, SumNoise] = {"laplace": LaplaceSums(), "gaussian": GaussianSums()}


__all__ = ["GaussianSums", "normal_logp"]
