"""Stochastic gradient Fisher scoring: a mean of released information, and steps that it scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.noised_steps import LEAST_SPARE, nothing_before

REFRESHED = 1.02
"""Ratio of the numbers of steps between which axes are found anew."""


class Memory(NamedTuple):
    """Views of the numbers that a chain of d parameters remembers; all are functions of what was released.

    Attributes
    ----------
    mean : (d, d) array
        Information Î of a row.
    sum_of : (d, d) array
        Sum of what the steps since then have released of it.
    precision : (d, d) array
        Of the prior: public.
    axes : (d, d) array
        Columns, along which G is diagonal.
    bends : (d,) array
        G along its axes, without the ridge; infinite until something is known, so that a chain does not move.
    steps : (2,) array
        Steps in the mean, and in the sum.
    """

    mean: Array
    sum_of: Array
    precision: Array
    axes: Array
    bends: Array
    steps: Array

    @property
    def due(self) -> int:
        """Steps that are made before axes are found anew: a number that depends on the number of steps alone."""
        begun = float(self.steps[0])
        return max(1, math.floor(begun * (REFRESHED - 1))) - int(self.steps[1])


def views(memory: Array, size: int) -> Memory:
    """Return the parts of a vector of numbers."""
    squares = memory[: 4 * size * size].reshape((4, size, size))
    return Memory(squares[0], squares[1], squares[2], squares[3], memory[-size - 2 : -2], memory[-2:])


def nothing_known(precision: Array) -> Array:
    """Return what a chain remembers before its first step."""
    size = len(precision)
    memory = np.zeros(4 * size * size + size + 2)
    found = views(memory, size)
    found.precision[:], found.axes[:], found.bends[:] = precision, np.eye(size), np.inf
    return memory


def positive(matrix: Array) -> Array:
    """Return the positive semidefinite matrix that is nearest to a symmetric one, in the Frobenius norm."""
    values, axes = np.linalg.eigh(matrix)
    found: Array = (axes * np.maximum(values, 0.0)) @ axes.T
    return found


def learn(memory: Memory, *, weight: float, ahead: float, each_positive: bool) -> None:
    """Mix what was released since the last time into the mean, and find the axes and bends of ``weight Î + precision``.

    Parameters
    ----------
    weight : float
    ahead : float
        Step t has a weight in the mean that grows as t to this power: at 0 all have the same.
    each_positive : bool
        Whether what is mixed in is made positive first, as algorithm 4 does, beside the mean itself.
    """
    steps = memory.steps.sum()
    share = 1 - (memory.steps[0] / steps) ** (1 + ahead)
    fresh = memory.sum_of / memory.steps[1]
    memory.mean[:] += share * ((positive(fresh) if each_positive else fresh) - memory.mean)
    memory.sum_of[:], memory.steps[:] = 0.0, (steps, 0)
    values, memory.axes[:] = np.linalg.eigh(weight * positive(memory.mean) + memory.precision)
    memory.bends[:] = np.maximum(values, 0.0)


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


@final
@dataclass(frozen=True, kw_only=True)
class Scoring:
    """θ + 2 G⁻¹ (gradient + noise of variance `asked` / η at least).

    Attributes
    ----------
    asked : float
        Variance of the least noise on a gradient, times η.
    papers : bool
        Whether G has a ridge of four times that, and not of the noise.
    """

    asked: float
    papers: bool

    @property
    def update(self) -> tuple[Any, Any]:
        """What moves a chain before and after the gradient is taken."""
        return nothing_before, scoring

    @property
    def constants(self) -> tuple[float, ...]:
        """Variance of the least noise and the ridge, each times η."""
        return self.asked, 4 * self.asked if self.papers else 0.0

    def variance(self, step_size: float) -> float:
        """Return (η s)², where s is the least noise on a gradient."""
        return self.asked * step_size


__all__ = ["REFRESHED", "Memory", "Scoring", "learn", "nothing_known", "positive", "scoring", "views"]
