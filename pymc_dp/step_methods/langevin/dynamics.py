"""What stochastic-gradient samplers do with a noised gradient: compiled updates, which see released numbers alone.

Every update comes in two parts, ``before`` the gradient is taken and ``after``. `memory` is what a chain remembers
beside its position, `eta` the step size, `sigma` the standard deviation of the noise that an entry of `slope` already
holds, `constants` those of the sampler. For a sampler that asks for it the mean of the products of the rows' gradients
stands behind the gradient, a matrix row by row. Nothing here sees a row: the rows' only way in is `slope`, all of which
was noised and paid for.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pymc_dp.step_methods.langevin.information import views

LEAST_SPARE = 1e-9
"""Share of the wanted noise below which what is missing is rounding."""
HOTTEST = 10.0
"""Kinetic energy, over that of temperature 1, above which a thermostat takes no more notice: a chain that starts far
from its target would brake so hard that it never got there. Momenta of temperature 1 have as much once in 600 steps
where there is one parameter, and never where there are many."""


@numba.njit(error_model="numpy", inline="always")
def _spare(wanted: float, eta: float, sigma: float) -> float:
    """Return the standard deviation that is still missing of the variance `wanted` in a step."""
    missing = wanted - (eta * sigma) ** 2
    return np.sqrt(missing) if missing > LEAST_SPARE * wanted else 0.0


@numba.njit(error_model="numpy")
def nothing_before(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Take the gradient where the chain is."""


@numba.njit(error_model="numpy")
def langevin(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """θ + η slope, with noise of variance v η in all; v is the only constant."""
    spare = _spare(constants[0] * eta, eta, sigma)
    for j in range(position.size):
        position[j] += eta * slope[j]
    if spare > 0.0:
        for j in range(position.size):
            position[j] += spare * rng.standard_normal()


@numba.njit(error_model="numpy")
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
        spare = _spare(constants[0] * scaled, scaled, sigma)
        position[j] += scaled * slope[j]
        if spare > 0.0:
            position[j] += spare * rng.standard_normal()


@numba.njit(error_model="numpy")
def half_drift(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Move by half of the momentum."""
    for j in range(position.size):
        position[j] += 0.5 * memory[j]


@numba.njit(error_model="numpy")
def hamiltonian(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """Friction, kick, friction, half a drift; the friction a is the only constant.

    Noise of variance 4 η sinh(a / 2) holds positions at temperature 1 for every friction where steps are short: a slow
    force moves them by η e^(-a/2) / (1 - e^-a) a step, noise s spreads them by s² e^-a / (1 - e^-a)². The variance of
    momenta is η / cosh(a / 2) then.
    """
    friction = constants[0]
    spare = _spare(4 * eta * np.sinh(friction / 2), eta, sigma)
    decay = np.exp(-friction / 2)
    for j in range(position.size):
        kicked = decay * memory[j] + eta * slope[j]
        if spare > 0.0:
            kicked += spare * rng.standard_normal()
        memory[j] = decay * kicked
        position[j] += 0.5 * memory[j]


@numba.njit(error_model="numpy")
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


@numba.njit(error_model="numpy")
def half_thermostat(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Move by half of the momentum, and the friction, which is the last entry of the memory, by half a step."""
    half_drift(position, memory[:-1], eta, constants)
    memory[-1] += _energy_gain(memory[:-1], memory[-1], eta, constants[1])


@numba.njit(error_model="numpy")
def thermostat(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """Friction that adapts, kick, the friction again, half a drift; constants: the least noise's friction a,
    and the rate κ at which friction follows kinetic energy, 0 for the papers'.

    Stationary for constant noise: exp(log-posterior - kinetic energy - d (ξ - a')² / (2 κ)), where a' makes up for
    all noise there is, by Nosé and Hoover's argument with a mass of η / κ, up to the order of the splitting.
    """
    spare = _spare(4 * eta * np.sinh(constants[0] / 2), eta, sigma)
    decay = np.exp(-memory[-1] / 2)
    for j in range(position.size):
        kicked = decay * memory[j] + eta * slope[j]
        if spare > 0.0:
            kicked += spare * rng.standard_normal()
        memory[j] = decay * kicked
        position[j] += 0.5 * memory[j]
    memory[-1] += _energy_gain(memory[:-1], memory[-1], eta, constants[1])


_views = numba.njit(views)


@numba.njit(error_model="numpy")
def scoring(
    position: Any, memory: Any, eta: float, sigma: float, constants: Any, slope: Any, tuning: bool, rng: Any
) -> None:
    """θ + 2 G⁻¹ (gradient + injected noise), and add up what the step has released of the information of a row.

    G is `bends` along `axes` (columns; `information.Memory`), and a ridge along all. Constants: η times the least
    variance of the noise on a gradient; η times the ridge, or 0 where that is the variance of the noise.
    """
    size = position.size
    known = _views(memory, size)
    seen = slope[size:].reshape((size, size))
    for j in range(size):
        for k in range(size):
            known.sum_of[j, k] += seen[j, k]
    known.steps[1] += 1
    least = sigma * sigma
    wanted = max(least, constants[0] / eta)
    if wanted > least * (1 + LEAST_SPARE):
        for j in range(size):
            slope[j] += np.sqrt(wanted - least) * rng.standard_normal()
    ridge = constants[1] / eta if constants[1] > 0.0 else wanted
    for k in range(size):
        along = 0.0
        for j in range(size):
            along += known.axes[j, k] * slope[j]
        along *= 2 / (known.bends[k] + ridge)
        for j in range(size):
            position[j] += known.axes[j, k] * along


__all__ = [
    "half_drift",
    "half_thermostat",
    "hamiltonian",
    "langevin",
    "nothing_before",
    "rmsprop",
    "scoring",
    "thermostat",
]
