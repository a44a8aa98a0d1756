"""Step sizes of stochastic-gradient samplers: one number for every step of a chain, all of them public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array

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
    "SMALLEST",
    "AlphaPhase",
    "Constant",
    "Limits",
    "PolynomialDecay",
    "StepSizes",
    "positive",
    "step_sizes",
]
