"""Frozen elementary events: one use of the data each, in the terms accountants need, without data or results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final, override

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.errors import ArgumentError


class Event(ABC):
    """One use of the data, or several; a value. Accountants know its meaning, it knows how to be written down."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict of JSON types; `event_from_dict` reads it back."""


@final
@dataclass(frozen=True, kw_only=True)
class PureEvent(Event):
    """Any mechanism that is `epsilon`-DP with delta = 0, of which nothing else is known.

    Parameters
    ----------
    epsilon : float
        Pure privacy loss > 0 per use, read as the decimal number it prints.

    Examples
    --------
    >>> PureEvent(epsilon=0.5).to_dict()
    {'kind': 'pure', 'epsilon': 0.5}
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.epsilon(self.epsilon))

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "pure", "epsilon": self.epsilon}


@final
@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceEvent(Event):
    """An integer vector released with independent discrete Laplace noise, P(k) proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale : float
        Noise scale in integer units; the sampler uses this float's exact binary value.
    sensitivity : int, optional
        Largest L1 movement of the vector between neighbours. Needed where `shifts` is None, else their sum.
    shifts : tuple of int, optional
        Absolute movements of the coordinates in the worst case: for **every** pair of neighbours there must be an order
        of the coordinates in which each moves by at most the shift of that place, and coordinates beyond them not at
        all. (1,) for one count, (1, 1) for a table under replace. It must be the whole truth: (2,) may not stand for
        (1, 1), nor the other way round. None where only the L1 sensitivity is known; then only its pure loss is used.

    Examples
    --------
    >>> DiscreteLaplaceEvent(scale=4.0, shifts=(1, 1)).epsilon
    0.5
    """

    scale: float
    sensitivity: int = 0
    shifts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        scale = _validate.number("scale", self.scale)
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {scale}. Use sensitivity / epsilon, rounded up.")
        shifts, sensitivity = self.shifts, self.sensitivity
        if shifts is not None:
            shifts = _canonical(shifts)
            sensitivity = sensitivity or sum(shifts)
        elif not sensitivity:
            raise ArgumentError("Give sensitivity (the L1 sensitivity, in integer units), or shifts.")
        sensitivity = _validate.integer("sensitivity", sensitivity)
        if shifts is not None and sum(shifts) != sensitivity:
            raise ArgumentError(
                f"shifts {shifts} sum to {sum(shifts)}, but sensitivity is {sensitivity}. Leave sensitivity out."
            )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "sensitivity", sensitivity)
        _validate.epsilon(self.epsilon, "sensitivity / scale")

    @property
    def unit(self) -> Fraction:
        """Loss per unit of movement, 1 / scale, exactly."""
        return 1 / Fraction(self.scale)

    @property
    def epsilon(self) -> float:
        """Pure loss of the whole vector, sensitivity / scale rounded up."""
        return float_up(self.sensitivity * self.unit)

    @classmethod
    def calibrated(cls, *, epsilon: float, sensitivity: int = 0, shifts: tuple[int, ...] | None = None) -> Self:
        """Return the event of least noise whose `epsilon` is not above the one asked for.

        Examples
        --------
        >>> DiscreteLaplaceEvent.calibrated(epsilon=0.1, shifts=(1,)).scale
        10.0
        """
        least = cls(scale=1.0, sensitivity=sensitivity, shifts=shifts)
        exact = least.sensitivity / decimal(_validate.epsilon(epsilon))
        try:
            scale = float(exact)
        except OverflowError:
            raise ArgumentError(f"epsilon {epsilon} is too small for sensitivity {least.sensitivity}.") from None
        while Fraction(scale) < exact:  # a scale rounded down would spend more than was asked for
            scale = math.nextafter(scale, math.inf)
        return cls(scale=scale, sensitivity=least.sensitivity, shifts=least.shifts)

    @override
    def to_dict(self) -> dict[str, Any]:
        shifts = None if self.shifts is None else list(self.shifts)
        return {"kind": "discrete_laplace", "scale": self.scale, "sensitivity": self.sensitivity, "shifts": shifts}


@final
@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianEvent(Event):
    """An integer vector released with independent discrete Gaussian noise.

    P(k) is proportional to exp(-k^2 / (2 scale^2)) for every whole number k.

    Parameters
    ----------
    scale : float
        Noise scale in integer units; the sampler uses this float's exact binary value. For scales above 1 it is the
        standard deviation but for a share of 1e-6.
    l2_squared : int, optional
        Square of the largest L2 movement of the vector between neighbours, >= 1. Needed where `shifts` is None, else
        the sum of their squares.
    shifts : tuple of int, optional
        Absolute movements of the coordinates in the worst case: for **every** pair of neighbours there must be an order
        of the coordinates in which each moves by at most the shift of that place, and coordinates beyond them not at
        all. Where the coordinates cannot all be at their worst at once, `l2_squared` is below the sum of the squares,
        and `shifts` must be None. Then only the zCDP of the vector is used, unless `coordinates` are given.
    coordinates : int, optional
        Length of the vector, where nothing but `l2_squared` is known of how it moves. At large scales its privacy loss
        distribution follows from that: it is near continuous noise rounded to whole numbers (`discrete_gaussian`).

    Notes
    -----
    **Guarantee.** (l2_squared / (2 scale^2))-zCDP; no pure loss. It is not GDP: at small scales some deltas are larger
    than those of the curve of continuous noise. With `shifts`, or with `coordinates` and a scale above 2^12, its
    privacy loss distribution is known, which needs less noise than zCDP does.

    References
    ----------
    Canonne, Kamath, Steinke 2020 (doi:10.29012/jpc.784), proposition 5 (zCDP of one coordinate).

    Examples
    --------
    >>> float(DiscreteGaussianEvent(scale=2.0, shifts=(1, 1)).rho)
    0.25
    """

    scale: float
    l2_squared: int = 0
    shifts: tuple[int, ...] | None = None
    coordinates: int | None = None

    def __post_init__(self) -> None:
        scale = _validate.number("scale", self.scale)
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {scale}. Use accounting.calibrated for the least of a budget.")
        shifts = None if self.shifts is None else _canonical(self.shifts)
        squares = sum(shift**2 for shift in shifts or ())
        if not squares and not self.l2_squared:
            raise ArgumentError("Give l2_squared (the square of the L2 sensitivity, in integer units), or shifts.")
        l2_squared = _validate.integer("l2_squared", self.l2_squared or squares)
        if shifts is not None and squares != l2_squared:
            raise ArgumentError(
                f"The squares of shifts {shifts} sum to {squares}, but l2_squared is {l2_squared}. Leave l2_squared "
                "out; or shifts, where the coordinates cannot all be at their worst at once."
            )
        if self.coordinates is not None:
            if shifts is not None:
                raise ArgumentError("Give shifts or coordinates: shifts say how many coordinates move, and how far.")
            object.__setattr__(self, "coordinates", _validate.many("coordinates", self.coordinates))
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "l2_squared", l2_squared)
        _validate.number("l2_squared / (2 scale^2)", float_up(self.rho))

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, l2_squared / (2 scale^2), exactly."""
        return self.l2_squared / (2 * Fraction(self.scale) ** 2)

    @override
    def to_dict(self) -> dict[str, Any]:
        shifts = None if self.shifts is None else list(self.shifts)
        found = {"kind": "discrete_gaussian", "scale": self.scale, "l2_squared": self.l2_squared, "shifts": shifts}
        return found if self.coordinates is None else {**found, "coordinates": self.coordinates}


