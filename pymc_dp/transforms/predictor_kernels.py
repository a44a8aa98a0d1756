"""Moments of predictors and linear predictors of a regression, and slopes back to its parameters: compiled.

Arguments are those of the kernels in `regression_kernels`; `known` are size, means and covariance of predictors per
cell.

Moments of private predictors from unknown numbers, with slopes, and the prior of these: compiled, see `covariates`.

`numbers` are means of cells (where there are any), logarithms of standard deviations and logits of partial
correlations, the last two block by block from entry `start` on.
"""

from __future__ import annotations

from math import exp, log1p, sqrt, tanh

import numpy as np

from pymc_dp.transforms.covariates import SPREAD, TINY
from pymc_dp.transforms.jit import kernel, part


@part
def numbers_at(z, centre, root):  # type: ignore[no-untyped-def]
    """Return ``centre + root @ z``."""
    found = centre.copy()
    for i in range(len(z)):
        for j in range(len(z)):
            found[i] += root[i, j] * z[j]
    return found


@part
def slopes_at(slopes, root):  # type: ignore[no-untyped-def]
    """Return ``root.T @ slopes``."""
    found = np.zeros(len(slopes))
    for i in range(len(slopes)):
        for j in range(len(slopes)):
            found[j] += root[i, j] * slopes[i]
    return found


@part
def covariance_roots(numbers, start, blocks, d):  # type: ignore[no-untyped-def]
    """Return triangular factors of covariances; what multiplies each partial correlation there; the correlations."""
    root, before, partial = np.zeros((blocks, d, d)), np.zeros((blocks, d, d)), np.zeros((blocks, d, d))
    at = start + blocks * d
    for b in range(blocks):
        for i in range(d):
            left = exp(numbers[start + b * d + i])
            for j in range(i):
                r = tanh(0.5 * numbers[at])
                at += 1
                partial[b, i, j], before[b, i, j], root[b, i, j] = r, left, left * r
                left *= sqrt(1 + TINY - r * r)
            root[b, i, i] = left
    return root, before, partial


@part
def squared(root):  # type: ignore[no-untyped-def]
    """Return the products of the factors and their transposes."""
    found = np.zeros(root.shape)
    for b in range(root.shape[0]):
        for i in range(root.shape[1]):
            for k in range(root.shape[1]):
                for j in range(min(i, k) + 1):
                    found[b, i, k] += root[b, i, j] * root[b, k, j]
    return found


@part
def add_covariance_slopes(slopes, start, root, before, partial, g):  # type: ignore[no-untyped-def]
    """Write slopes in the numbers from `start` on, given slopes `g` in the covariances."""
    blocks, d = root.shape[0], root.shape[1]
    at = start + blocks * d
    for b in range(blocks):
        for i in range(d):
            after = 0.0
            for j in range(i, -1, -1):
                slope = 0.0
                for k in range(j, d):
                    slope += (g[b, i, k] + g[b, k, i]) * root[b, k, j]
                if j < i:
                    r = partial[b, i, j]
                    turn = slope * before[b, i, j] - after * r / (1 + TINY - r * r)
                    slopes[at + j] = turn * 0.5 * (1 - r * r)
                after += slope * root[b, i, j]
            slopes[start + b * d + i] = after
            at += i


@kernel
def covariate_prior(z, centre, root, kinds, scales, shapes):  # type: ignore[no-untyped-def]
    """Return the log density of the unknown numbers in their coordinates, up to a constant, and its slope."""
    numbers, total = numbers_at(z, centre, root), 0.0
    slopes = np.zeros(len(z))
    for i in range(len(z)):
        x = numbers[i]
        if kinds[i] == 0:
            slopes[i] = -x / scales[i] ** 2
            total += 0.5 * slopes[i] * x
        elif kinds[i] == 1:
            away = (x - np.log(scales[i])) / SPREAD
            slopes[i] = -away / SPREAD
            total -= 0.5 * away * away
        else:
            slopes[i] = -shapes[i] * tanh(0.5 * x)
            total -= shapes[i] * (abs(x) + 2 * log1p(exp(-abs(x))))
    return total, slopes_at(slopes, root)


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
    "add_covariance_slopes",
    "covariance_roots",
    "covariate_prior",
    "linear_predictors",
    "numbers_at",
    "predictors",
    "slopes_at",
    "squared",
    "supported",
    "write_natural",
    "write_unknown",
]
