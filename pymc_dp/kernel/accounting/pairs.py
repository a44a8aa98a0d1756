"""Pairs of distributions P, Q whose losses log(dP/dQ) dominate those of a mechanism on two neighbours.

Of discrete Laplace noise, whose losses are multiples of one; of two normal distributions, all of which compose into
one; and any other, continuous or with many losses, which is cut in cells. Each event says which are its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final, override

import numpy as np
import scipy  # its parts are imported when first used
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TAIL = 8.5  # standard deviations, beyond which lies less than 1e-17; that counts as an infinite loss
_MOST_ATOMS = 2**14  # of one pair; larger shifts are coarsened
_ROUNDING = 1e-14  # of a few operations, relative


class LaplacePair(NamedTuple):
    """Discrete Laplace noise of scale 1 / `unit`, against itself moved by `shift`.

    It is its own mirror image (reflect k to shift - k, which swaps the two distributions), so the order of two
    neighbours and the sign of each sensitivity do not matter and one direction is the whole of it. A pure loss e is
    dominated by randomised response, which is the pair of shift 1 and unit loss e (see `atoms`).
    """

    unit: Fraction
    shift: int

    def coarse(self) -> LaplacePair:
        """Return a pair of at most 2^14 steps that dominates it, its loss larger by less than 1 / 2^14 of it.

        Discrete Laplace noise divides: with r = exp(-1 / scale), noise of `scale` is m times noise of scale / m plus
        U - V, where U and V are independent on 0..m-1 with P(j) proportional to r^j. (Generating functions:
        (1-r)/(1-rz) = (1-r^m)/(1-(rz)^m) * (1-r)/(1-r^m) * sum_j (rz)^j, times the same with 1/z.)
        So a sensitivity by m s under `scale` is post-processing of a sensitivity by s under scale / m.
        """
        step = -(-self.shift // _MOST_ATOMS)
        return LaplacePair(self.unit * step, -(-self.shift // step))

    def atoms(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the losses, in units, and their probabilities under the noise that is not moved.

        At k the loss is (|k - shift| - |k|) * unit: `shift` units for k <= 0, shift - 2k between, -shift for
        k >= shift. With r = exp(-unit) and P(k) = (1-r) / (1+r) r^|k|, the masses are 1 / (1+r), P(k) and
        r^shift / (1+r). At shift 1 these are +-unit with odds e^unit: randomised response.
        """
        unit = float(self.unit)
        inner = np.arange(1, self.shift)
        norm = 1 + math.exp(-unit)
        inside = -math.expm1(-unit) * np.exp(-unit * inner)
        masses = np.concatenate([[1.0], inside, [math.exp(-unit * self.shift)]]) / norm
        return np.concatenate([[self.shift], self.shift - 2 * inner, [-self.shift]]).astype(np.int64), masses

    def renyi_divergence(self, order: float) -> float:
        """Return log sum P^a Q^(1-a) / (a-1) over the atoms."""
        if self.unit * self.shift > 100:
            return math.inf
        pair = self.coarse()
        losses, masses = pair.atoms()
        logs = (order - 1) * float(pair.unit) * losses
        largest = float(logs.max())
        total = largest + math.log(float(masses @ np.exp(logs - largest)))
        return (total + 10 * _ROUNDING * (1 + abs(largest))) / (order - 1)


class Normal(NamedTuple):
    """N(0, 1) against N(sqrt(2 rho), 1), or what differs from them by factors e^excess and a mass `tail`."""

    rho: Fraction
    excess: Fraction = Fraction(0)
    tail: Fraction = Fraction(0)


class ContinuousPair(ABC):
    """Two distributions P, Q with so many losses log(dP/dQ) that they are cut in cells. Losses are those under P."""

    @property
    def symmetric(self) -> bool:
        """Whether Q against P has the same distribution of losses as P against Q."""
        return True

    @property
    def unit(self) -> Fraction:
        """A loss of which all others are multiples; 0 where there is none."""
        return Fraction(0)

    @property
    @abstractmethod
    def least(self) -> float:
        """Least loss but for a tail that is rounded up to it."""

    @property
    @abstractmethod
    def greatest(self) -> float:
        """Greatest loss but for a tail that counts as infinite."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """About the mean square of the loss; it steers only how fine the grid is."""

    @abstractmethod
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        """Return P and Q of the losses below the first of `cuts`, between each two, and above the last."""


@final
@dataclass(frozen=True)
class Shift(ContinuousPair):
    """N(0, 1) against N(`mu`, 1). The loss is N(mu^2 / 2, mu^2) under P and N(-mu^2 / 2, mu^2) under Q.

    With an `excess` P is multiplied by its exponential and Q divided by it, so that every loss is larger by 2 excess;
    a mass `tail` of infinite loss is added. Such a pair dominates what is only nearly normal.
    """

    mu: float
    excess: float = 0.0
    tail: float = 0.0

    @property
    @override
    def least(self) -> float:
        return -self.mu * (TAIL + self.mu / 2) + 2 * self.excess

    @property
    @override
    def greatest(self) -> float:
        return self.mu * (TAIL + self.mu / 2) + 2 * self.excess

    @property
    @override
    def variance(self) -> float:
        return self.mu**2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        cuts, factor = cuts - 2 * self.excess, math.exp(self.excess)
        p = normal_masses(cuts, self.mu**2 / 2, self.mu) * factor
        p[-1] += self.tail
        return p, normal_masses(cuts, -(self.mu**2) / 2, self.mu) / factor


Pair = LaplacePair | Normal | ContinuousPair


def between(cuts: Floats, losses: Floats, slack: float, *masses: Floats) -> list[Floats]:
    """Add up masses of single losses below, between and above `cuts`.

    A loss that rounding may have put below a cut counts as one above it, which `loss_grid` then moves up to it.
    """
    cells = np.searchsorted(cuts, losses + slack, side="right")
    return [np.bincount(cells, weights=held, minlength=len(cuts) + 1) for held in masses]


def normal_masses(cuts: Floats, mean: float, std: float) -> Floats:
    """Return the masses of N(mean, std^2) below, between and above `cuts`, each exact to its own size."""
    z = (cuts - mean) / std
    low, high = np.concatenate([[-np.inf], z]), np.concatenate([z, [np.inf]])
    return np.asarray(
        np.where(
            low > 0,
            scipy.special.ndtr(-low) - scipy.special.ndtr(-high),
            scipy.special.ndtr(high) - scipy.special.ndtr(low),
        )
    )


__all__ = [
    "TAIL",
    "ContinuousPair",
    "Floats",
    "LaplacePair",
    "Normal",
    "Pair",
    "Shift",
    "between",
    "normal_masses",
]
