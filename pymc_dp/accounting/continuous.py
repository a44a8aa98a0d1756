"""Dominating pairs, put on a grid of losses: Gaussian noise, discrete too, Poisson batches, bounded ranges."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any, final, override

import numpy as np
import scipy  # its parts are imported when first used
from numpy.typing import NDArray

from pymc_dp.accounting import discrete_gaussian, gdp
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting.discrete_gaussian import Normal
from pymc_dp.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    SubsampledGaussianEvent,
)

Floats = NDArray[np.float64]

MOST_POINTS = 2**16  # of the grid of one pair
_TAIL = 8.5  # standard deviations, beyond which lies less than 1e-17; that counts as an infinite loss
_ROUNDING = 1e-14  # of a mass, relative


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
        return -self.mu * (_TAIL + self.mu / 2) + 2 * self.excess

    @property
    @override
    def greatest(self) -> float:
        return self.mu * (_TAIL + self.mu / 2) + 2 * self.excess

    @property
    @override
    def variance(self) -> float:
        return self.mu**2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        cuts, factor = cuts - 2 * self.excess, math.exp(self.excess)
        p = _normal(cuts, self.mu**2 / 2, self.mu) * factor
        p[-1] += self.tail
        return p, _normal(cuts, -(self.mu**2) / 2, self.mu) / factor


@final
@dataclass(frozen=True)
class Lattice(ContinuousPair):
    """Discrete Gaussian noise of `scale` against itself moved by `shift`, outcome by outcome; its own mirror image."""

    scale: float
    shift: int

    @property
    @override
    def unit(self) -> Fraction:
        return self.shift / (2 * Fraction(self.scale) ** 2)

    @property
    @override
    def least(self) -> float:
        return -self.greatest

    @property
    @override
    def greatest(self) -> float:
        return discrete_gaussian.greatest(self.scale, self.shift) * (1 + 1e-9)

    @property
    @override
    def variance(self) -> float:
        return float(Fraction(self.shift) / Fraction(self.scale)) ** 2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        losses, p, q = discrete_gaussian.atoms(self.scale, self.shift)
        p, q = _between(cuts, losses, 1e-14 * self.greatest, p, q)
        p[-1] += discrete_gaussian.TAIL_MASS
        return p, q


@final
@dataclass(frozen=True)
class Batch(ContinuousPair):
    """A Poisson batch: (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2), or against (1-q) N(0, s^2) + q N(-1, s^2).

    Here s is the noise over the clip norm and q the sample rate; the outcome is the sum over the clip norm, along the
    row that differs. The first for add_remove (Zhu, Dong, Wang 2022, theorem 11), and in the other order as well;
    the second, `opposite`, for replace (Lebeda, Regehr, Kamath, Steinke 2024), where the two orders are mirror images.
    """

    s: float
    q: float
    opposite: bool

    @property
    @override
    def symmetric(self) -> bool:
        return self.opposite

    @property
    @override
    def least(self) -> float:
        return float(self._loss(np.array([-1 - _TAIL * self.s]))[0])

    @property
    @override
    def greatest(self) -> float:
        return float(self._loss(np.array([1 + _TAIL * self.s]))[0])

    @cached_property
    @override
    def variance(self) -> float:
        x = np.linspace(-1 - _TAIL * self.s, 1 + _TAIL * self.s, 4001)
        density = (1 - self.q) * np.exp(-((x / self.s) ** 2) / 2) + self.q * np.exp(-(((x - 1) / self.s) ** 2) / 2)
        return float(self._loss(x) ** 2 @ density / density.sum())

    def _loss(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            stay, log_q = np.log1p(-self.q), math.log(self.q)
        out = np.logaddexp(stay, log_q + (x - 0.5) / self.s**2)
        return np.asarray(out - np.logaddexp(stay, log_q + (-x - 0.5) / self.s**2) if self.opposite else out)

    def _outcome(self, loss: Floats) -> Floats:
        """Return the x of each loss, which grows with it."""
        if not self.opposite:
            inner = np.expm1(loss) + self.q
            with np.errstate(divide="ignore", invalid="ignore"):
                x = 0.5 + self.s**2 * (np.log(inner) - math.log(self.q))
            return np.where(inner > 0, x, -np.inf)
        # With t = x / s^2 and r = (1-q) / q e^(1 / (2 s^2)), loss = log((r + e^t) / (r + e^-t)), so that
        # r sinh(loss / 2) = sinh(t - loss / 2).
        half = np.abs(loss) / 2
        with np.errstate(divide="ignore"):
            log = math.log1p(-self.q) - math.log(self.q) + 0.5 / self.s**2 + half + np.log(-np.expm1(-2 * half) / 2)
        inverse = np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 20))))
        return np.asarray(self.s**2 * np.sign(loss) * (half + inverse))

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        x, q = self._outcome(cuts), self.q
        stay, out = _normal(x, 0.0, self.s), _normal(x, 1.0, self.s)
        against = (1 - q) * stay + q * _normal(x, -1.0, self.s) if self.opposite else stay
        return (1 - q) * stay + q * out, against


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


@final
@dataclass(frozen=True)
class Failure(ContinuousPair):
    """What dominates all that is (`epsilon`, `delta`)-DP: a failure that tells all, else randomised response.

    Kairouz, Oh, Viswanath 2017, theorem 3.1. It is its own mirror image.
    """

    epsilon: float
    delta: float

    @property
    @override
    def unit(self) -> Fraction:
        return decimal(self.epsilon)

    @property
    @override
    def least(self) -> float:
        return -self.greatest

    @property
    @override
    def greatest(self) -> float:
        return self.epsilon * (1 + 1e-9)

    @property
    @override
    def variance(self) -> float:
        return self.epsilon**2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        losses = np.array([-self.epsilon, self.epsilon])
        p = (1 - self.delta) * scipy.special.expit(losses)
        p, q = _between(cuts, losses, 1e-14 * self.epsilon, p, p[::-1])
        p[-1] += self.delta
        q[0] += self.delta
        return p, q


def _between(cuts: Floats, losses: Floats, slack: float, *masses: Floats) -> list[Floats]:
    """Add up masses of single losses below, between and above `cuts`.

    A loss that rounding may have put below a cut is taken for one above it, which `on_grid` then moves up to it.
    """
    cells = np.searchsorted(cuts, losses + slack, side="right")
    return [np.bincount(cells, weights=held, minlength=len(cuts) + 1) for held in masses]


def _normal(cuts: Floats, mean: float, std: float) -> Floats:
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


@singledispatch
def pairs(event: object) -> tuple[ContinuousPair, ...] | None:
    """Return pairs whose product dominates an elementary event, or None where none is known."""
    return None


@pairs.register
def _(event: BoundedRangeEvent) -> tuple[ContinuousPair, ...]:
    return (Range(event.eta),)


@pairs.register
def _(event: ApproximateEvent) -> tuple[ContinuousPair, ...]:
    return (Failure(event.epsilon, event.delta),)


@pairs.register
def _(event: SubsampledGaussianEvent) -> tuple[ContinuousPair, ...] | None:
    if event.sampling != "poisson":
        return None
    # The pair is in units of the clip norm under either relation, as dp_accounting's distributions are.
    return (Batch(event.noise_multiplier, event.rate, event.neighbours == "replace"),)


@pairs.register
def _(event: DiscreteGaussianEvent) -> tuple[ContinuousPair, ...] | None:
    # A coordinate that moves by less than its shift is dominated, since the noise is log-concave (see `pld.pairs`).
    return None if event.shifts is None else tuple(Lattice(event.scale, shift) for shift in event.shifts)


def normal(event: Event) -> Normal | None:
    """Return two normal distributions that an elementary event is, or is near to; None where there are none."""
    if isinstance(event, DiscreteGaussianEvent):
        return discrete_gaussian.normal(event)
    half_square = gdp.half_square(event)
    return None if half_square is None else Normal(half_square)


def pairs_of(counts: dict[Event, int]) -> dict[ContinuousPair, int] | None:
    """Return pairs and how often each is composed, all Gaussian noise merged into one; None if any event has none."""
    result: dict[ContinuousPair, int] = {}
    rho = excess = tail = Fraction(0)
    for event, count in counts.items():
        near = normal(event)
        if near is not None:
            rho, excess, tail = rho + count * near.rho, excess + count * near.excess, tail + count * near.tail
            continue
        known = pairs(event)
        if known is None:
            return None
        for pair in known:
            result[pair] = result.get(pair, 0) + count
    return result | ({Shift(gdp.mu_of_rho(rho), float_up(excess), float_up(tail)): 1} if rho else {})


def distribution(pair: ContinuousPair, spacing: float) -> Any:
    """Return dp_accounting's distribution of the losses of `pair`, on multiples of `spacing`, pessimistic."""
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    first, last = math.floor(pair.least / spacing), math.ceil(pair.greatest / spacing)
    cuts = np.arange(first, last + 1) * np.float64(spacing)
    p, q = pair.masses(cuts)
    forward = DensePLDPmf(spacing, first, *on_grid(p, q, cuts, spacing), True)
    if pair.symmetric:
        return PrivacyLossDistribution(forward)
    backward = DensePLDPmf(spacing, -last, *on_grid(q[::-1], p[::-1], -cuts[::-1], spacing), True)
    return PrivacyLossDistribution(forward, backward)


def on_grid(p: Floats, q: Floats, cuts: Floats, spacing: float) -> tuple[Floats, float]:
    """Return masses at the `cuts` that dominate, and the mass of infinite loss.

    Between cuts a and a + h, masses p and q are split over the two ends such that both are kept (Doroshenko et al.
    2022, "Connect the dots"): up + down = p and up e^(-a-h) + down e^-a = q. What lies below the first cut moves up to
    it, what lies above the last becomes infinite.
    """
    inner = p[1:-1]
    other = np.exp(cuts[:-1]) * q[1:-1]
    up = (inner - other + _ROUNDING * (inner + other)) / -math.expm1(-spacing)
    up = np.clip(up, 0.0, inner)
    masses = np.zeros(len(cuts))
    masses[:-1] += inner - up
    masses[1:] += up
    masses[0] += p[0]
    return masses, float(p[-1])
