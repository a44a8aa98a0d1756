"""Kinds of discrete noise: how much of each a budget needs, and what it costs; the kernel draws it and charges it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Protocol, final, override

from pymc_dp import _validate
from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.calibrate import calibrated
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events import ComposedEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from pymc_dp.kernel.noise import GAUSSIAN, LAPLACE, mechanism


class Moved(Protocol):
    """How far one row moves a vector of whole numbers, at most: in L1, in squared L2, and place by place if known."""

    @property
    def l1(self) -> int:
        """In steps of the grid."""

    @property
    def l2_squared(self) -> int:
        """In squared steps."""

    @property
    def shifts(self) -> tuple[int, ...] | None:
        """The worst case coordinate by coordinate, where every worst case is a permutation of one."""


class NoiseKind(ABC):
    """One kind of independent discrete noise, as it is planned.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
        As in `Statistics`, and in records.
    name, norm : str
        Of the noise, and of the sensitivity that it is measured against, in texts.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    norm: ClassVar[str]

    @abstractmethod
    def check(self, delta: float) -> None:
        """Refuse a δ that does not fit, with an ArgumentError."""

    @abstractmethod
    def weight(self, sensitivity: Moved) -> float:
        """Return the sensitivity, in grid steps."""

    @abstractmethod
    def part(self, sensitivity: float) -> float:
        """Return a weight in the budget, such that sensitivities of any size get equal noise by it."""

    @abstractmethod
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        """Return the least noise of several integer vectors that together cost at most (ε, δ).

        Parameters
        ----------
        sensitivities : sequence of Moved
        shares : sequence of float
            Weights of the vectors in the budget.
        """

    @abstractmethod
    def event(self, sensitivity: Moved, scale: float) -> Event:
        """Return what one vector costs."""

    @abstractmethod
    def deviation(self, scale: float) -> float:
        """Return the standard deviation of wide noise of this scale."""


@final
class _Laplace(NoiseKind):
    """Discrete Laplace noise: pure ε."""

    kind, name, norm = LAPLACE.kind, LAPLACE.name, "Δ1"

    @override
    def check(self, delta: float) -> None:
        if delta > 0:
            raise ArgumentError(
                f"delta={delta:g} would buy nothing: discrete Laplace noise is pure ε. Use delta=0, or a release that "
                'uses a delta: Statistics(noise="gaussian") for counts, sums and linear regression, dp.Gradients() '
                "for any other likelihood."
            )

    @override
    def weight(self, sensitivity: Moved) -> float:
        return float(sensitivity.l1)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity

    @override
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
    ) -> list[float]:
        parts = Budget(epsilon).split(shares)
        return [
            laplace_scale(sensitivity.l1, part.epsilon) for sensitivity, part in zip(sensitivities, parts, strict=True)
        ]

    @override
    def event(self, sensitivity: Moved, scale: float) -> Event:
        return DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity.l1, shifts=sensitivity.shifts)

    @override
    def deviation(self, scale: float) -> float:
        return sqrt(2) * scale


@final
class _Gaussian(NoiseKind):
    """Discrete Gaussian noise: (ε, δ), δ > 0; less noise than Laplace's on long vectors."""

    kind, name, norm = GAUSSIAN.kind, GAUSSIAN.name, "Δ2"

    @override
    def check(self, delta: float) -> None:
        if delta == 0:
            raise ArgumentError(
                "Gaussian noise needs delta > 0, far below 1 / number of rows, for example delta=1e-6. Without a delta "
                'use Statistics(noise="laplace").'
            )

    @override
    def weight(self, sensitivity: Moved) -> float:
        return sqrt(sensitivity.l2_squared)

    @override
    def part(self, sensitivity: float) -> float:
        return sensitivity**2

    @override
    def scales(
        self, sensitivities: Sequence[Moved], shares: Sequence[float], epsilon: float, delta: float
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
    def event(self, sensitivity: Moved, scale: float) -> Event:
        return DiscreteGaussianEvent(scale=scale, l2_squared=sensitivity.l2_squared, shifts=sensitivity.shifts)

    @override
    def deviation(self, scale: float) -> float:
        return scale


NOISE_KINDS: dict[str, NoiseKind] = {one.kind: one for one in (_Laplace(), _Gaussian())}


def laplace_scale(sensitivity: int, epsilon: float) -> float:
    """Return the least float scale at which a shift of `sensitivity` costs at most `epsilon`.

    Parameters
    ----------
    sensitivity : int
        Largest L1 sensitivity of the integer vector, >= 1.
    epsilon : float

    Notes
    -----
    The float nearest to ``sensitivity / epsilon`` is too small half of the time; it is raised until the accountants
    (who read `epsilon` as a decimal), binary arithmetic and OpenDP's own privacy map agree that it costs no more.

    Examples
    --------
    >>> laplace_scale(1, 0.1)
    10.0
    """
    sensitivity, exact = _validate.integer("sensitivity", sensitivity), decimal(_validate.epsilon(epsilon))
    try:
        scale = float(sensitivity / exact)
    except OverflowError:
        raise ArgumentError(f"epsilon {epsilon} is too small for sensitivity {sensitivity}.") from None
    least = min(exact, Fraction(epsilon))
    while sensitivity / Fraction(scale) > least or mechanism(LAPLACE, scale).map(sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


__all__ = ["NOISE_KINDS", "Moved", "NoiseKind", "laplace_scale"]
