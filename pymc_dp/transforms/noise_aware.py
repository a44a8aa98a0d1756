"""Density of a noised sum given the parameters: sampling distribution of the sum, and the known noise, integrated.

The free variables of the model stay as they are: exact sums are never parameters, they are integrated out here.
Every function works per cell and returns a (n_cells,) tensor of log densities.

Let S be the exact sum, Ŝ = S + noise the release.

* Two levels, public size n: S is binomial, and summed over (`noised_count`).
* K levels: independent Poisson counts with rates λ p_k are multinomial given their total. A private size is
  integrated over λ, whose flat prior makes the size uniform; a public size enters as the density of the total
  given the released counts, which is normal to good accuracy for K ≥ 3 (central limit over cells).
* Bounded numbers: S is normal by the central limit theorem over rows, with the moments of the clamped row. A private
  size is integrated by quadrature.

Normal sums with discrete Gaussian noise: normal, with the variance of the noise added.

Normal sums with discrete Laplace noise: one has a closed form, a pair takes a quadrature over the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lgamma, log
from typing import final, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.noised_count import noised_binomial, noised_poisson
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


SIZE_NODES = 32
SUM_NOISES: dict[str, SumNoise] = {"laplace": LaplaceSums(), "gaussian": GaussianSums()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """What is known of the number of rows per cell.

    Attributes
    ----------
    public : bool
        Whether `bound` is the number of rows itself.
    bound : (n_cells,) array
        Public size, or a public bound on it.
    n_private : int
        Number of cells that `bound` rows are spread over. The prior of a private size is that of one part of a
        uniformly random split of `bound` into `n_private` parts, and uniform on 0..bound where there is one part.
        1 of exposures: a large cell would have to overcome the other prior, which took the noise's part against it.
    seen : (n_cells,) array or None
        Private sizes as another table of the same release shows them, where one does: the density is then the
        conditional one given that table, in which the size is `seen` less its noise.
    noise : float
        Scale of the noise of `seen`.
    kind : {"laplace", "gaussian"}
        Noise of the release.
    """

    public: bool
    bound: Array
    n_private: int
    seen: Array | None = None
    noise: float = 0.0
    kind: str = "laplace"

    @cached_property
    def shown(self) -> TensorVariable:
        """`seen` as a tensor, (n_cells,)."""
        assert self.seen is not None
        return held(self.seen)

    def log_prior(self, size: TensorVariable, bound: TensorVariable) -> TensorVariable:
        """Log density of a private size, before or after it was seen."""
        if self.seen is not None:
            return SUM_NOISES[self.kind].log_density(size - self.shown[:, None], held(self.noise))
        parts = max(self.n_private, 2)
        return log(parts - 1) - pt.log(bound) + (parts - 2) * pt.log1p(-(1 - 1e-9) * size / bound)


def counts_logp(
    value: TensorVariable, probabilities: TensorVariable, scale: float, sizes: Sizes, *, both: bool = False
) -> TensorVariable:
    """Log density of noised counts.

    Parameters
    ----------
    value : (n_cells, 1 or n_levels) tensor
        Released counts; of the second level alone where there are two and the size is public, but for `both`.
    probabilities : (n_cells or 1, n_levels) tensor
    scale : float
        Scale of the noise, in counts.
    sizes : Sizes
    both : bool
        Whether both counts of two levels were released though the size is public.
    """
    n_levels = probabilities.type.shape[-1]
    if sizes.public and n_levels == 2 and not both:
        return noised_binomial(value[:, 0], probabilities[:, 1], sizes.bound, sizes.kind, scale)[0]
    if sizes.public:
        bound = held(sizes.bound)
        logp, mean, variance, _ = noised_poisson(value, bound[:, None] * probabilities, sizes.kind, scale)
        spread = variance.sum(axis=-1) + SMALL
        total = -0.5 * (LOG_2PI + pt.log(spread)) - (bound - mean.sum(axis=-1)) ** 2 / (2 * spread)
        return logp.sum(axis=-1) + total - held(poisson_at_mean(sizes.bound))
    rate, log_weight = size_nodes(value.sum(axis=-1), scale, n_levels or 2, sizes)
    rates = rate[:, None, :] * probabilities[:, :, None]
    logp = noised_poisson(value[:, :, None], rates, sizes.kind, scale)[0]
    return pt.logsumexp(logp.sum(axis=1) + log_weight, axis=-1)


def size_nodes(
    total: TensorVariable, scale: float, n_levels: int, sizes: Sizes
) -> tuple[TensorVariable, TensorVariable]:
    """Nodes of a private size, the rate of all counts of a cell, and the logs of their weights: (n_cells, n) each.

    Parameters
    ----------
    total : (n_cells,) tensor
        Sum of the released counts.
    scale : float
    n_levels : int
    sizes : Sizes
    """
    bound = held(sizes.bound)
    width = 8 * pt.sqrt(pt.maximum(total, 0) + held(2 * n_levels * scale**2 + 1))
    low, high = pt.clip(total - width, 0, bound), pt.clip(total + width, 0, bound)
    rate, log_weight = _nodes(low, high, SIZE_NODES)
    if sizes.seen is not None:
        rate, log_weight = nodes_around(sizes.shown, SUM_NOISES[sizes.kind].reach(held(sizes.noise)), bound)
    return rate, log_weight + sizes.log_prior(rate, bound[:, None])


def moments_logp(
    value: TensorVariable,
    mean: list[TensorVariable],
    covariance: list[list[TensorVariable]],
    scales: Array | TensorVariable,
    sizes: Sizes,
    variances: TensorVariable | None = None,
) -> TensorVariable:
    """Log density of noised sums of bounded numbers, and of the noised size in front where it is private.

    Parameters
    ----------
    value : (n_cells, n_released) tensor
        ``[size,] moment[, moment]``, moments in the units of `mean`.
    mean, covariance : tensors of shape (n_cells or 1,)
        Of the clamped statistic of one row.
    scales : (n_released,) array
        Scale of the noise of each released number.
    sizes : Sizes
    variances : (n_cells, n_sums) tensor, optional
        Of Laplace noise on sums, in units of its own variance ``2 scale²``; without them it is integrated.
    """
    noise, scales, bound = SUM_NOISES[sizes.kind], held(scales), held(sizes.bound)
    first = 0 if sizes.public else 1
    given, of_sums = noise, [scales[first + i] for i in range(len(mean))]
    if variances is not None:
        given = SUM_NOISES["gaussian"]
        of_sums = [scale * pt.sqrt(2 * variances[:, i]) for i, scale in enumerate(of_sums)]
    if sizes.public:
        return given.sums([value[:, i] for i in range(len(mean))], mean, covariance, of_sums, bound)
    seen = value[:, 0]
    n, log_weight = nodes_around(seen, noise.reach(scales[0]), bound)
    columns = [value[:, i + 1][:, None] for i in range(len(mean))]
    spread_mean = [item[:, None] for item in mean]
    spread_covariance = [[item[:, None] for item in row] for row in covariance]
    if variances is not None:
        of_sums = [item[:, None] for item in of_sums]
    logp = given.sums(columns, spread_mean, spread_covariance, of_sums, pt.maximum(n, 1e-3))
    logp += sizes.log_prior(n, bound[:, None]) + noise.log_density(seen[:, None] - n, scales[0])
    return pt.logsumexp(logp + log_weight, axis=-1)


def poisson_at_mean(n: Array) -> Array:
    """Log P(Poisson(n) = n)."""
    return np.array([size * log(size) - size - lgamma(size + 1) if size > 0 else 0.0 for size in n])


def _nodes(low: TensorVariable, high: TensorVariable, count: int) -> tuple[TensorVariable, TensorVariable]:
    """Gauss-Legendre nodes between two (n_cells,) tensors, and the logs of their weights: (n_cells, count) each."""
    x, w = legendre(count)
    width = pt.maximum(high - low, 1e-12)[:, None]
    return low[:, None] + width * x, pt.log(width) + np.log(w)


def nodes_around(
    centre: TensorVariable, reach: TensorVariable, bound: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Nodes on either side of a kink at `centre`, no further than `reach` and within 0..bound."""
    middle = pt.clip(centre, 0, bound)
    left, left_weight = _nodes(pt.clip(centre - reach, 0, bound), middle, SIZE_NODES // 2)
    right, right_weight = _nodes(middle, pt.clip(centre + reach, 0, bound), SIZE_NODES // 2)
    return pt.concatenate([left, right], axis=-1), pt.concatenate([left_weight, right_weight], axis=-1)


__all__ = ["GaussianSums", "normal_logp"]
