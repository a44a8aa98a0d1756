"""Coordinates in which unknown numbers of known prior, measured with noise, are about independent and of unit size.

A sampler moves in them as far in all directions. They are computed from a release, and spend nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_dp.inspection.rows import Array

STEPS = 200
DIFFERENCE = 1e-5
TOLERANCE = 1e-6


class Coordinates(NamedTuple):
    """Numbers are ``centre + root @ z``.

    Attributes
    ----------
    centre : (p,) array
    root : (p, p) array
    """

    centre: Array
    root: Array


def coordinates_of(
    start: Array,
    expected: Callable[[Array], Array],
    value: Array,
    sd: Array,
    prior: Callable[[Array], tuple[Array, Array, Array]],
) -> Coordinates:
    """Return the most probable numbers, and a root of their covariance there, by damped Gauss-Newton steps.

    Parameters
    ----------
    start : (p,) array
    expected : callable
        Numbers to the (k,) means of what is measured.
    value, sd : (k,) arrays
        Of the measurement.
    prior : callable
        Numbers to minus the log density, one entry per number, with its first and second derivative; convex.
    """
    found, damping = start, 1.0

    def loss(numbers: Array) -> float:
        return float(0.5 * (((expected(numbers) - value) / sd) ** 2).sum() + prior(numbers)[0].sum())

    best = loss(found)
    for _ in range(STEPS):
        gradient, curvature = _derivatives(found, expected, value, sd, prior)
        step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -gradient)
        moved = found + np.clip(step, -1.0, 1.0)
        now = loss(moved)
        if now < best:
            found, best, damping = moved, now, damping / 5
        else:
            damping *= 4
        if float(-gradient @ step) < TOLERANCE:
            break
    _, curvature = _derivatives(found, expected, value, sd, prior)
    return Coordinates(found, np.linalg.inv(np.linalg.cholesky(curvature)).T)


def _derivatives(
    numbers: Array,
    expected: Callable[[Array], Array],
    value: Array,
    sd: Array,
    prior: Callable[[Array], tuple[Array, Array, Array]],
) -> tuple[Array, Array]:
    shifts = DIFFERENCE * np.eye(len(numbers))
    slopes = [(expected(numbers + shift) - expected(numbers - shift)) / (2 * DIFFERENCE * sd) for shift in shifts]
    jacobian = np.array(slopes)
    _, first, second = prior(numbers)
    gradient = jacobian @ ((expected(numbers) - value) / sd) + first
    return gradient, jacobian @ jacobian.T + np.diag(second + 1e-9)


__all__ = ["Coordinates", "coordinates_of"]
