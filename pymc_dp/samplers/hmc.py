"""Hamiltonian Monte Carlo: noised gradients along a trajectory, and a noised bit that accepts its end.

What a row may do (`Specification`), how much noise a budget asks for (`Priced`), and one chain (`Chain`), whose
gradients and bits the kernel draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytensor
from pymc import Model
from pytensor.graph.replace import clone_replace

from pymc_dp.accounting import Budget, ComposedEvent, Event, PenaltyBitEvent, gaussian_multiplier
from pymc_dp.accounting.calibrate import least_noise
from pymc_dp.inspection.interpreted import start_of
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Kernel, RowMap
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.accounting.totals import total_epsilon
from pymc_dp.kernel.sums import sum_event
from pymc_dp.samplers.row_ratio import Place, RowRatio
from pymc_dp.samplers.rows import ModelRows

MOST_NOISE = 3.0
"""Standard deviation of the noise on a log ratio from which the end of a trajectory is refused unseen."""
SPREAD = 1.2
"""The same, at which about half of all trajectories are accepted."""
SHARE = 2.0
"""Length of a first trajectory over 1 / (clip norm √rows), which posterior standard deviations are seldom below."""
ROOM = 1 + 1e-15
"""Room for the rounding of a multiplier, relative."""


class Slopes:
    """Gradients per unit of each value: of a row's log-likelihood, as the kernel takes it, and of the log prior.

    Parameters
    ----------
    rows : ModelRows
    prior_model : pymc.Model
    units : (n_values,) array

    Attributes
    ----------
    slope : Variable
        Gradient of one row at a state.

    Raises
    ------
    UnsupportedModelError
        If the log-likelihood has no gradient, or, on compiling, if the kernel does not take its graph.
    """

    def __init__(self, rows: ModelRows, prior_model: Model, units: Array) -> None:
        self._rows, self._prior_model, self._units = rows, prior_model, units
        self.slope = rows.slope() if (units == 1).all() else rows.slope() * units
        self._compiled: tuple[RowMap | None, Any] = None, None

    @property
    def of_row(self) -> RowMap:
        """Gradient of one row at a state."""
        row_map, prior = self._compiled
        if row_map is None:
            row_map = self._rows.row_map(self.slope, [self._rows.at])
            self._compiled = row_map, prior
        return row_map

    def of_prior(self, values: Array) -> Array:
        """Gradient of the log prior at a state, Jacobians included."""
        row_map, prior = self._compiled
        if prior is None:
            start, values_of, at = start_of(self._prior_model), self._prior_model.value_vars, self._rows.at
            parts = dict(parts_of(at, values_of, [np.shape(start[str(value.name)]) for value in values_of]))
            density = clone_replace([frozen_shared(self._prior_model.logp(), ())], parts, rebuild_strict=False)[0]
            slope = pytensor.grad(density, at, disconnected_inputs="ignore", return_disconnected="zero")
            prior = pytensor.function([at], slope * self._units, trust_input=True, on_unused_input="ignore")
            self._compiled = row_map, prior
        return np.array(prior(values))

    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions behind: another process makes its own."""
        return {**vars(self), "_compiled": (None, None)}


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What one row may do, and what a step is.

    Attributes
    ----------
    clip_norm : float
        Greatest norm of one row's gradient, per unit of each value.
    clamp : float
        The same of a log-likelihood ratio, per unit of distance.
    size : int
        Values of a state.
    sense : {1, 2}
        Rows in which neighbours differ: one goes and another comes (2), or one does either.
    n_leapfrog : int
    gradient_share : float
        Of the budget.
    """

    clip_norm: float
    clamp: float
    size: int
    sense: int
    n_leapfrog: int
    gradient_share: float

    def priced(self, budget: Budget, *, chains: int, steps: int) -> Priced:
        """Return the least noise of which so many steps of each chain are within a budget; its δ must be > 0."""
        gradients, bits = chains * self.evaluations(steps), chains * steps
        alone = gaussian_multiplier(budget.epsilon, budget.delta)
        plain = Priced(
            gradient=alone * math.sqrt(gradients / self.gradient_share),
            ratio=alone * math.sqrt(bits / (1 - self.gradient_share)),
            of=self,
        )
        return plain.times(_factor(plain, budget.epsilon, budget.delta, steps, chains))

    def evaluations(self, steps: int) -> int:
        """Return how many gradients one chain pays for: one at its start, and one per leapfrog step.

        The one at the end of a step is public, and is the first of the next.
        """
        return steps * self.n_leapfrog + 1


@dataclass(frozen=True, kw_only=True)
class Priced:
    """Noise of a chain's gradients and bits, the same at every step.

    Attributes
    ----------
    gradient : float
        Standard deviation of the noise of each entry of a gradient, over what neighbours move the gradient by.
    ratio : float
        That of the noise of a log ratio, over what neighbours move it by.
    of : Specification
    """

    gradient: float
    ratio: float
    of: Specification

    def times(self, factor: float) -> Priced:
        """Return the same with more noise, or less."""
        return Priced(gradient=self.gradient * factor, ratio=self.ratio * factor, of=self.of)

    @property
    def slope_event(self) -> Event:
        """What one gradient costs."""
        return sum_event(self.of.size, self.of.sense, "gaussian", self.gradient)

    @property
    def bit_event(self) -> Event:
        """What one bit costs."""
        return PenaltyBitEvent(ratio=1 / self.ratio, most_noise=MOST_NOISE)

    def parts(self, steps: int, chains: int = 1) -> tuple[Event, Event]:
        """Return what the bits and the gradients of so many steps cost."""
        bits, slopes = chains * steps, chains * self.of.evaluations(steps)
        return repeated(self.bit_event, bits), repeated(self.slope_event, slopes)

    def event(self, steps: int, chains: int) -> ComposedEvent:
        """Return what so many steps of each chain cost."""
        return ComposedEvent(events=self.parts(steps, chains))

    @property
    def gradient_noise(self) -> float:
        """Standard deviation of what is added to each entry of a sum of gradients."""
        return self.gradient * self.of.sense * self.of.clip_norm

    @property
    def farthest(self) -> float:
        """Distance in units beyond which the noise of a ratio lets few trajectories be accepted."""
        return SPREAD / (self.ratio * self.of.sense * self.of.clamp)

    def first_step(self, population: int) -> float:
        """Return a size of leapfrog steps to begin with, from public numbers.

        A trajectory of length T has momentum of norm √d: its end is about T √d away. Its noised gradients add about
        η σ √(L d) to the energy.
        """
        root = math.sqrt(max(self.of.size, 1))
        lengths = (
            SHARE / (self.of.clip_norm * math.sqrt(max(population, 1))),
            self.farthest / root,
            math.sqrt(self.of.n_leapfrog) / (self.gradient_noise * root),
        )
        return min(lengths) / self.of.n_leapfrog


@lru_cache(maxsize=256)
def _factor(plain: Priced, epsilon: float, delta: float, steps: int, chains: int) -> float:
    return least_noise(
        lambda factor: total_epsilon(plain.times(factor).event(steps, chains), delta).epsilon, epsilon, 1.0
    )


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


class State(NamedTuple):
    """A state, and the log density of the prior there, less kinetic energy."""

    values: Array
    prior: float


class Chain:
    """Gradients and bits of one chain, drawn in the kernel; it takes what pays for them with it when it begins.

    Parameters
    ----------
    priced : Priced
    steps : int
        That were paid for.
    slopes : Slopes
    ratio : RowRatio
        Of rows that were read.

    Attributes
    ----------
    used : dict of str to int
        Gradients and bits so far.

    Notes
    -----
    **Guarantee.** That of the kernel's operations `sum` and `penalty`: no gradient or bit costs more than was paid for
    the chain, whatever is computed here.
    """

    def __init__(self, priced: Priced, steps: int, slopes: Slopes, ratio: RowRatio) -> None:
        self._priced, self._steps, self._slopes, self._ratio = priced, steps, slopes, ratio
        self.used = {"gradients": 0, "bits": 0}
        ratio.begin(priced.parts(steps), self._pay)

    def _pay(self, kernel: Kernel) -> Grant:
        self._kernel, priced = kernel, self._priced
        self._grant = kernel.grant(priced.slope_event, priced.of.evaluations(self._steps))
        self._bits = kernel.grant(priced.bit_event, self._steps)
        return self._bits

    def take_again(self, used: dict[str, int]) -> None:
        """Take from what pays for this chain what it had used where its state was saved."""
        for grant, count in ((self._grant, used["gradients"]), (self._bits, used["bits"])):
            for _ in range(count):
                grant.take(grant.event)
        self.used = dict(used)

    def slope(self, values: Array) -> Array:
        """Return a noised gradient of the log posterior; it is no number where a state is none."""
        if not np.isfinite(values).all():
            return np.full(len(values), np.nan)
        self.used["gradients"] += 1
        of = self._priced.of
        noised = self._kernel.sum(
            self._slopes.of_row,
            [values],
            of.size,
            bound=of.clip_norm,
            noise="gaussian",
            scale=self._priced.gradient,
            pay=self._grant,
        )
        return self._slopes.of_prior(values) + noised

    def goes(self, here: Place, start: Phase, there: Place, end: Phase) -> bool:
        """Draw whether a trajectory is accepted, by the penalty method; refuse it unseen where no row may go there."""
        if not math.isfinite(there.prior - end.kinetic):
            return False
        before, after = State(here.values, here.prior - start.kinetic), State(there.values, there.prior - end.kinetic)
        if not self._priced.ratio * self._ratio.reach(before, after) < MOST_NOISE:
            return False
        self.used["bits"] += 1
        noise = self._priced.ratio * ROOM
        return self._ratio.draw("penalty", before, after, 1.0, noise=noise, most_noise=MOST_NOISE)


__all__ = ["Chain", "Phase", "Priced", "Slopes", "Specification", "leapfrog"]
