"""Steps that follow noised gradients of batches: compiled, and handed to the kernel, which does not trust them.

A sampler has two functions, before the gradient is taken and after. `memory` is what a chain remembers beside its
position, `eta` the step size, `sigma` the standard deviation of the noise that an entry of `slope` already holds,
`constants` those of the sampler. Where it asks for them, the products of the rows' gradients stand behind the gradient,
a matrix row by row. Nothing here sees a row: the rows' only way in is `slope`, all of which was noised and paid for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np

from pymc_dp.inspection.rows import Array

LEAST_SPARE = 1e-9
"""Share of the wanted noise below which what is missing is rounding."""


class Dynamics(Protocol):
    """How a chain follows noised gradients."""

    @property
    def update(self) -> tuple[Any, Any]:
        """Compiled functions that move a chain before and after the gradient is taken."""

    @property
    def constants(self) -> tuple[float, ...]:
        """Numbers that these take."""

    def variance(self, step_size: float) -> float:
        """Return the variance of the noise that a step asks for; proportional to the step size.

        What protects the rows may be all of it.
        """


@numba.njit(error_model="numpy", inline="always")
def spare(wanted: float, eta: float, sigma: float) -> float:
    """Return the standard deviation that is still missing of the variance `wanted` in a step."""
    missing = wanted - (eta * sigma) ** 2
    return np.sqrt(missing) if missing > LEAST_SPARE * wanted else 0.0


@numba.njit(error_model="numpy", cache=True)
def nothing_before(position: Any, memory: Any, eta: float, constants: Any) -> None:
    """Take the gradient where the chain is."""


class Followed(NamedTuple):
    """What compiled steps read and write: functions of what was released, and public numbers.

    It is handed over as a tuple without names, for which the loop over steps is kept on disk.

    Attributes
    ----------
    position : (size,) array
    memory : array
        What the dynamics remembers.
    sizes : (steps,) array
        Step sizes.
    constants : tuple of float
        Of the dynamics.
    sigma : float
        Standard deviation of the noise on every entry of an estimated gradient.
    scale, share : float
        What a sum of gradients, and one of products, is multiplied by.
    tuning : bool
    slope : array
        Scratch.
    rng : numpy.random.Generator
        Of the noise that the dynamics adds.
    """

    position: Array
    memory: Array
    sizes: Array
    constants: tuple[float, ...]
    sigma: float
    scale: float
    share: float
    tuning: bool
    slope: Array
    rng: np.random.Generator


@lru_cache(maxsize=64)
def asking(before: Any) -> Any:
    """Return what moves a chain before the gradient is taken, and says where it is taken."""

    @numba.njit(error_model="numpy")
    def ask(state, step, parameters):  # type: ignore[no-untyped-def]
        chain = Followed(*state)
        before(chain.position, chain.memory, chain.sizes[step], chain.constants)
        for j in range(parameters.size):
            parameters[j] = chain.position[j]

    return ask


@lru_cache(maxsize=64)
def taking(after: Any, prior: Any) -> Any:
    """Return what makes an estimate of the gradient of the log-posterior of a noised sum, and follows it."""

    @numba.njit(error_model="numpy")
    def take(state, step, released):  # type: ignore[no-untyped-def]
        chain = Followed(*state)
        (of_prior,) = prior(chain.position)
        size, slope = chain.position.size, chain.slope
        for j in range(size):
            slope[j] = of_prior[j] + chain.scale * released[j]
        for j in range(size, released.size):
            slope[j] = chain.share * released[j]
        sizes, constants = chain.sizes, chain.constants
        after(chain.position, chain.memory, sizes[step], chain.sigma, constants, slope, chain.tuning, chain.rng)

    return take


__all__ = ["LEAST_SPARE", "Dynamics", "Followed", "asking", "nothing_before", "spare", "taking"]
