"""Stochastic gradient Langevin dynamics: what a step does with a noised gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.noised_steps import nothing_before, spare

MEMORY, FLOOR = 0.99, 0.01
"""Of preconditioned steps: share of the past in mean squared gradients; share of the largest root added to all."""


@numba.njit(error_model="numpy", cache=True)
def langevin(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """θ + η slope, with noise of variance v η in all; v is the only constant."""
    missing = spare(constants[0] * eta, eta, sigma)
    for j in range(position.size):
        position[j] += eta * slope[j]
    if missing > 0.0:
        for j in range(position.size):
            position[j] += missing * rng.standard_normal()


@numba.njit(error_model="numpy", cache=True)
def rmsprop(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """Langevin with steps η M_j, M_j falling with the size of the noised gradients; constants: v, memory, floor.

    M is scaled to at most 1 and learnt in tuning alone, so that later steps need no correction for its change.
    """
    if tuning:
        for j in range(position.size):
            memory[j] += (1 - constants[1]) * (slope[j] * slope[j] - memory[j])
    least = np.sqrt(memory.min())
    floor = constants[2] * np.sqrt(memory.max())
    for j in range(position.size):
        scaled = eta * ((floor + least) / (floor + np.sqrt(memory[j])) if floor + least > 0.0 else 1.0)
        missing = spare(constants[0] * scaled, scaled, sigma)
        position[j] += scaled * slope[j]
        if missing > 0.0:
            position[j] += missing * rng.standard_normal()


@final
@dataclass(frozen=True, kw_only=True)
class Langevin:
    """θ + η slope + noise of variance 2η, or η in the papers' form; step sizes preconditioned perhaps."""

    papers: bool
    preconditioned: bool

    @property
    def update(self) -> tuple[Any, Any]:
        """What moves a chain before and after the gradient is taken."""
        return nothing_before, rmsprop if self.preconditioned else langevin

    @property
    def constants(self) -> tuple[float, ...]:
        """Variance of the noise over η, and what preconditioning takes."""
        return self.variance(1.0), MEMORY, FLOOR

    def variance(self, step_size: float) -> float:
        """Return 2η, or η in the papers' form."""
        return step_size if self.papers else 2 * step_size

    def remembered(self, size: int) -> Array:
        """Return mean squared gradients, of which nothing is known yet."""
        return np.zeros(size if self.preconditioned else 0)


__all__ = ["Langevin", "langevin", "rmsprop"]
