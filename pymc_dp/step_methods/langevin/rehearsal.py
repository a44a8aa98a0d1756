"""A priced stochastic-gradient sampler on made-up rows, for simulations: nothing is paid, and no row is seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.batches import Limits
from pymc_dp.step_methods.langevin.start import GivenStart


def changed[Step: StochasticGradient](step: Step, **settings: Any) -> Step:
    """Return a copy of a priced step with another `clip_norm` or `step_size`, for no more than its price.

    Raises
    ------
    ArgumentError
        Where the step size has too little noise.
    """
    other = copy.copy(step)
    other.settings = {**step.settings, **settings}
    other._settle(step.funding)
    return other


def limits(step: StochasticGradient) -> Limits:
    """Return the largest step size that has enough noise, and the largest stable one."""
    return Limits(natural=step.natural(step._deviation(step._least)), stable=step._stable)


def on_rows[Step: StochasticGradient](step: Step, rows: tuple[Array, ...], rng: np.random.Generator, tune: int) -> Step:
    """Return a copy that holds made-up rows in place of any others, its chain about to begin at given values.

    Parameters
    ----------
    step : StochasticGradient
        Priced.
    rows : tuple of (n_rows, ...) arrays
        One for each column of the table.
    rng : numpy.random.Generator
    tune : int
        Draws of tuning.
    """
    other = copy.copy(step)
    other._rows, other.start = tuple(map(step._held, rows)), GivenStart()
    other.generator, other.count, other.tuning_steps, other.stream = rng, 0, tune * step.steps_per_draw, 0
    other._start(Rehearsal(step.neighbours))
    return other


def slope(step: StochasticGradient, rows: tuple[Array, ...]) -> Callable[[Array], Array]:
    """Return the gradient of the log-posterior given made-up rows, unclipped and without noise, as a function.

    Rows whose gradient is not finite add nothing.
    """
    held = tuple(map(step._held, rows))

    @np.errstate(all="ignore")
    def at(position: Array) -> Array:
        total = step.gradients.of_prior(position)
        for each in step.gradients.of_rows(held, position):
            total += each[np.isfinite(each).all(axis=1)].sum(axis=0)
        return total

    return at


__all__ = ["changed", "limits", "on_rows", "slope"]
