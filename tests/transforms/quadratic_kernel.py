"""A kernel for tests of the operation around it."""

import numba
import numpy as np

WEIGHT = 2.0


@numba.njit(cache=True)
def square(x):
    return WEIGHT * x * x


@numba.njit(cache=True)
def quadratic(value, rate, mean):
    """Return -rate sum (value - mean)², and its slopes in `rate` and `mean`."""
    total, slope = 0.0, np.empty_like(mean)
    for i in range(len(value)):
        total -= square(value[i] - mean[i]) / WEIGHT
        slope[i] = 2 * rate * (value[i] - mean[i])
    return rate * total, total, slope


@numba.njit(cache=True)
def by_cells(value, mean):
    """Return -(value - mean)² summed per row, and its slope in `mean`."""
    total, slope = np.zeros(len(value)), np.empty_like(mean)
    for i in range(len(value)):
        for j in range(mean.shape[1]):
            total[i] -= (value[i] - mean[i, j]) ** 2
            slope[i, j] = 2 * (value[i] - mean[i, j])
    return total, slope


@numba.njit
def flattened(mean):
    """Return the sum of an array of any number of dimensions, and its slope."""
    total, slope = 0.0, np.ones_like(mean)
    for item in mean.flat:
        total += item
    return total, slope
