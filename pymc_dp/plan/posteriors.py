"""Mean and standard deviation of a posterior whose gradient can be had: Langevin dynamics without noise on gradients.

Simulated rows say where the posterior lies: about their truth, where a chain begins, as wide as the curvature there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Array

STEPS, BURN = 3000, 300
TIME, FRICTION = 0.5, 2.0
"""Of a step, in units in which the posterior has curvature 1; a step is exact for the positions of a normal one."""
NEARBY = 1e-3
"""Distance over which gradients are compared for their curvature."""
HALVINGS = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Of a posterior in unconstrained space: (n_parameters,) arrays."""

    mean: Array
    sd: Array


def moments(slope: Callable[[Array], Array], truth: Array, rng: np.random.Generator) -> Moments:
    """Return the moments of the density whose logarithm has the gradient `slope`, about a point of its middle.

    Raises
    ------
    UnsupportedModelError
        Where no step is short enough for the dynamics to stay finite.

    References
    ----------
    Leimkuhler, Matthews (2013): the splitting, BAOAB.
    """
    units = _units(slope, truth)
    for halving in range(HALVINGS):
        with np.errstate(all="ignore"):
            draws = _walk(slope, truth, units, TIME / 2**halving, rng)
        if draws is not None:
            return Moments(mean=draws.mean(axis=0), sd=draws.std(axis=0))
    what = "the gradient of its log-posterior on simulated rows cannot be followed"
    remedy = "Give priors that keep parameters where the density is finite."
    raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


def _units(slope: Callable[[Array], Array], truth: Array) -> Array:
    """Return the matrix from coordinates in which the posterior is about standard normal."""
    bent = np.array([slope(truth + move) - slope(truth - move) for move in NEARBY * np.eye(truth.size)])
    curvature = -np.nan_to_num((bent + bent.T) / (4 * NEARBY), nan=0.0, posinf=0.0, neginf=0.0)
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
    return np.asarray(vectors / np.sqrt(values))


def _walk(
    slope: Callable[[Array], Array], start: Array, units: Array, time: float, rng: np.random.Generator
) -> Array | None:
    """Return positions, (STEPS, n_parameters); None where they do not stay finite."""
    position, velocity = start.copy(), rng.normal(size=start.size)
    keep = math.exp(-FRICTION * time)
    fresh = math.sqrt(1 - keep**2)
    force = units.T @ slope(position)
    found = np.empty((STEPS, start.size))
    for step in range(-BURN, STEPS):
        velocity = velocity + time / 2 * force
        halfway = position + time / 2 * (units @ velocity)
        velocity = keep * velocity + fresh * rng.normal(size=start.size)
        position = halfway + time / 2 * (units @ velocity)
        force = units.T @ slope(position)
        velocity = velocity + time / 2 * force
        if not (np.isfinite(force).all() and np.abs(velocity).max() < 1e6):
            return None
        if step >= 0:
            found[step] = position
    return found


__all__ = ["Moments", "moments"]
