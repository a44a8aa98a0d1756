"""A vector released with continuous Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final, override

from pymc_dp.kernel.accounting.events.base import Event, multiplier
from pymc_dp.kernel.accounting.events.subsampled_gaussian import SubsampledGaussianEvent


@final
@dataclass(frozen=True, kw_only=True)
class GaussianEvent(Event, kind="gaussian"):
    """A vector released with continuous Gaussian noise on every coordinate, in float64 arithmetic (idealised reals).

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise > 0 over the L2 sensitivity of the whole vector between neighbours.

    Notes
    -----
    **Guarantee.** (1 / noise_multiplier)-GDP and 1 / (2 noise_multiplier^2)-zCDP; no pure loss. Not for discrete
    Gaussian noise, whose privacy at small scales is worse than this curve: that is a `DiscreteGaussianEvent`.

    References
    ----------
    Bun, Steinke 2016, proposition 1.6; Dong, Roth, Su 2022, theorem 1.

    Examples
    --------
    >>> float(GaussianEvent(noise_multiplier=2.0).rho)
    0.125
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", multiplier(self.noise_multiplier, "L2 sensitivity"))

    @classmethod
    def of_all_rows(cls, step: SubsampledGaussianEvent) -> Self:
        """Return what a step on a batch would be on all rows: at least as costly, see `SubsampledGaussianEvent.rho`."""
        return cls(noise_multiplier=step.over_sensitivity)

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, half of the square of its GDP's mu, exactly."""
        return 1 / (2 * Fraction(self.noise_multiplier) ** 2)

    @override
    def gdp_half_square(self) -> Fraction:
        return self.rho


__all__ = ["GaussianEvent"]
