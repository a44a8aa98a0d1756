"""Moments of predictors and linear predictors of a regression, and slopes back to its parameters: compiled.

Arguments are those of the kernels in `regression_kernels`; `known` are size, means and covariance of predictors per
cell.
"""

from __future__ import annotations

import numpy as np

from pymc_dp.transforms.covariate_kernels import (
    add_covariance_slopes,
    covariance_roots,
    numbers_at,
    slopes_at,
    squared,
)
from pymc_dp.transforms.jit import part

SUPPORTED = 1e6
"""Coefficients beyond have no density: they would overflow."""
APART, CONSTANT, SQUARED, LAPLACE = range(4)
"""Places in `form`."""


@part
def supported(x):  # type: ignore[no-untyped-def]
    """Whether all coefficients are such as have a density."""
    inside, flat = True, x.ravel()
    for i in range(len(flat)):
        inside = inside and abs(flat[i]) < SUPPORTED
    return inside


@part
def predictors(a, shares, z, centre, root, sizes, means, within, form):  # type: ignore[no-untyped-def]
    """Size, means and covariance of the predictors of every cell; and what the unknown numbers are."""
    n_cells, d = a.size, means.shape[1]
    numbers = numbers_at(z, centre, root)
    n = np.empty(n_cells)
    for c in range(n_cells):
        n[c] = sizes[0] * shares[c] if len(shares) else sizes[c]
    if len(z) == 0:
        return (n, means, within), numbers
    first = n_cells if form[CONSTANT] else 0
    found = np.zeros((n_cells, d))
    for c in range(first):
        for j in range(d):
            found[c, j] = numbers[c * d + j]
    blocks = n_cells if form[APART] else 1
    return (n, found, squared(covariance_roots(numbers, first * d, blocks, d)[0])), numbers


@part
def linear_predictors(a, w, known, units, form):  # type: ignore[no-untyped-def]
    """Mean and variance of linear predictors, covariance of predictors with them, and slopes, of scaled numbers."""
    _, means, within = known
    n_cells, d = means.shape
    flat, starts, half = w.ravel(), a.ravel(), units[2 * d + 1]
    eta, spread = np.empty(n_cells), np.zeros(n_cells)
    along, slopes = np.zeros((n_cells, d)), np.empty((n_cells, d))
    for c in range(n_cells):
        offset, block = c * d if form[APART] else 0, c if len(within) > 1 else 0
        eta[c] = starts[c] - units[2 * d]
        for j in range(d):
            eta[c] += flat[offset + j] * units[j]
            slopes[c, j] = flat[offset + j] * units[d + j] / half
        eta[c] /= half
        for j in range(d):
            eta[c] += means[c, j] * slopes[c, j]
            for k in range(d):
                along[c, j] += within[block, j, k] * slopes[c, k]
            spread[c] += along[c, j] * slopes[c, j]
    return eta, spread, along, slopes


@part
def write_natural(geta, gs, units, form, ga, gw):  # type: ignore[no-untyped-def]
    """Write slopes in natural coefficients, given those in scaled ones."""
    n_cells, d = gs.shape
    half, starts, flat = units[2 * d + 1], ga.ravel(), gw.ravel()
    for c in range(n_cells):
        offset = c * d if form[APART] else 0
        starts[c] = geta[c] / half
        for j in range(d):
            flat[offset + j] += (geta[c] * units[j] + gs[c, j] * units[d + j]) / half


@part
def write_unknown(numbers, root, form, gm, gv, gz):  # type: ignore[no-untyped-def]
    """Write slopes in the unknown numbers."""
    n_cells, d = gm.shape
    slopes, first = np.zeros(len(numbers)), n_cells if form[CONSTANT] else 0
    for c in range(first):
        for j in range(d):
            slopes[c * d + j] = gm[c, j]
    factors, before, partial = covariance_roots(numbers, first * d, len(gv), d)
    add_covariance_slopes(slopes, first * d, factors, before, partial, gv)
    found = slopes_at(slopes, root)
    for i in range(len(gz)):
        gz[i] = found[i]


__all__ = [
    "APART",
    "CONSTANT",
    "LAPLACE",
    "SQUARED",
    "SUPPORTED",
    "linear_predictors",
    "predictors",
    "supported",
    "write_natural",
    "write_unknown",
]