@final
@dataclass(frozen=True, kw_only=True)
class ZCDPEvent(Event):
    """Any mechanism that is `rho`-zCDP (Bun, Steinke 2016, definition 1.1), of which nothing else is known.

    Parameters
    ----------
    rho : float
        Bound > 0 on every Renyi divergence of order a divided by a, between neighbours.

    Examples
    --------
    >>> ZCDPEvent(rho=0.125).rho
    0.125
    """

    rho: float

    def __post_init__(self) -> None:
        rho = _validate.number("rho", self.rho)
        if rho <= 0:
            raise ArgumentError(f"rho must be > 0, got {rho}. Use zcdp.rho_for(epsilon, delta) for a budget's rho.")
        object.__setattr__(self, "rho", rho)

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "zcdp", "rho": self.rho}


@final
@dataclass(frozen=True, kw_only=True)
class BoundedRangeEvent(Event):
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
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "bounded_range", "eta": self.eta}


@final
@dataclass(frozen=True, kw_only=True)
class GaussianEvent(Event):
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

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, half of the square of its GDP's mu, exactly."""
        return 1 / (2 * Fraction(self.noise_multiplier) ** 2)

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "gaussian", "noise_multiplier": self.noise_multiplier}


@final
@dataclass(frozen=True, kw_only=True)
class GDPEvent(Event):
    """Any mechanism proved to be `mu`-GDP: no test tells neighbours apart better than N(0, 1) from N(mu, 1).

    One exact draw from a tempered posterior is an example: with a prior that is m-strongly log-concave in all
    parameters jointly, a concave log-likelihood, and gradients of the difference of two rows' log-likelihoods bounded
    by G, its mu is beta G / sqrt(m). A draw from a chain is none, and a mechanism of known rho need not be one.

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
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "gdp", "mu": self.mu}


def _canonical(shifts: object) -> tuple[int, ...]:
    """Return shifts in falling order: the loss does not depend on it, and equal events must compare equal."""
    if not isinstance(shifts, tuple | list) or not shifts:
        raise ArgumentError(f"shifts must be a tuple of whole numbers such as (1, 1), or None, got {shifts!r}.")
    return tuple(sorted((_validate.integer("each of shifts", shift) for shift in shifts), reverse=True))


def multiplier(value: object, unit: str) -> float:
    """Return a noise multiplier, standard deviation over `unit`, neither so small nor so large that squares fail."""
    result = _validate.number("noise_multiplier", value)
    if not 1e-6 <= result <= 1e12:
        raise ArgumentError(
            f"noise_multiplier (standard deviation / {unit}) must lie in [1e-6, 1e12], got {result}. "
            "calibrate.noise_multiplier returns the least one for a budget."
        )
    return result
