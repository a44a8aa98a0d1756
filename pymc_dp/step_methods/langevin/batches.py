"""Random batches of rows: how they are drawn, and what noise on the sum of their clipped gradients costs.

The public numbers of a chain of gradients: step sizes, noise, and the temperature of each step.

Step sizes of stochastic-gradient samplers: one number for every step of a chain, all of them public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, final

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import Budget, SelfComposedEvent
from pymc_dp.accounting.calibrate import with_noise
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.accounting.events import SubsampledGaussianEvent

Sampling = Literal["poisson", "without_replacement"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "without_replacement")
USUAL_SIZE = 256
"""Rows per batch where nothing is asked for, and there are as many."""


def batch_size(asked: int | None, population: int) -> int:
    """Return the rows per batch: what was asked for, or the usual number, or all of fewer rows; both are public."""
    return min(USUAL_SIZE, population) if asked is None else asked


def require_delta(budget: Budget, sampler: str, instead: str = "") -> None:
    """Refuse a budget that no Gaussian mechanism keeps; `instead` says what to do without a delta."""
    if budget.delta == 0:
        raise ArgumentError(
            f"{sampler} adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below 1 / number "
            f"of rows{instead}."
        )


@final
@dataclass(frozen=True, kw_only=True)
class Batches:
    """Batches of one table, all drawn alike; every number here is public.

    Attributes
    ----------
    size : int
        Rows per batch, b: exactly so many without replacement, expected in a Poisson batch.
    population : int
        N: number of rows, or ``n_max`` where that is private.
    sampling : {"poisson", "without_replacement"}
    neighbours : {"replace", "add_remove"}
    sampler : str
        Name of the step method, for texts.
    """

    size: int
    population: int
    sampling: Sampling
    neighbours: Neighbours
    sampler: str

    def __post_init__(self) -> None:
        if self.size > self.population:
            what = "n_max" if self.neighbours == "add_remove" else "the number of rows"
            raise ArgumentError(
                f"batch_size={self.size} is above {what}, {self.population}. Give {self.sampler} a smaller batch_size."
            )
        if self.neighbours == "add_remove" and self.sampling != "poisson":
            raise ArgumentError(
                f"sampling={self.sampling!r} cannot be used with neighbours='add_remove': a batch of fixed size "
                "depends on the number of rows, and no curve is proved. Use sampling='poisson', or "
                "neighbours='replace'."
            )

    @property
    def rate(self) -> float:
        """Probability that a row is in a batch."""
        return self.size / self.population

    @property
    def scale(self) -> float:
        """Sum over all rows for a sum over a batch: by the expected size, never the realised one."""
        return self.population / self.size

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of accountants."""
        drawn: dict[str, Any] = {"sample_rate": self.rate}
        if self.sampling == "without_replacement":
            drawn = {"population": self.population, "batch_size": self.size}
        return {"sampling": self.sampling, "neighbours": self.neighbours, **drawn}

    def deviation(self, multiplier: float, clip_norm: float) -> float:
        """Noise on an estimated gradient, of a sum that gets noise of so many clip norms: z C N / b."""
        return multiplier * clip_norm * self.population / self.size

    def multiplier(self, sigma: float, clip_norm: float) -> float:
        """Noise on the sum of clipped gradients over the clip norm, rounded down; `sigma` is that on an estimate."""
        return sigma / self.deviation(1.0, clip_norm) * (1 - 1e-12)

    def event(self, multiplier: float, steps: int) -> SelfComposedEvent:
        """Return what so many steps cost, each with so much noise."""
        like = SubsampledGaussianEvent(noise_multiplier=1.0, **self.arguments)
        return SelfComposedEvent(event=with_noise(like, multiplier), count=steps)

    def __str__(self) -> str:
        return {
            "poisson": f"Poisson, {self.size} of {self.population} rows expected",
            "without_replacement": f"{self.size} of {self.population} rows without replacement",
        }[self.sampling]


