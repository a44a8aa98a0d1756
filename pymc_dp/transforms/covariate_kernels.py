"""Moments of private predictors from unknown numbers, with slopes, and the prior of these: compiled, see `covariates`.

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


__all__ = ["add_covariance_slopes", "covariance_roots", "covariate_prior", "numbers_at", "slopes_at", "squared"]
