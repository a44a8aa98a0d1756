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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lgamma, log

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.normal_sums import LOG_2PI, SMALL
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.gaussian_sums import GaussianSums
from pymc_dp.transforms.laplace_sums import LaplaceSums
from pymc_dp.transforms.noised_count import noised_binomial, noised_poisson
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.sum_noise import SumNoise, legendre

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
        return noised_binomial(value[:, 0], probabilities[:, 1], sizes.bound, sizes.kind, scale)
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