LARGEST_STABLE = 0.25
"""Default steps stay below this over N C²: where gradients have norm C, the log-likelihood bends by about N C²."""
HOT = 1.01
"""Temperature above which a step is reported."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """Public numbers of a chain, fixed before a row is read.

    Attributes
    ----------
    sizes : (steps,) array
        η of every step.
    sigma : float
        Standard deviation of the noise on every entry of the estimated gradient.
    temperature : (steps,) array
        Temperature that this noise alone would give a step; above 1 where it is more than the dynamics asks for.
    products : float
        Standard deviation of the noise on products of gradients, where they are released: on a diagonal entry of their
        sum over the square of the clip norm; or on one of a batch's covariance, times the batch size, over the same.
    centred : bool
        Whether it is the latter.
    """

    sizes: Array
    sigma: float
    temperature: Array
    products: float = 0.0
    centred: bool = False

    @property
    def shown(self) -> str:
        """First and last step size."""
        first, last = self.sizes[0], self.sizes[-1]
        return f"{last:.6g}" if first == last else f"{first:.6g}, falling to {last:.6g}"

    @property
    def warmth(self) -> tuple[tuple[str, str], ...]:
        """How far noise that protects the rows goes beyond what the dynamics asks for, as facts of the record."""
        hot = np.flatnonzero(self.temperature > HOT)
        if not hot.size:
            return ()
        until, steps = int(hot[-1]) + 1, len(self.temperature)
        text = f"up to {self.temperature.max():.3g}, above that of the target until step {until} of {steps}"
        return (("temperature of the noise", text),)


def algorithm_two(lipschitz: float, steps: int, epsilon: float, delta: float) -> float:
    """Return the standard deviation of algorithm 2's noise on an estimated gradient, whatever the step size.

    ``√(128 N T / τ · L² / ε² · log(2.5 N T / (τ δ)) · log(2 / δ))``, where N T / τ is the number of steps.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 2. Its proof has 32 where 16 follows, so that it claims √2 times the ε that
    it shows.

    Examples
    --------
    >>> round(algorithm_two(1.0, 32561, 1.0, 1e-5) * 180 / 32561, 1)  # noise multiplier of a batch of 180 of 32561
    188.4
    """
    return math.sqrt(128 * steps * math.log(2.5 * steps / delta) * math.log(2 / delta)) * lipschitz / epsilon


SMALLEST, LARGEST = 1e-100, 1e100
"""Between them squares of numbers are floats, so that no norm is lost."""


class Limits(NamedTuple):
    """What is known about a chain before its step sizes are chosen; none of it depends on a row.

    Attributes
    ----------
    natural : float
        η above which the noise that protects the rows is more than the dynamics asks for.
    stable : float
        η above which the dynamics need not stay near a posterior as narrow as the clip norm allows.
    """

    natural: float
    stable: float


class StepSizes(Protocol):
    """A rule for the step sizes of a chain."""

    def sizes(self, steps: int, limits: Limits) -> Array:
        """Return η of every step of a chain, tuning included: (steps,)."""


@dataclass(frozen=True)
class Constant:
    """The same η for all steps.

    Parameters
    ----------
    size : float, optional
        None (default): the largest that is natural and stable.
    """

    size: float | None = None

    def sizes(self, steps: int, limits: Limits) -> Array:
        """Return the same number so many times."""
        return np.full(steps, min(limits) if self.size is None else self.size)


@dataclass(frozen=True)
class PolynomialDecay:
    """Step sizes ``η_t = max(least, first (1 + t / offset)^-power)``, t = 0, 1, ...

    The first steps go far, at a higher temperature, from the noise that protects the rows; the last ones are small
    enough to sample from it. No step is larger than the largest stable one.

    Parameters
    ----------
    first : float, optional
        η of the first step. None (default): the largest stable one.
    least : float, optional
        η below which steps do not fall. None (default): the largest natural one, beyond which nothing is gained.
    offset : float
        Steps after which the decay begins to show.
    power : float
        γ, in (0, 1].

    References
    ----------
    Welling, Teh (2011), section 3; Wang, Fienberg, Smola (2015), section 4.1.

    Examples
    --------
    >>> PolynomialDecay(first=1e-3, power=1.0).sizes(3, Limits(natural=2e-4, stable=1.0)).tolist()
    [0.001, 0.0005, 0.0003333333333333333]
    """

    first: float | None = None
    least: float | None = None
    offset: float = 1.0
    power: float = 0.55

    def __post_init__(self) -> None:
        for name in ("first", "least"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        positive("offset", self.offset)
        if not 0 < _validate.number("power", self.power) <= 1:
            raise ArgumentError(f"power must lie in (0, 1], got {self.power}.")

    def sizes(self, steps: int, limits: Limits) -> Array:
        """Return falling numbers."""
        first = limits.stable if self.first is None else self.first
        least = limits.natural if self.least is None else self.least
        fallen = first * (1 + np.arange(steps) / self.offset) ** -self.power
        return np.minimum(np.maximum(fallen, least), limits.stable)


@dataclass(frozen=True)
class AlphaPhase:
    """Step sizes ``η_t = natural α T / t``, t = 1, ..., T: at too high a temperature for α T steps, at 1 after them.

    In step α T the noise that protects the rows is what the dynamics asks for; later steps add noise of their own. No
    step is larger than the largest stable one. Draws are worth keeping after the first α T steps: ``tune`` should be at
    least that many.

    Parameters
    ----------
    alpha : float
        In (0, 1).

    References
    ----------
    Wang, Fienberg, Smola (2015), section 4.1, "α-phase transition".

    Examples
    --------
    >>> AlphaPhase(0.5).sizes(4, Limits(natural=0.1, stable=1.0)).tolist()
    [0.2, 0.1, 0.06666666666666667, 0.05]
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < _validate.number("alpha", self.alpha) < 1:
            raise ArgumentError(f"alpha must lie in (0, 1), got {self.alpha}.")

    def sizes(self, steps: int, limits: Limits) -> Array:
        """Return numbers that fall as 1 / t."""
        return np.minimum(limits.natural * self.alpha * steps / np.arange(1, steps + 1), limits.stable)


def step_sizes(given: object) -> StepSizes:
    """Return the rule that an argument names."""
    if isinstance(given, Constant | PolynomialDecay | AlphaPhase):
        return given
    if given is None or (isinstance(given, int | float) and not isinstance(given, bool)):
        return Constant(None if given is None else positive("step_size", given))
    raise ArgumentError(
        f"step_size must be a number > 0, dp.schedules.PolynomialDecay(...), dp.schedules.AlphaPhase(...) or None, "
        f"got {_validate.shown(given)}."
    )


def positive(name: str, value: object) -> float:
    """Return a number far from the ends of what floats hold."""
    result = _validate.number(name, value)
    if not SMALLEST < result < LARGEST:
        raise ArgumentError(f"{name} must lie in ({SMALLEST:g}, {LARGEST:g}), got {result}.")
    return result


__all__ = [
    "LARGEST",
    "LARGEST_STABLE",
    "SAMPLINGS",
    "SMALLEST",
    "AlphaPhase",
    "Batches",
    "Constant",
    "Course",
    "Limits",
    "PolynomialDecay",
    "Sampling",
    "StepSizes",
    "algorithm_two",
    "batch_size",
    "positive",
    "require_delta",
    "step_sizes",
]
