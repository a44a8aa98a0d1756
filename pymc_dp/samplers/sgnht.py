"""Stochastic gradient thermostat: momentum, and a friction that finds out how much noise there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.noised_steps import spare
from pymc_dp.samplers.sghmc import Hamiltonian, half_drift, kick

FOLLOWS, FASTEST = 0.1, 0.1
"""Rate at which a thermostat's friction follows kinetic energy, over the square of the friction; the most per step."""
HOTTEST = 10.0
"""Kinetic energy, over that of temperature 1, above which a thermostat takes no more notice: a chain that starts far
from its target would brake so hard that it never got there. Momenta of temperature 1 have as much once in 600 steps
where there is one parameter, and never where there are many."""


@numba.njit(error_model="numpy", cache=True)
def _energy_gain(momenta: Any, friction: float, eta: float, rate: float) -> float:
    """Return what half a step adds to the friction of a thermostat: kinetic energy above that of temperature 1.

    That of momenta is 1 / cosh(ξ / 2) of it, as in `hamiltonian`. The papers' rate is η, and they have no such factor.
    Where many rows make a posterior narrow, and η small, theirs learns nothing within a chain.
    """
    total = 0.0
    for value in momenta:
        total += value * value
    mean = total / momenta.size
    if rate <= 0.0:  # the papers' form
        return 0.5 * (mean - eta)
    return 0.5 * rate * (min(mean * np.cosh(friction / 2) / eta, HOTTEST) - 1.0)


@numba.njit(error_model="numpy", cache=True)
def half_thermostat(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Move by half of the momentum, and the friction, which is the last entry of the memory, by half a step."""
    half_drift(position, memory[:-1], eta, constants)
    memory[-1] += _energy_gain(memory[:-1], memory[-1], eta, constants[1])


@numba.njit(error_model="numpy", cache=True)
def thermostat(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """Friction that adapts, kick, the friction again, half a drift; constants: the least noise's friction a,
    and the rate κ at which friction follows kinetic energy, 0 for the papers'.

    Stationary for constant noise: exp(log-posterior - kinetic energy - d (ξ - a')² / (2 κ)), where a' makes up for
    all noise there is, by Nosé and Hoover's argument with a mass of η / κ, up to the order of the splitting.
    """
    missing = spare(4 * eta * np.sinh(constants[0] / 2), eta, sigma)
    kick(position, memory[:-1], eta, slope, np.exp(-memory[-1] / 2), missing, rng)
    memory[-1] += _energy_gain(memory[:-1], memory[-1], eta, constants[1])


@final
@dataclass(frozen=True, kw_only=True)
class Thermostat:
    """Velocities of all parameters, and a friction that follows their kinetic energy."""

    friction: float
    papers: bool

    @property
    def update(self) -> tuple[Any, Any]:
        """What moves a chain before and after the gradient is taken."""
        return half_thermostat, thermostat

    @property
    def constants(self) -> tuple[float, ...]:
        """The least friction, and the rate at which it follows; 0 for the papers' rate."""
        return self.friction, 0.0 if self.papers else min(FOLLOWS * self.friction**2, FASTEST)

    def variance(self, step_size: float) -> float:
        """Return that of the least friction."""
        return Hamiltonian(friction=self.friction).variance(step_size)

    def remembered(self, size: int, step_size: float, sigma: float) -> Array:
        """Return velocities at rest, and the friction that is known to be needed at the first step."""
        needed = 2 * math.asinh(step_size * sigma**2 / 4)
        return np.append(np.zeros(size), max(self.friction, needed))


__all__ = ["Thermostat", "half_thermostat", "thermostat"]
