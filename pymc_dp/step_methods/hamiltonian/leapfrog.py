"""A trajectory along gradients that may be noised: shears of position and momentum by turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_dp.inspection.rows import Array

Slope = Callable[[Array], Array]


class Phase(NamedTuple):
    """A point of a trajectory.

    Attributes
    ----------
    position : (n_values,) array
    momentum : (n_values,) array
        Standard normal where a trajectory begins.
    slope : (n_values,) array
        Gradient of the log density at the position, per unit; noised.
    """

    position: Array
    momentum: Array
    slope: Array

    @property
    def kinetic(self) -> float:
        """Kinetic energy."""
        return 0.5 * float(self.momentum @ self.momentum)


def leapfrog(start: Phase, slope: Slope, *, step_size: float, n_leapfrog: int, units: Array) -> Phase | None:
    """Follow a trajectory; None where it leaves the real numbers.

    Parameters
    ----------
    start : Phase
    slope : callable
        Gradient at a position: one evaluation per leapfrog step. The one at the start is not made again.
    step_size : float
    n_leapfrog : int
    units : (n_values,) array
        Length of a unit of each value: inverse root of its mass.

    Notes
    -----
    Whatever is added to the slopes, every line below moves one of position and momentum by a function of the other: a
    shear, of Jacobian 1. Run from the end with the momentum turned round and the same slopes in reversed order, it
    comes back to the start; where it leaves the numbers on one way, it does so on the other.
    """
    position, momentum, force = start
    for _ in range(n_leapfrog):
        momentum = momentum + 0.5 * step_size * force
        position = position + step_size * units * momentum
        if not np.isfinite(position).all():
            return None
        force = slope(position)
        if not np.isfinite(force).all():
            return None
        momentum = momentum + 0.5 * step_size * force
    return Phase(position, momentum, force)


__all__ = ["Phase", "leapfrog"]
