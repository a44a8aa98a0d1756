"""Stochastic gradient Hamiltonian Monte Carlo: momentum, kicked by noised gradients and slowed by friction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numba
import numpy as np
from numba.extending import register_jitable

from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.noised_steps import spare


@numba.njit(error_model="numpy", cache=True)
def half_drift(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Move by half of the momentum."""
    for j in range(position.size):
        position[j] += 0.5 * memory[j]


@register_jitable
def kick(position: Any, momenta: Any, eta: float, slope: Any, decay: float, missing: float, rng: Any) -> None:
    """Apply friction, a kick by the gradient, and friction again; then move by half of the momentum.

    `decay` is what half a step's friction leaves of a momentum. `missing` is the standard deviation of noise to add.
    """
    for j in range(position.size):
        moved = decay * momenta[j] + eta * slope[j]
        if missing > 0.0:
            moved += missing * rng.standard_normal()
        momenta[j] = decay * moved
        position[j] += 0.5 * momenta[j]


@numba.njit(error_model="numpy", cache=True)
def hamiltonian(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """Friction, kick, friction, half a drift; the friction a is the only constant.

    Noise of variance 4 η sinh(a / 2) holds positions at temperature 1 for every friction where steps are short: a slow
    force moves them by η e^(-a/2) / (1 - e^-a) a step, noise s spreads them by s² e^-a / (1 - e^-a)². The variance of
    momenta is η / cosh(a / 2) then.
    """
    friction = constants[0]
    missing = spare(4 * eta * np.sinh(friction / 2), eta, sigma)
    kick(position, memory, eta, slope, np.exp(-friction / 2), missing, rng)


@final
@dataclass(frozen=True, kw_only=True)
class Hamiltonian:
    """Velocities of all parameters, and a friction."""

    friction: float

    @property
    def update(self) -> tuple[Any, Any]:
        """What moves a chain before and after the gradient is taken."""
        return half_drift, hamiltonian

    @property
    def constants(self) -> tuple[float, ...]:
        """The friction."""
        return (self.friction,)

    def variance(self, step_size: float) -> float:
        """Return 4 η sinh(a / 2): what the friction takes away again."""
        return 4 * math.sinh(self.friction / 2) * step_size

    def remembered(self, size: int) -> Array:
        """Return velocities at rest."""
        return np.zeros(size)


__all__ = ["Hamiltonian", "half_drift", "hamiltonian", "kick"]
