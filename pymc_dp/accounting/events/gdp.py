"""A mechanism of which nothing but its Gaussian differential privacy is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event


@final
@dataclass(frozen=True, kw_only=True)
class GDPEvent(Event, kind="gdp"):
    """Any mechanism proved to be `mu`-GDP: no test tells neighbours apart better than N(0, 1) from N(mu, 1).

    One exact draw from a tempered posterior is an example: with a prior that is m-strongly log-concave in all
    parameters jointly, a concave log-likelihood, and gradients of the difference of two rows' log-likelihoods bounded
    by G, its mu is beta G / sqrt(m). A draw from a chain is not one, and a mechanism of known rho need not be one.

    Parameters
    ----------
    mu : float
        Distance > 0 of the two normal distributions, in standard deviations, per use; read as the decimal number it
        prints.

    Notes
    -----
    **Guarantee.** mu-GDP, hence mu^2 / 2-zCDP; no pure loss. The pair N(0, 1), N(mu, 1) dominates the mechanism, so
    that its privacy loss distribution is known as well. Squares of mu add up.

    References
    ----------
    Dong, Roth, Su 2022 (doi:10.1111/rssb.12454), definition 4 and corollary 2; Gopi, Lee, Liu 2022, "Private Convex
    Optimization via Exponential Mechanism" (strongly log-concave densities).

    Examples
    --------
    >>> float(GDPEvent(mu=0.5).rho)
    0.125
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _validate.epsilon(self.mu, "mu"))

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, mu^2 / 2, exactly."""
        return decimal(self.mu) ** 2 / 2

    @override
    def gdp_half_square(self) -> Fraction:
        return self.rho


__all__ = ["GDPEvent"]
