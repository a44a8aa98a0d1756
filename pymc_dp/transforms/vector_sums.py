"""Density of many noised sums at once: normal by the central limit theorem, by a Cholesky factor per cell.

Gaussian noise adds its variance. Laplace noise on several sums has no closed form; but it is normal noise whose
variance is ``2 scale² e`` with e exponential (Andrews, Mallows 1974). Each e is a free variable of the private model,
so that its posterior for the other variables is the one with Laplace noise, and exact sums stay integrated out.

References
----------
Andrews, Mallows (1974), Scale mixtures of normal distributions, J. R. Stat. Soc. B 36(1); Bernstein, Sheldon (2018),
doi 10.48550/arXiv.1809.02188, section 4 (the same variances, drawn by Gibbs).
"""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.quadrature import normal_logp
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_sizes import Sizes, nodes_around
from pymc_dp.transforms.noise_aware import moments_logp
from pymc_dp.transforms.released_logp import held
from pymc_dp.transforms.sum_noises import SUM_NOISES

FEW = 2
"""Sums that are eliminated one by one; more take a factor of their covariance."""
INTEGRATED = 2
"""Cells up to which a pair of sums with Laplace noise is integrated: chains then need fewer steps, and of few cells the
hundreds of evaluations of the noise that each takes cost less than these steps."""


def mixed(kind: str, count: int, cells: int) -> bool:
    """Whether the variances of the noise of so many sums in so many cells are free variables."""
    return kind == "laplace" and (count > FEW or (count == FEW and cells > INTEGRATED))


def vector_sums_logp(
    value: TensorVariable,
    mean: TensorVariable,
    covariance: TensorVariable,
    scales: Array | TensorVariable,
    sizes: Sizes,
    variances: TensorVariable | None = None,
) -> TensorVariable:
    """Log density of noised sums of vectors, and of the noised size in front where it is private.

    Parameters
    ----------
    value : (n_cells, n_released) tensor
        ``[size,] sums``, in the units of `mean`.
    mean : (n_cells or 1, n_sums) tensor
    covariance : (n_cells or 1, n_sums, n_sums) tensor
        Of the clamped statistic of one row.
    scales : (n_released,) array
        Scale of the noise of each released number.
    sizes : Sizes
    variances : (n_cells, n_sums) tensor, optional
        Of Laplace noise, in units of its own variance ``2 scale²``: where `mixed` says so.
    """
    count, scales, bound = mean.type.shape[-1], held(scales), held(sizes.bound)
    first = 0 if sizes.public else 1
    if count <= FEW:
        columns = [[covariance[:, i, j] for j in range(count)] for i in range(count)]
        return moments_logp(value, [mean[:, i] for i in range(count)], columns, scales, sizes, variances)
    sums, noise = value[:, first:], (scales[first:] ** 2)[None]
    if variances is not None:
        noise = 2 * noise * variances
    if sizes.public:
        return normal_logp(sums - bound[:, None] * mean, bound[:, None, None] * covariance, noise)
    kind, seen = SUM_NOISES[sizes.kind], value[:, 0]
    n, log_weight = nodes_around(seen, kind.reach(scales[0]), bound)
    logp = normal_logp(
        sums[:, None, :] - n[:, :, None] * mean[:, None, :],
        n[:, :, None, None] * covariance[:, None, :, :],
        noise[:, None, :],
    )
    logp += sizes.log_prior(n, bound[:, None]) + kind.log_density(seen[:, None] - n, scales[0])
    return pt.logsumexp(logp + log_weight, axis=-1)


__all__ = ["mixed", "vector_sums_logp"]
