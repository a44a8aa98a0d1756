"""Exact draws of a normal vector in a ball: the coefficients of a regression whose noise is known; float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any, Self, final, override

import numpy as np

from pymc_dp.kernel import limits
from pymc_dp.kernel.arguments import exact, finite, keep, positive
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.shapes import FACTOR, Array, Facts, Shape
from pymc_dp.kernel.truncated import truncated_normal

WITHIN = 1 - 2.0**-36
"""Of the radius: where draws end, so that no rounding takes them out of the ball."""
PROPOSED = 16
"""Proposals made at once."""
DROP = 40.0
"""A density is integrated to where its logarithm is so far below its largest value."""
FLOATS = ("radius", "longest", "farthest", "precision", "prior")
FLAT, LARGE = 1e-30, 1e20
"""Precisions in units of the radius: the least, which no float of a density sees, and the largest that floats bear."""


@final
@dataclass(frozen=True)
class Crossed(Shape):
    """A row adds k_i k_j for i <= j, and k_i m: k of `width` whole numbers of L2 norm 2^15 at most, m within ±2^15.

    The map gives k and m in multiples of 2^15. The kernel rounds, and multiplies. Of a vector with NaN all is 0, and m
    of NaN is 0. Norms: Σ k_i² k_j² over i <= j is |k|^4 at most, Σ k_i² m² at most 2^60; L1 by Cauchy and Schwarz.
    """

    width: int

    def __post_init__(self) -> None:
        exact(2, 1000, width=self.width)

    @property
    @override
    def facts(self) -> Facts:
        d, square = self.width, FACTOR**2
        one, two = (d + 1) * square // 2 + isqrt(d * square**2) + 1, 2 * square**2
        return Facts(d + 1, d * (d + 3) // 2, (one, two), (2 * one, 4 * two))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        d = self.width
        with np.errstate(all="ignore"):  # a warning could depend on a row
            near = np.rint(found * float(FACTOR))
        held, ends = np.zeros((len(found), d + 1), dtype=np.int64), np.array([FACTOR])
        limits.hold_ball(near[:, :d] / FACTOR, FACTOR, held[:, :d])
        limits.hold_whole(near[:, d:], -ends, ends, held[:, d:])
        i, j = np.triu_indices(d)
        whole[:] = np.concatenate([held[:, i] * held[:, j], held[:, :d] * held[:, d:]], axis=1)


@final
@dataclass(frozen=True, kw_only=True)
class NormalInBall:
    """A likelihood exp(-precision (y - x'θ)² / 2) of each row, and a normal prior about 0, restricted to |θ| <= radius.

    Parameters
    ----------
    width : int
        Of θ: 2 or more.
    radius : float
    longest : float
        No row has a longer x. The map gives x in multiples of it.
    farthest : float
        No row has a larger |y|. The map gives y in multiples of it.
    precision : float
        Of the noise.
    prior : float
        Precision of the prior; 0 if it is uniform on the ball.

    Notes
    -----
    **Range.** Let s = `longest` times `radius`, and c = `farthest`. Over the ball y t - t²/2 with t = x'θ, |t| <= |x|
    `radius`, is largest at t = y or at the end nearer to it, and least at the other end. Both ends move outwards as |x|
    grows, and the range grows with |y|: it is (c + s)²/2 at most if s >= c, and 2cs otherwise. The range of a
    difference of two rows is no more than twice that. It is as much: for s < c by x, -x and y = y' = c, and for s >= c
    by y = y' = c and x, x' of full length with <x, x'> = -(c/s) |x|²; at θ = -`radius` x' / |x'| the first row's
    residual is 0 and the second's is c + s, and the other way round at -`radius` x / |x|.
    """

    width: int
    radius: float
    longest: float
    farthest: float
    precision: float
    prior: float = 0.0

    def __post_init__(self) -> None:
        exact(2, 1000, width=self.width)
        keep(self, **{name: finite(name, getattr(self, name)) for name in FLOATS})
        positive(radius=self.radius, longest=self.longest, farthest=self.farthest, precision=self.precision)
        if self.prior < 0:
            raise ArgumentError(f"prior must be a precision >= 0, got {self.prior:g}.")

    @property
    def shape(self) -> Shape:
        """What one row adds."""
        return Crossed(self.width)

    def range(self, neighbours: str) -> Fraction:
        """Return by how much neighbours move the log-likelihood over the ball at most, as a range; for one row."""
        c, s = Fraction(self.farthest), Fraction(self.longest) * Fraction(self.radius)
        one = (c + s) ** 2 / 2 if s >= c else 2 * c * s
        return Fraction(self.precision) * one * (2 if neighbours == "replace" else 1)

    def check_floats(self, beta: float) -> None:
        """Refuse numbers that floats cannot hold for some table; before it is paid."""
        self._factors(beta)

    def _factors(self, beta: float) -> tuple[float, float, float]:
        """Return what whole numbers of sums, and the prior, are in units of the radius: precisions and slopes."""
        power, s = Fraction(beta) * Fraction(self.precision), Fraction(self.longest) * Fraction(self.radius)
        curved, linear = power * s**2 / FACTOR**2, power * s * Fraction(self.farthest) / FACTOR**2
        own = Fraction(self.prior) * Fraction(self.radius) ** 2
        if max(curved * FACTOR**2 * limits.MOST_ROWS, linear * FACTOR**2 * limits.MOST_ROWS, own) >= LARGE:
            raise ArgumentError(
                "What the rows of some tables add up to is too large for floats. Take a smaller beta, units nearer to "
                "1, or a wider prior."
            )
        return float(curved), float(linear), float(own)

    def _draw(self, rng: Any, sums: Array, beta: float) -> Array:
        """Draw from the posterior of exact sums at an inverse temperature. **Private** release."""
        d, (i, j), (curved, linear, own) = self.width, np.triu_indices(self.width), self._factors(beta)
        products, (first, second) = np.zeros((d, d)), np.split(sums, [d * (d + 1) // 2])
        products[i, j] = products[j, i] = first
        return normal_in_ball(rng, curved * products + own * np.eye(d), linear * second, 1.0) * self.radius


def normal_in_ball(rng: Any, curved: Array, linear: Array, radius: float) -> Array:
    """Draw θ of density proportional to exp(<linear, θ> - θ' curved θ / 2) in a ball of radius (1 - 2^-36) `radius`.

    Parameters
    ----------
    rng : numpy.random.Generator
    curved : (d, d) array
        Symmetric, no eigenvalue below 0. All 0 with `linear`: uniform on the ball.
    linear : (d,) array
    radius : float

    Returns
    -------
    (d,) array

    Notes
    -----
    Along eigenvectors, in units of the radius, entries are independent, but for the sum S of their squares, which is 1
    at most. All entries but one are drawn as they are where the density is multiplied by exp(-λ S / 2). The one that is
    left then has a room of squares A, and integrates to G(√A), the mass of a normal density on [-√A, √A]. So a proposal
    is accepted with a probability proportional to h(A) = G(√A) exp(-λ A / 2): rejection, exact for every λ >= 0 and
    whichever entry is left. G is log-concave (Prékopa) and increases, and √A is concave: log h is concave. Its largest
    value is where its slope changes its sign. The entry that is left comes from its normal distribution on [-√A, √A].

    λ makes S 1 on average, or is 0 if S is less then. The entry that is left is the one whose square varies most. A
    draw takes about the sd of S over that of this square. Measured in 2 to 100 dimensions: at most √d + 1 proposals on
    average, with the mode deep inside, on the surface, and far outside.

    **Guarantee.** As of `truncated.truncated_beta`. NaN counts as 0. Numbers, in units of the
    radius, are held within 1e20.
    """
    inner = radius * WITHIN
    with np.errstate(all="ignore"):  # a warning could depend on a row
        scaled = np.clip(np.nan_to_num(curved * inner * inner, posinf=LARGE), -LARGE, LARGE)
        values, vectors = np.linalg.eigh(scaled)
        along = np.clip(np.nan_to_num(vectors.T @ linear * inner), -LARGE, LARGE)
        proposals = Proposals.of(np.maximum(values, FLAT), along)
        others, room = proposals.draw(rng)
        k = proposals.left
        precision, end = proposals.curved[k], math.sqrt(room)
        last = truncated_normal(rng, along[k] / precision, precision**-0.5, -end, end)
        return np.asarray(inner * (vectors @ np.insert(others, k, last)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposals:
    """Normal proposals of all entries but one, in the unit ball. **Private**.

    Attributes
    ----------
    curved, linear : (d,) array
        Of a density exp(linear θ - curved θ² / 2) of each entry; `curved` is > 0.
    tilt : float
        λ.
    left : int
        Which entry is not proposed.
    best : float
        The A at which h is largest.
    """

    curved: Array
    linear: Array
    tilt: float
    left: int
    best: float

    @classmethod
    def of(cls, curved: Array, linear: Array) -> Self:
        """Choose λ and the entry that is left: any would be exact."""
        tilt = _tilt(curved, linear)
        total = curved + tilt
        left = int(np.argmax((4 * (linear / total) ** 2 + 2 / total) / total))
        best = _best(curved[left], abs(linear[left]), tilt)
        return cls(curved=curved, linear=linear, tilt=tilt, left=left, best=best)

    def draw(self, rng: Any) -> tuple[Array, float]:
        """Draw until a proposal is accepted; return it, and the room that it leaves."""
        while True:
            others = self.propose(rng, PROPOSED)
            good = np.flatnonzero(self.log_chances(others) > -rng.standard_exponential(PROPOSED))
            if good.size:
                return others[good[0]], float(_room(others)[good[0]])

    def propose(self, rng: Any, count: int) -> Array:
        """Return (count, d - 1) entries."""
        total = np.delete(self.curved, self.left) + self.tilt
        noise = rng.standard_normal((count, len(total)))
        return np.asarray(np.delete(self.linear, self.left) / total + noise / np.sqrt(total))

    def log_chances(self, others: Array) -> Array:
        """Return the logarithms of the probabilities that proposals are accepted.

        They are differences of log h to that at `best`, taken before anything large is: h may be e to the 10^12.
        """
        curved, linear = self.curved[self.left], abs(self.linear[self.left])
        room = _room(others)
        here, there = np.sqrt(np.maximum(room, 0.0)), math.sqrt(self.best)
        top, other = np.minimum(here, linear / curved), min(there, linear / curved)
        moved = (top - other) * (linear - curved * (top + other) / 2) - self.tilt * (here - there) * (here + there) / 2
        found = moved + np.log(_mass(curved, linear, here)) - np.log(_mass(curved, linear, np.array([there])))
        return np.where(room > 0, found, -np.inf)


def _room(others: Array) -> Array:
    return np.asarray(1.0 - (others**2).sum(axis=1))


def _tilt(curved: Array, linear: Array) -> float:
    """Return the λ >= 0 by which squares of independent normals add up to 1 on average, or 0."""
    size, low = len(curved), 0.0
    high = (size + math.sqrt(size**2 + 4 * float(linear @ linear))) / 2  # where they would with curved = 0

    def above(tilt: float) -> bool:
        total = curved + tilt
        return bool(((linear / total) ** 2 + 1 / total).sum() > 1)

    if not above(0.0):
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def _best(curved: float, linear: float, tilt: float) -> float:
    """Return the A in (0, 1] at which log h is largest: its slope falls, and is (ends of the density) / (√A G) - λ."""
    low, high = 2.0**-60, 1.0
    for _ in range(12):
        grid = np.linspace(low, high, 33)
        end = np.sqrt(grid)
        top = np.minimum(end, linear / curved)
        steep = np.maximum(linear - curved * top, 0.0)
        above, below = end - top, end + top
        height = np.exp(-curved * above**2 / 2) + np.exp(-(steep + curved * below / 2) * below)
        rising = int((height > tilt * end * _mass(curved, linear, end)).sum())
        low, high = grid[max(rising - 1, 0)], grid[min(rising, 32)]
    return float(high)


def _mass(curved: float, linear: float, end: Array) -> Array:
    """Integrate exp(linear t - curved t² / 2) over [-end, end], over its largest value there; linear >= 0."""
    nodes, weights = _quadrature()
    top = np.minimum(end, linear / curved)
    steep = np.maximum(linear - curved * top, 0.0)
    reach = 2 * DROP / (steep + np.sqrt(steep * steep + 2 * curved * DROP))
    up, down = np.minimum(end - top, reach), np.minimum(end + top, reach)
    wide = up + down
    below = wide[:, None] * nodes - up[:, None]
    return np.asarray(wide * (np.exp(-(steep[:, None] + curved * below / 2) * below) @ weights))


@cache
def _quadrature() -> tuple[Array, Array]:
    """64 nodes on [0, 1]: errors of 1e-15 for a normal density that falls by e^-40 or less to either side."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2
