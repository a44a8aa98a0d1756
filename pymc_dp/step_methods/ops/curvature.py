"""The mode of a density and its curvature there: coordinates in which a chain takes few and long steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize

from pymc_dp.inspection.rows import Array

Slope = Callable[[Array], tuple[float, Array]]
"""A point to the log-density and its gradient, which need not be finite."""
DISTANCES = (1e-4, 0.1)
"""Distances over which gradients are compared: along the axes first, then along the directions found by that."""
FLATTEST = 1e-8
"""Least curvature of a direction, as a share of the largest one."""
ITERATIONS = 500


def mode(slope: Slope, start: Array) -> Array:
    """Return the point where L-BFGS ends, (n_values,)."""

    def uphill(point: Array) -> tuple[float, Array]:
        value, gradient = slope(point)
        return float(np.nan_to_num(-value, nan=1e100, posinf=1e100)), np.nan_to_num(-np.asarray(gradient))

    found = optimize.minimize(uphill, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return np.asarray(found.x)


def units(slope: Slope, centre: Array) -> Array:
    """Return the matrix from coordinates in which the density is about standard normal, (n_values, n_values).

    Directions in which the density is convex, or flat, get the units of an equally strong or very weak curvature.
    """
    found = np.eye(len(centre))
    for distance in DISTANCES:
        ends = [(slope(centre + move)[1], slope(centre - move)[1]) for move in distance * found.T]
        bent = np.array([found.T @ (low - high) for high, low in ends]) / (2 * distance)
        values, vectors = np.linalg.eigh(np.nan_to_num((bent + bent.T) / 2, nan=0.0, posinf=0.0, neginf=0.0))
        sizes = np.abs(values)
        largest = sizes.max()
        sizes = np.maximum(sizes, FLATTEST * largest) if largest > 0 else np.ones_like(sizes)
        found = found @ (vectors / np.sqrt(sizes))
    return found


__all__ = ["Slope", "mode", "units"]
