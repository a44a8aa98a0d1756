"""Discrete Gaussian noise against itself moved by whole steps: outcome by outcome, or as nearly normal noise.

At small scales it is summed over its outcomes, since the curve of continuous noise does not hold for it: at shift 1,
with the noise that the curve asks for at delta = 1e-6, its delta is 1.10 and 1.38 times the curve's at epsilon 2 and 3.
At large scales it is near a normal variable rounded to whole numbers, which is post-processing of the continuous one;
how near is proved here, and paid for.

Let s be the scale, f the density of N(0, s^2), P(k) = e^(-k^2 / (2 s^2)) / T the noise, and R(k) the integral of f over
[k - 1/2, k + 1/2], the rounded normal variable. By Poisson's formula T is s sqrt(2 pi) times 1 + 2 e^(-2 pi^2 s^2) +
..., so that P <= f, and P = f to more digits than there are at the scales above `MOST_SCALE`. With u uniform on
[-1/2, 1/2], R(k) / f(k) = E[cosh(k u / s^2) e^(-u^2 / (2 s^2))], which gives for every k
    P(k) <= R(k) e^(1 / (24 s^2)),         by cosh >= 1 and Jensen's inequality, E[u^2] = 1 / 12;
    P(k) >= R(k) e^(-k^2 / (24 s^4)),      by E[cosh(2 x u)] = sinh(x) / x <= e^(x^2 / 6) at x = k / (2 s^2).
Moved by d = m s, outcomes with |k - d| <= (9 + m) s therefore have a loss larger by at most ((9 + m)^2 + 1) / (24 s^2)
than that of rounded normal variables; and others have |k| > 9 s, a mass of `TAIL_MASS` at most, whose loss may be
infinite. Such bounds multiply over coordinates and uses.

Where of a difference of neighbours in D coordinates nothing but its norm M s is known, their (9 + m_i)^2 add up to at
most 81 D + 18 sqrt(D) M + M^2 (Cauchy, Schwarz), and the rounded normal vectors are post-processing of N(0, s^2 I)
against N(d, s^2 I), |d| <= M s: all that is known of them is their distance, as of one coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, override

import numpy as np

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events.base import Event, canonical_shifts
from pymc_dp.kernel.accounting.pairs import ContinuousPair, Floats, Normal, Pair, between
from pymc_dp.kernel.errors import ArgumentError

MOST_SCALE = 2.0**12  # up to which outcomes are summed
TAIL_MASS = 3e-19  # of |k| > 9 s and more: a sum over k > n is at most the integral from n, and 2 Phi(-8.99) = 2.5e-19
_TAIL = 9  # scales


@final
@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianEvent(Event, kind="discrete_gaussian"):
    """An integer vector released with independent discrete Gaussian noise.

    P(k) is proportional to exp(-k^2 / (2 scale^2)) for every whole number k.

    Parameters
    ----------
    scale : float
        Noise scale in integer units; the sampler uses this float's exact binary value. For scales above 1 it is the
        standard deviation but for a share of 1e-6.
    l2_squared : int, optional
        Square of the largest L2 sensitivity of the vector between neighbours, >= 1. Needed where `shifts` is None, else
        the sum of their squares.
    shifts : tuple of int, optional
        Absolute sensitivities of the coordinates in the worst case: for **every** pair of neighbours there must be an
        order of the coordinates in which each moves by at most the shift of that place, and coordinates beyond them not
        at all. Where the coordinates cannot all be at their worst at once, `l2_squared` is below the sum of the
        squares, and `shifts` must be None. Then only the zCDP of the vector is used, unless `coordinates` are given.
    coordinates : int, optional
        Length of the vector, where nothing but `l2_squared` is known of how it moves. At large scales its privacy loss
        distribution follows from that: it is near continuous noise rounded to whole numbers (see the file).

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
        shifts = None if self.shifts is None else canonical_shifts(self.shifts)
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
        written = super().to_dict()
        return written if self.coordinates is not None else {k: v for k, v in written.items() if k != "coordinates"}

    @override
    def zcdp_rho(self) -> Fraction:
        return self.rho

    @override
    def loss_pairs(self) -> tuple[Pair, ...] | None:
        normal = self._normal
        if normal is not None:
            return (normal,)
        # A coordinate that moves by less than its shift is dominated, since the noise is log-concave (see
        # `DiscreteLaplaceEvent.loss_pairs`).
        return None if self.shifts is None else tuple(Lattice(self.scale, shift) for shift in self.shifts)

    @property
    def _normal(self) -> Normal | None:
        """What the noise of a large scale is near to; None at small scales, or where nothing but ρ is known."""
        count = self.coordinates if self.shifts is None else len(self.shifts)
        if count is None or self.scale <= MOST_SCALE:
            return None
        # The same factor for both directions of the two bounds, which is more than needed for the first.
        scale = Fraction(self.scale)
        if self.shifts is None:
            cross = Fraction(math.isqrt(count * self.l2_squared) + 1) / scale  # sqrt(D) M, rounded up
            squares = _TAIL**2 * count + 2 * _TAIL * cross + self.l2_squared / scale**2
        else:
            squares = Fraction(sum((_TAIL + shift / scale) ** 2 for shift in self.shifts))
        return Normal(self.rho, squares / (24 * scale**2), count * Fraction(TAIL_MASS))


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
        return greatest(self.scale, self.shift) * (1 + 1e-9)

    @property
    @override
    def variance(self) -> float:
        return float(Fraction(self.shift) / Fraction(self.scale)) ** 2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        losses, p, q = atoms(self.scale, self.shift)
        p, q = between(cuts, losses, 1e-14 * self.greatest, p, q)
        p[-1] += TAIL_MASS
        return p, q


def greatest(scale: float, shift: int) -> float:
    """Return the greatest loss of an outcome that is summed, (shift^2 + 2 shift reach) / (2 scale^2)."""
    ratio = float(Fraction(shift) / Fraction(scale))
    return ratio * (ratio + 2 * math.ceil(_TAIL * scale) / scale) / 2


def atoms(scale: float, shift: int) -> tuple[Floats, Floats, Floats]:
    """Return losses of outcomes, and their probabilities where the noise is not moved and where it is.

    At k the loss is shift (shift - 2k) / (2 scale^2). What is left out on either side has less than `TAIL_MASS`.
    """
    reach = math.ceil(_TAIL * scale)
    k = np.arange(-reach, reach + shift + 1, dtype=np.float64)
    total = math.fsum(np.exp(-(k[: 2 * reach + 1] ** 2) / (2 * scale**2)))
    p, q = (np.exp(-(at**2) / (2 * scale**2)) / total for at in (k, k - shift))
    return shift * (shift - 2 * k) / (2 * scale**2), p, q


__all__ = ["DiscreteGaussianEvent", "Lattice"]
