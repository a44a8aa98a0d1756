"""A kind of event of one's own: one class, which the package knows from then on. No file of the package changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final, override

import numpy as np

from pymc_dp.accounting.events import Event
from pymc_dp.accounting.pairs import ContinuousPair, Floats, between
from pymc_dp.errors import ArgumentError

ROUNDING = 1e-12  # of a sum of masses, relative


@final
@dataclass(frozen=True, kw_only=True)
class TruncatedLaplaceEvent(Event, kind="truncated_laplace"):
    """A whole number released with noise k, P(k) proportional to exp(-|k| / scale) for |k| <= reach."""

    scale: float
    reach: int
    shift: int = 1

    def __post_init__(self) -> None:
        if not (self.scale > 0 and 1 <= self.shift <= self.reach):
            raise ArgumentError(f"{self} tells neighbours apart. Use scale > 0 and 1 <= shift <= reach.")

    @override
    def approximate_loss(self) -> tuple[Fraction, Fraction]:
        pair = TruncatedPair(self.scale, self.reach, self.shift)
        return pair.unit * self.shift, Fraction(pair.edge)

    @override
    def loss_pairs(self) -> tuple[TruncatedPair]:
        return (TruncatedPair(self.scale, self.reach, self.shift),)

    @override
    def of_rows(self, rows: int) -> TruncatedLaplaceEvent:
        return replace(self, shift=rows * self.shift)

    @override
    def with_noise_times(self, factor: float) -> TruncatedLaplaceEvent:
        return replace(self, scale=self.scale * factor, reach=math.ceil(self.reach * factor))


@final
@dataclass(frozen=True)
class TruncatedPair(ContinuousPair):
    """The noise against itself moved by `shift`, outcome by outcome; its own mirror image."""

    scale: float
    reach: int
    shift: int

    @property
    @override
    def unit(self) -> Fraction:
        return 1 / Fraction(self.scale)

    @property
    @override
    def least(self) -> float:
        return -self.greatest

    @property
    @override
    def greatest(self) -> float:
        return self.shift / self.scale * (1 + 1e-9)

    @property
    @override
    def variance(self) -> float:
        return self.greatest**2

    @property
    def noise(self) -> Floats:
        """Masses of the noise from -reach to reach."""
        masses = np.exp(-np.abs(np.arange(-self.reach, self.reach + 1)) / self.scale)
        return np.asarray(masses / masses.sum())

    @property
    def edge(self) -> float:
        """Mass of the outcomes that the neighbour cannot show, rounded up."""
        return float(self.noise[: self.shift].sum()) * (1 + ROUNDING)

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        both = np.arange(-self.reach + self.shift, self.reach + 1)
        losses = (np.abs(both - self.shift) - np.abs(both)) / self.scale
        p, q = between(cuts, losses, 1e-14 * self.greatest, self.noise[self.shift :], self.noise[: -self.shift])
        p[-1] += self.edge
        q[0] += self.edge
        return p, q
