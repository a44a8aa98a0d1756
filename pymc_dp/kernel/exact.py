"""Exact draws of one parameter, or of probabilities, from exact sums; float64, outside of the kernel's claim.

A row's log-likelihood is linear in whole numbers that it adds, which lie in an enforced set. Its range over a public
box is a seminorm of these, so that it is largest at two vertices of the set, where it has a closed form.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, final, override

import numpy as np

from pymc_dp.kernel import draw, limits
from pymc_dp.kernel.arguments import exact, exact_all, finite, positive, word
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.payer import Array
from pymc_dp.kernel.shapes import LONGEST, Facts, Interval, MHot, Shape
from pymc_dp.kernel.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal

DIGITS = draw.decimals(60)
LARGEST = Fraction(2**1000)
"""Above it a float may become infinite, for some tables alone."""
ERROR = Fraction(1, 10**40)
"""Bound of the relative error of a logarithm in 60 digits, of a fraction that is 1e-16 or more away from 1."""


class Family(ABC):
    """A posterior that is conjugate up to its box."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """What one row adds."""

    @abstractmethod
    def range(self, neighbours: str) -> Fraction:
        """Return by how much neighbours move the log-likelihood over the box at most, as a range; for one row."""

    @abstractmethod
    def check_floats(self, beta: float) -> None:
        """Refuse numbers that floats cannot hold for some table, or not without losing its rows; before it is paid."""

    @abstractmethod
    def _draw(self, rng: Any, sums: Array, beta: float) -> Array:
        """Draw from the posterior of exact sums at an inverse temperature. **Private** release."""


@final
@dataclass(frozen=True)
class Counted(Shape):
    """A row adds (k, trials - k), k its number held within [0, trials]."""

    trials: int
    signless = True

    @property
    @override
    def facts(self) -> Facts:
        m = self.trials
        return Facts(1, 2, (m, m**2), (2 * m, 2 * m**2))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        limits.hold_whole(found, np.array([0]), np.array([self.trials]), whole[:, :1])
        whole[:, 1] = self.trials - whole[:, 0]


@final
@dataclass(frozen=True, kw_only=True)
class OneParameter(Family):
    """A likelihood exp(a φ(θ) + b ψ(θ)), and its prior, restricted to [low, high].

    ======  ==========================  ======================================
    kind    (φ, ψ)                      prior
    ======  ==========================  ======================================
    beta    (log θ, log(1 - θ))         θ^(prior_0 - 1) (1 - θ)^(prior_1 - 1)
    gamma   (log θ, -θ)                 θ^(prior_0 - 1) e^(-prior_1 θ)
    normal  (θ, -θ²/2)                  e^(prior_0 θ - prior_1 θ²/2)
    ======  ==========================  ======================================

    Parameters
    ----------
    low, high : float
        Public box; within (0, 1) or above 0 where φ asks for it.
    prior : (float, float)
    first, second : (int, int)
        Ends of the whole numbers that a row adds to a and b; >= 0 for b, and for a unless `kind` is normal.
    units : (float, float)
        What these count in.
    trials : int, optional
        For beta, instead of `first` and `second`: a row adds (k, trials - k).
    """

    kind: Literal["beta", "gamma", "normal"]
    low: float
    high: float
    prior: tuple[float, float]
    first: tuple[int, int] = (0, 1)
    second: tuple[int, int] = (0, 1)
    units: tuple[float, float] = (1.0, 1.0)
    trials: int | None = None

    def __post_init__(self) -> None:
        boxes = {"beta": (0.0, 1.0), "gamma": (0.0, math.inf), "normal": (-math.inf, math.inf)}
        least, most = boxes[word("kind", self.kind, boxes)]
        set_floats(self, "low", "high")
        set_floats(self, "prior", "units", length=2)
        exact_all(2, first=self.first, second=self.second)
        if not least < self.low < self.high < most:
            raise ArgumentError(f"The box must lie within ({least:g}, {most:g}), got ({self.low:g}, {self.high:g}).")
        positive(units=min(self.units), prior=self.prior[1])
        if self.second[0] < 0 or (self.kind != "normal" and (self.first[0] < 0 or self.prior[0] <= 0)):
            raise ArgumentError("Whole numbers and priors of this kind must not be below 0.")
        if self.trials is None:
            Interval((self.first[0], self.second[0]), (self.first[1], self.second[1]))  # refuses what is none
        elif self.kind != "beta":
            raise ArgumentError("trials go with kind='beta'.")
        else:
            exact(1, LONGEST, trials=self.trials)

    @property
    @override
    def shape(self) -> Shape:
        if self.trials is not None:
            return Counted(self.trials)
        return Interval((self.first[0], self.second[0]), (self.first[1], self.second[1]))

    @override
    def range(self, neighbours: str) -> Fraction:
        corners = list(itertools.product(self.first, self.second))
        if self.trials is not None:
            corners = [(0, self.trials), (self.trials, 0)]
        others = corners if neighbours == "replace" else [(0, 0)]
        moves = itertools.product(corners, others)
        return max(self._range(a - c, b - d) for (a, b), (c, d) in moves)

    def _range(self, a: int, b: int) -> Fraction:
        """Return the range over the box of a φ + b ψ, or a little more: it is at the ends, or where the slope is 0."""
        one, two = a * Fraction(self.units[0]), b * Fraction(self.units[1])
        points = [Fraction(self.low), Fraction(self.high)]
        below = one + two if self.kind == "beta" else two
        if below and points[0] < one / below < points[1]:
            points.append(one / below)
        values, room = list[Fraction](), Fraction(0)
        for point in points:
            terms = self._terms(one, two, point)
            values.append(terms[0] + terms[1])
            room = max(room, abs(terms[0]) + abs(terms[1]))
        return max(values) - min(values) + 2 * ERROR * room

    def _terms(self, a: Fraction, b: Fraction, point: Fraction) -> tuple[Fraction, Fraction]:
        if self.kind == "normal":
            return a * point, -b * point**2 / 2
        return a * _log(point), b * (_log(1 - point) if self.kind == "beta" else -point)

    @override
    def check_floats(self, beta: float) -> None:
        ends = [(0, self.trials)] * 2 if self.trials is not None else [self.first, self.second]
        given = zip(self.prior, self.units, ends, strict=True)
        a, _ = (most_of(p, Fraction(beta) * Fraction(unit) * max(map(abs, end))) for p, unit, end in given)
        if self.kind == "normal" and a >= LARGEST * Fraction(self.prior[1]):
            raise ArgumentError("The second number of prior is too small for floats beside what rows may add.")

    @override
    def _draw(self, rng: Any, sums: Array, beta: float) -> Array:
        a, b = (p + beta * unit * int(s) for p, unit, s in zip(self.prior, self.units, sums, strict=True))
        if self.kind == "beta":
            return np.asarray(truncated_beta(rng, a, b, self.low, self.high))
        if self.kind == "gamma":
            return np.asarray(truncated_gamma(rng, a, b, self.low, self.high))
        return np.asarray(truncated_normal(rng, a / b, b**-0.5, self.low, self.high))


@final
@dataclass(frozen=True, kw_only=True)
class Probabilities(Family):
    """Counts of levels, `most` of a row at most, and a Dirichlet prior, restricted to p_k >= least_k.

    Range: two rows of one level each, m log(p_i / p_j), between (top_i, least_j) and (least_i, top_j), where top_i is
    1 less the other bounds; a row against none, m log p_i, between top_i and least_i.
    """

    prior: tuple[float, ...]
    least: tuple[float, ...]
    most: int = 1

    def __post_init__(self) -> None:
        set_floats(self, "prior", "least", length=None)
        exact(1, LONGEST, most=self.most)
        positive(prior=min(self.prior), least=min(self.least))
        if len(self.prior) != len(self.least) or len(self.prior) < 2 or math.fsum(self.least) >= 1 - 1e-9:
            raise ArgumentError("prior and least must be of 2 levels or more, and least add up to less than 1.")

    @property
    @override
    def shape(self) -> Shape:
        return MHot(len(self.prior), self.most)

    @override
    def range(self, neighbours: str) -> Fraction:
        room = 1 - sum(map(Fraction, self.least), Fraction(0))
        wide = sorted((_log(1 + room / Fraction(least)) for least in self.least), reverse=True)
        return self.most * (wide[0] + (wide[1] if neighbours == "replace" else 0)) * (1 + ERROR)

    @override
    def check_floats(self, beta: float) -> None:
        most_of(max(self.prior), Fraction(beta) * self.most)

    @override
    def _draw(self, rng: Any, sums: Array, beta: float) -> Array:
        return np.asarray(truncated_dirichlet(rng, np.array(self.prior) + beta * sums, np.array(self.least)))


def most_of(prior: float, row: Fraction, limit: Fraction = LARGEST) -> Fraction:
    """Return the most that a prior and the rows of any table add up to; refuse what reaches a limit."""
    found = abs(Fraction(prior)) + row * limits.MOST_ROWS
    if found >= limit:
        raise ArgumentError(
            "What the rows of some tables add up to is too large for floats. Take a smaller beta, units nearer to 1, "
            "or a wider prior."
        )
    return found


def _log(value: Fraction) -> Fraction:
    return Fraction(DIGITS.ln(DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))))


def set_floats(family: Family, *names: str, length: int | None = 0) -> None:
    """Make fields Python's floats: numbers, or tuples of so many numbers (None: of any)."""
    for name in names:
        value = getattr(family, name)
        if length == 0:
            found: Any = finite(name, value)
        elif type(value) is tuple and value and length in (None, len(value)):
            found = tuple(finite(name, each) for each in value)
        else:
            raise ArgumentError(f"{name} must be a tuple of {length or 'one or more'} numbers, got {value!r}.")
        object.__setattr__(family, name, found)
