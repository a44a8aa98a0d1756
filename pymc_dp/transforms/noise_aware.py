"""Density of a noised sum given the parameters: sampling distribution of the sum, and the known noise, integrated.

The free variables of the model stay as they are: exact sums are never parameters, they are integrated out here.
Every function works per cell and returns a (n_cells,) tensor of log densities.

Let S be the exact sum, Ŝ = S + noise the release.

* Two levels, public size n: S is binomial, and summed over (`noised_count`).
* K levels: independent Poisson counts with rates λ p_k are multinomial given their total. A private size is
  integrated over λ, whose flat prior makes the size uniform; a public size enters as the density of the total
  given the released counts, which is normal to good accuracy for K ≥ 3 (central limit over cells).
* Bounded numbers: S is normal by the central limit theorem over rows, with the moments of the clamped row. A private
  size is integrated by quadrature. Few counts need no theorem, of a public size or one that is shown well: see
  `few_rows`.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_sizes import Sizes, nodes_around, size_nodes
from pymc_dp.transforms.noised_count import noised_binomial, noised_poisson
from pymc_dp.transforms.released_logp import held
from pymc_dp.transforms.sum_noises import SUM_NOISES


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
