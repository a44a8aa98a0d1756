"""Densities of noised normal sums, and their slopes: compiled; formulas are in `gaussian_sums` and `laplace_sums`."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from pymc_dp.families.normal_sums import LOG_2PI
from pymc_dp.transforms.jit import part


@part
def noise_logp(distance, scale, laplace):  # type: ignore[no-untyped-def]
    """Log density of noise, and its slope."""
    if laplace:
        return -abs(distance) / scale - log(2 * scale), -np.sign(distance) / scale
    return -0.5 * (distance / scale) ** 2 - log(scale) - 0.5 * LOG_2PI, -distance / scale**2


@part
def factor_and_solve(matrix, x):  # type: ignore[no-untyped-def]
    """Replace the lower triangle of a matrix by its Cholesky factor L, and x by the solution y of ``L y = x``."""
    k = len(x)
    for j in range(k):
        for m in range(j):
            matrix[j, j] -= matrix[j, m] * matrix[j, m]
            x[j] -= matrix[j, m] * x[m]
        matrix[j, j] = sqrt(matrix[j, j])
        x[j] /= matrix[j, j]
        for i in range(j + 1, k):
            for m in range(j):
                matrix[i, j] -= matrix[i, m] * matrix[j, m]
            matrix[i, j] /= matrix[j, j]


@part
def slopes_of_normal(factor, x):  # type: ignore[no-untyped-def]
    """Replace L and L⁻¹ z by the slopes of the normal log density at z in its covariance V, and by V⁻¹ z."""
    k = len(x)
    inverse = np.zeros((k, k))
    for j in range(k):
        inverse[j, j] = 1 / factor[j, j]
        for i in range(j + 1, k):
            for m in range(j, i):
                inverse[i, j] -= factor[i, m] * inverse[m, j]
            inverse[i, j] /= factor[i, i]
    for j in range(k):
        x[j] *= inverse[j, j]
        for i in range(j + 1, k):
            x[j] += inverse[i, j] * x[i]
    for i in range(k):
        for j in range(i + 1):
            found = x[i] * x[j]
            for m in range(i, k):
                found -= inverse[m, i] * inverse[m, j]
            factor[i, j] = factor[j, i] = 0.5 * found


__all__ = ["factor_and_solve", "noise_logp", "slopes_of_normal"]
