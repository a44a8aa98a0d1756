"""From a start far away to where the posterior is: noised gradients followed uphill, with no accept test."""

from __future__ import annotations

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.hamiltonian.gradient import ClippedGradient
from pymc_dp.step_methods.hamiltonian.leapfrog import Slope

NARROW = 1e-4
LONGER, SHORTER = 1.2, 0.5
"""What the size is multiplied by after a move whose ends have slopes of one direction, or of opposite ones."""
LEAST = 1e-2
"""Shortest size over the first one: a stiff direction may not stop the others."""
FARTHEST = 2.0
"""Longest move over 1 / clip norm, which is what all rows together move at most."""


class Climb:
    """Gradient steps, longer while slopes agree and shorter once they turn.

    They leave no posterior as it is, so that a chain makes them while it tunes only.

    Hamiltonian trajectories conserve energy, so no way downhill makes up for what the noise of a ratio costs. From a
    start many standard deviations away they would take most of the budget to arrive.

    Parameters
    ----------
    gradient : ClippedGradient
        Compiled; called here for the prior alone.
    start : (n_values,) array
    units : (n_values,) array
    clip_norm : float
    population : int
        Public number of rows, or the bound on it.

    Attributes
    ----------
    size : float
        To be used by the next move.

    Notes
    -----
    Where gradients of rows have norm C, the log-likelihood of N rows bends by about N C²; the prior, by what it does at
    the start. The first size is one over that sum. Where noise outweighs slopes they turn often, and moves get short.
    """

    def __init__(
        self, gradient: ClippedGradient, start: Array, units: Array, *, clip_norm: float, population: int
    ) -> None:
        self._units, self._longest = units, FARTHEST / clip_norm
        apart = gradient.of_prior(start + NARROW * units) - gradient.of_prior(start)
        bent = float(np.nan_to_num(np.abs(apart) / NARROW, posinf=0.0).max(initial=0.0))
        self._first = 1 / (max(population, 1) * clip_norm**2 + bent)
        self.size = self._first

    def restart(self) -> None:
        """Forget what slopes have said."""
        self.size = self._first

    @np.errstate(all="ignore")  # slopes may leave the numbers
    def __call__(self, position: Array, force: Array, slope: Slope, moves: int) -> tuple[Array, Array]:
        """Return where so many moves lead, and the slope there: one evaluation each."""
        for _ in range(moves):
            move = self.size * force
            length = float(np.linalg.norm(move))
            position = position + self._units * move * min(1.0, self._longest / max(length, 1e-300))
            before, force = force, slope(position)
            self.size *= LONGER if float(before @ force) > 0 else SHORTER
            self.size = max(self.size, LEAST * self._first)
        return position, force


__all__ = ["Climb"]
