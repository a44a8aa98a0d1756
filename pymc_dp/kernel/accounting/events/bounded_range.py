"""A draw by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

import numpy as np

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event, rho_of_pure
from pymc_dp.kernel.accounting.pairs import ContinuousPair, Floats

_ROUNDING = 1e-14


@final
@dataclass(frozen=True, kw_only=True)
class BoundedRangeEvent(Event, kind="bounded_range"):
    """An exponential mechanism: a draw whose log-density moves by an amount of range `eta` between neighbours.

    For every pair of neighbours the privacy loss, over all outcomes, lies in an interval of length `eta`. A draw from a
    density proportional to prior(theta) exp(beta sum of log-likelihoods) has eta = beta R, where R is the range of the
    difference of two rows' log-likelihoods (the supremum over theta minus the infimum).

    Parameters
    ----------
    eta : float
        Range > 0 of the loss per use, read as the decimal number it prints.

    Notes
    -----
    **Guarantee.** eta-DP, and eta^2 / 8-zCDP: four times less than of a pure loss eta, of which the range may be 2 eta.

    References
    ----------
    Durfee, Rogers 2019, definition of bounded range; Dong, Durfee, Rogers 2020; Cesar, Rogers 2021, lemma 3.4.

    Examples
    --------
    >>> BoundedRangeEvent(eta=0.01).eta
    0.01
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", _validate.epsilon(self.eta, "eta"))

    @override
    def pure_loss(self) -> Fraction:
        # E_Q[e^loss] = 1, so the loss is nowhere all above or all below 0: an interval of length eta that holds it
        # holds 0.
        return decimal(self.eta)

    @override
    def zcdp_rho(self) -> Fraction:
        # Hoeffding's lemma on the loss, which lies in an interval of length eta (Cesar, Rogers 2021, lemma 3.4). A pure
        # loss eta has the other bound too, the smaller one for eta of 8 or more.
        eta = decimal(self.eta)
        return min(eta**2 / 8, rho_of_pure(eta))

    @override
    def renyi_divergence(self, order: float) -> float:
        """Return the largest divergence of two distributions whose loss lies in an interval of length eta.

        With the loss L in [t - eta, t] and E_Q[e^L] = 1, E_Q[e^(aL)] is largest with all mass on the two ends, since
        x^a is convex: e^((a-1)t) (A - e^t B) / (1 - e^-eta), where A = 1 - e^(-a eta), B = e^-eta - e^(-a eta). Over t
        that is largest at e^t = (a-1) A / (a B).
        """
        eta, a = self.eta, order
        if (a - 1) * eta < 1e-9:
            return math.inf  # zCDP's a eta^2 / 8 is as good there, and has no differences of nearly equal numbers
        log_a = math.log(-math.expm1(-a * eta))
        log_b = -eta + math.log(-math.expm1(-(a - 1) * eta))
        t = math.log((a - 1) / a) + log_a - log_b
        rest = log_a - math.log(a) - math.log(-math.expm1(-eta))
        return t + rest / (a - 1) + 10 * _ROUNDING * (abs(t) + (1 + abs(log_a) + abs(rest) + math.log(a)) / (a - 1))

    @override
    def loss_pairs(self) -> tuple[Range]:
        return (Range(self.eta),)


@final
@dataclass(frozen=True)
class Range(ContinuousPair):
    """The pair with the largest hockey-stick divergences of all whose loss lies in an interval of length `eta`.

    With the loss L in [t - eta, t] and E_Q[e^L] = 1, E_Q[(e^L - e^epsilon)+] is largest with all mass on the two ends,
    and over t largest at t = (epsilon + eta) / 2 (Dong, Durfee, Rogers 2020):
        delta(epsilon) = (1 - e^((epsilon - eta) / 2))^2 / (1 - e^-eta), for epsilon in [-eta, eta].
    A supremum of such curves belongs to a pair of its own (Zhu, Dong, Wang 2022, proposition 8), which composes; here
    that with density e^((a - eta) / 2) / (2 (1 - e^-eta)) of the loss a on [-eta, eta] under P, and e^-a times it
    under Q. No t need be the same from one use to the next. Over many uses zCDP is the better bound.
    """

    eta: float

    @property
    @override
    def least(self) -> float:
        return -self.eta

    @property
    @override
    def greatest(self) -> float:
        return self.eta

    @property
    @override
    def variance(self) -> float:
        return self.eta**2 / 3

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        ends = np.concatenate([[-self.eta], np.clip(cuts, -self.eta, self.eta), [self.eta]])
        width, below = np.diff(ends), ends[:-1]
        scale = -math.expm1(-self.eta)
        return (
            np.exp((below - self.eta) / 2) * np.expm1(width / 2) / scale,
            -np.exp(-(below + self.eta) / 2) * np.expm1(-width / 2) / scale,
        )


__all__ = ["BoundedRangeEvent", "Range"]
