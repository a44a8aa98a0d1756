"""Kinds of noise on integer sums: what a release costs under each, and how it is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import sqrt
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.accounting import Budget, ComposedEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent, Event, calibrated
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.release import gaussian, laplace
from pymc_dp.release.sensitivity import SumSensitivity


class Noise(ABC):
    """One kind of independent discrete noise.

    Attributes
    ----------
    name, norm : str
        Of the noise, and of the sensitivity that it is measured against, in texts.
    """

    name: ClassVar[str]
    norm: ClassVar[str]

    @abstractmethod
    def check(self, delta: float) -> None:
        """Refuse a δ that does not fit, with an ArgumentError."""

    @abstractmethod
    def weight(self, sensitivity: SumSensitivity) -> float:
        """Return the sensitivity, in grid steps."""

    @abstractmethod
    def part(self, sensitivity: float) -> float:
        """Return a weight in the budget, such that sensitivities of any size get equal noise by it."""

    @abstractmethod
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Return the least noise of several integer vectors that together cost at most (ε, δ).

        Parameters
        ----------
        sensitivities : sequence of Sensitivity
        shares : sequence of float
            Weights of the vectors in the budget.
        """

    @abstractmethod
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
        """Return what one vector costs."""

    @abstractmethod
    def add(self, sums: Array, scale: float) -> Array:
        """Add noise to every entry. A private release."""

    @abstractmethod
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Array:
        """Draw noise for a simulation, never for a release."""

    @abstractmethod
    def deviation(self, scale: float) -> float:
        """Return the standard deviation of wide noise of this scale."""


@final
class Laplace(Noise):
    """Discrete Laplace noise: pure ε."""

    name = "discrete Laplace"
    norm = "Δ1"

    @override
    def check(self, delta: float) -> None:
        if delta > 0:
            raise ArgumentError(
                f"delta={delta:g} would buy nothing: discrete Laplace noise is pure ε. Use delta=0, or a release that "
                'uses a delta: Statistics(noise="gaussian") for counts, sums and linear regression, dp.Gradients() '
                "for any other likelihood."
            )

    @override
    def weight(self, sensitivity: SumSensitivity) -> float:
        return float(sensitivity.l1)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity

    @override
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        parts = Budget(epsilon).split(shares)
        return [
            laplace.calibrate(sensitivity.l1, part.epsilon)
            for sensitivity, part in zip(sensitivities, parts, strict=True)
        ]

    @override
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
        return DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity.l1, shifts=sensitivity.shifts)

    @override
    def add(self, sums: Array, scale: float) -> Array:
        return laplace.add_noise(sums, scale)

    @override
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Array:
        return laplace.discrete_laplace(rng, scale, size)

    @override
    def deviation(self, scale: float) -> float:
        return sqrt(2) * scale


@final
class Gaussian(Noise):
    """Discrete Gaussian noise: (ε, δ), δ > 0; less noise than Laplace's on long vectors."""

    name = "discrete Gaussian"
    norm = "Δ2"

    @override
    def check(self, delta: float) -> None:
        if delta == 0:
            raise ArgumentError(
                "Gaussian noise needs delta > 0, far below 1 / number of rows, for example delta=1e-6. Without a delta "
                'use Statistics(noise="laplace").'
            )

    @override
    def weight(self, sensitivity: SumSensitivity) -> float:
        return sqrt(sensitivity.l2_squared)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity**2

    @override
    def scales(
        self, sensitivities: Sequence[SumSensitivity], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Shares are of ρ."""
        like = ComposedEvent(
            events=tuple(
                self.event(sensitivity, sqrt(sensitivity.l2_squared / (2 * share)))
                for sensitivity, share in zip(sensitivities, shares, strict=True)
            )
        )
        found = calibrated(like, epsilon, delta)
        assert isinstance(found, ComposedEvent)
        return [part.scale for part in found.events if isinstance(part, DiscreteGaussianEvent)]

    @override
    def event(self, sensitivity: SumSensitivity, scale: float) -> Event:
        return DiscreteGaussianEvent(scale=scale, l2_squared=sensitivity.l2_squared, shifts=sensitivity.shifts)

    @override
    def add(self, sums: Array, scale: float) -> Array:
        return gaussian.add_noise(sums, scale)

    @override
    def simulated(self, rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Array:
        return gaussian.discrete_gaussian(rng, scale, size)

    @override
    def deviation(self, scale: float) -> float:
        return scale


NOISES: dict[str, Noise] = {"laplace": Laplace(), "gaussian": Gaussian()}

__all__ = ["NOISES", "Noise"]
