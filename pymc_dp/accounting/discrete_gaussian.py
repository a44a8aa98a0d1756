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
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_dp.accounting.events import DiscreteGaussianEvent

MOST_SCALE = 2.0**12  # up to which outcomes are summed
TAIL_MASS = 3e-19  # of |k| > 9 s and more: a sum over k > n is at most the integral from n, and 2 Phi(-8.99) = 2.5e-19
_TAIL = 9  # scales


class Normal(NamedTuple):
    """N(0, 1) against N(sqrt(2 rho), 1), or what differs from them by factors e^excess and a mass `tail`."""

    rho: Fraction
    excess: Fraction = Fraction(0)
    tail: Fraction = Fraction(0)


def greatest(scale: float, shift: int) -> float:
    """Return the greatest loss of an outcome that is summed, (shift^2 + 2 shift reach) / (2 scale^2)."""
    ratio = float(Fraction(shift) / Fraction(scale))
    return ratio * (ratio + 2 * math.ceil(_TAIL * scale) / scale) / 2


def atoms(scale: float, shift: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return losses of outcomes, and their probabilities where the noise is not moved and where it is.

    At k the loss is shift (shift - 2k) / (2 scale^2). What is left out on either side has less than `TAIL_MASS`.
    """
    reach = math.ceil(_TAIL * scale)
    k = np.arange(-reach, reach + shift + 1, dtype=np.float64)
    total = math.fsum(np.exp(-(k[: 2 * reach + 1] ** 2) / (2 * scale**2)))
    p, q = (np.exp(-(at**2) / (2 * scale**2)) / total for at in (k, k - shift))
    return shift * (shift - 2 * k) / (2 * scale**2), p, q


def normal(event: DiscreteGaussianEvent) -> Normal | None:
    """Return what the noise of a large scale is near to; None at small scales, or where nothing but ρ is known."""
    count = event.coordinates if event.shifts is None else len(event.shifts)
    if count is None or event.scale <= MOST_SCALE:
        return None
    # The same factor for both directions of the two bounds, which is more than needed for the first.
    scale = Fraction(event.scale)
    if event.shifts is None:
        cross = Fraction(math.isqrt(count * event.l2_squared) + 1) / scale  # sqrt(D) M, rounded up
        squares = _TAIL**2 * count + 2 * _TAIL * cross + event.l2_squared / scale**2
    else:
        squares = Fraction(sum((_TAIL + shift / scale) ** 2 for shift in event.shifts))
    return Normal(event.rho, squares / (24 * scale**2), count * Fraction(TAIL_MASS))
