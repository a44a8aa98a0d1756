"""What is known of the second moments of many private predictors from their noised sums: a mean, and a variance of it.

A noised Gram matrix of a hundred predictors is mostly noise: levels that few rows have give entries far below its
standard deviation. Entries are shrunk in the basis of the predictors, where a correlation is small for most pairs:

1. Means x̄_c of the cells are first-order sums over sizes. Where none were released, n λ vvᵀ, the largest term of the
   spectrum, is taken for n x̄x̄ᵀ, if it holds a quarter of the trace; else x̄ is 0.
2. The diagonal of the scatter within cells, W_ii, has a log-uniform prior on [1/2, n].
3. The correlations W_ij / sqrt(W_ii W_jj) come from a mixture of normal distributions around 0, whose weights are
   fitted to all pairs (adaptive shrinkage).

Posterior means and variances of the entries are kept, and eigenvalues of W are raised to 1/2 at least. Everything is
computed from what was released, and so is free.

References
----------
Stephens (2017), False discovery rates: a new deal, Biostatistics 18(2), doi 10.1093/biostatistics/kxw041;
Bun, Bouchaud, Potters (2017), Cleaning large correlation matrices, Physics Reports 666, section 6 (the rotation
invariant form, which takes no notice of rare levels).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array

LEAST = 0.5
"""Sum of squares below which a predictor is not told from 0: less than one row's largest."""
MEAN_SHARE = 0.25
SPREADS = np.array([0.0, *np.geomspace(1e-3, 1.0, 13)])
"""Standard deviations of the correlations in the mixture."""
ROUNDS, TURNS, GRID = 100, 3, 400


@dataclass(frozen=True, kw_only=True, eq=False)
class GramEstimate:
    """Posterior of the Gram matrix of (1[c], t), or of t alone where no constant was released: D columns, C cells.

    Attributes
    ----------
    sizes : (C,) array
    means : (C, d) array
        x̄_c, one row also without a constant.
    gram : (D, D) array
        Positive definite.
    within : (d, d) array
        Scatter W around the means, all cells together.
    variances : (D, D) array
        Of the entries of `gram`, taken for independent but for the symmetry.
    constant : (C, D) array
        Coefficients of the columns that are 1 in the rows of a cell: ``gram @ constant[c]`` is ``n_c x̄_c`` (and
        ``n_c``).
    """

    sizes: Array
    means: Array
    gram: Array
    within: Array
    variances: Array
    constant: Array


def gram_of_predictors(second: Array, variance: float, total: float) -> GramEstimate:
    """Estimate from noised sums of products of `total` rows alone: (d, d) symmetric, `variance` of their noise."""
    means, within, errors = _centred_by_spectrum(second, variance, total)
    gram = within + total * means.T @ means
    return GramEstimate(
        sizes=np.array([total]),
        means=means,
        gram=gram,
        within=within,
        variances=errors,
        constant=np.linalg.solve(gram, total * means[0])[None],
    )


def gram_of_cells(
    second: Array, variance: float, first: Array, sizes: Array, *, sizes_noised: bool = False
) -> GramEstimate:
    """The same where there are noised sums of predictors (C, d) per cell, and positive sizes of cells (C,)."""
    means = np.clip(first / sizes[:, None], -1.0, 1.0)
    sums = sizes[:, None] * means
    between = means.T @ sums
    within, errors = _shrunk(second - between, variance, float(sizes.sum()))
    between_errors = np.full(sums.shape, variance)
    size_errors = np.eye(len(sizes)) * variance * sizes_noised
    return GramEstimate(
        sizes=sizes,
        means=means,
        gram=np.block([[np.diag(sizes), sums], [sums.T, within + between]]),
        within=within,
        variances=np.block([[size_errors, between_errors], [between_errors.T, errors]]),
        constant=np.eye(len(sizes), sum(sums.shape)),
    )


def _centred_by_spectrum(second: Array, variance: float, total: float) -> tuple[Array, Array, Array]:
    """Means (1, d), scatter and variances where no sums of first order were released."""
    means, estimate = np.zeros((1, len(second))), second
    for _ in range(TURNS):
        values, vectors = np.linalg.eigh(estimate)
        if values[-1] < MEAN_SHARE * np.trace(estimate):
            return np.zeros_like(means), *_shrunk(second, variance, total)
        means = np.sqrt(values[-1] / total) * vectors[:, -1:].T
        between = total * means.T @ means
        within, errors = _shrunk(second - between, variance, total)
        estimate = within + between
    return means, within, errors


def _shrunk(scatter: Array, variance: float, total: float) -> tuple[Array, Array]:
    """Posterior mean, raised to be positive definite, and variances of the entries of a noised scatter matrix."""
    count = len(scatter)
    diagonal, diagonal_variance = log_uniform_posterior(np.diag(scatter), variance, total)
    i, j = np.triu_indices(count, 1)
    scale = np.sqrt(diagonal[i] * diagonal[j])
    found, found_variance = adaptive_shrinkage(scatter[i, j] / scale, variance / scale**2)
    matrix, variances = np.diag(diagonal), np.diag(diagonal_variance)
    matrix[i, j] = matrix[j, i] = found * scale
    variances[i, j] = variances[j, i] = found_variance * scale**2
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, LEAST)) @ vectors.T, variances


def log_uniform_posterior(noised: Array, variance: float, most: float) -> tuple[Array, Array]:
    """Posterior means and variances of numbers whose logarithm is uniform from that of `LEAST` to that of `most`."""
    grid = np.exp(np.linspace(np.log(LEAST), np.log(max(most, 2 * LEAST)), GRID))
    # Nearer than two grid points, the noise tells nothing that the grid could hold.
    deviation = np.sqrt(variance + (0.5 * np.gradient(grid)) ** 2)
    weight = -0.5 * ((noised[:, None] - grid) / deviation) ** 2
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ grid
    return mean, np.minimum(weight @ grid**2 - mean**2, variance)


def adaptive_shrinkage(noised: Array, variances: Array) -> tuple[Array, Array]:
    """Posterior means and variances of numbers from a mixture of normals around 0, its weights by EM."""
    prior = SPREADS**2
    together = prior + variances[:, None]
    likelihood = -0.5 * noised[:, None] ** 2 / together - 0.5 * np.log(together)
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(prior), 1 / len(prior))
    for _ in range(ROUNDS):
        responsible = likelihood * weights
        responsible /= responsible.sum(axis=1, keepdims=True)
        weights = responsible.mean(axis=0)
    factor = prior / together
    mean = (responsible * factor).sum(axis=1) * noised
    square = (responsible * (factor * variances[:, None] + (factor * noised[:, None]) ** 2)).sum(axis=1)
    return mean, np.maximum(square - mean**2, 0.0)


__all__ = ["GramEstimate", "adaptive_shrinkage", "gram_of_cells", "gram_of_predictors", "log_uniform_posterior"]
