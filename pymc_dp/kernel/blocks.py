"""How far one row can move the sums of a regression, in real numbers: case by case, rounded up.

In what follows a *block* is a source that is a ball of two columns or more, or one bounded column, the response among
them: K balls, B bounded columns, P = K + B blocks of D columns. For two rows, τ is the inner product of a block's two
vectors. Norms of differences depend on lengths and on τ alone, and grow with lengths where τ stays: a ball's vectors
have length 1 in a worst pair. A column's have (1, s): the terms are convex in the squared length y of one where that
of the other is τ²/y, and so are largest at an end; all columns have their 1 in the same row, by rearrangement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, sqrt

import numpy as np

PRECISION = 2**40
"""Roots are rounded up to a multiple of one over it."""
ANGLES, LENGTHS = 1500, 300
"""Cells of the grid on which a function of two numbers is bounded."""


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """What moves depend on, and the moves, in pure numbers.

    Attributes
    ----------
    balls : tuple of int
        Columns of each ball of two or more.
    boxes : int
        Bounded columns, the response among them.
    constant, square, sizes, apart : bool
        As of `gram.Regression`.
    longest : (float, float) pair or None
        Of public rows: the largest Σ|t| and Σt² that one has, if these are known.
    """

    balls: tuple[int, ...]
    boxes: int
    constant: bool
    square: bool
    sizes: bool
    apart: bool
    longest: tuple[float, float] | None

    @property
    def count(self) -> int:
        """P."""
        return len(self.balls) + self.boxes

    @property
    def longest_l1(self) -> Fraction:
        """Largest sum of |t| and |u| of one row: w columns of a ball give the root of w."""
        return sum((root(width) for width in self.balls), Fraction(self.boxes))

    @property
    def row_squared(self) -> Fraction:
        """Square of the longest row: every block, and every product of two, is of length 1 at most.

        Attained where every vector lies along an axis; that of a ball with itself then adds 1.
        """
        return self.sizes + self.constant * Fraction(self.count) + self._second_squared

    @property
    def _second_squared(self) -> Fraction:
        return Fraction(self.count * (self.count + 1), 2) - (not self.square)

    @property
    def row_l1(self) -> Fraction:
        """Largest L1 norm of a row, attained where all entries of a block are equal.

        Products i <= j add up to half of ``(Σ|z|)² + Σz²``.
        """
        return self.sizes + self.constant * self.longest_l1 + self._second_l1

    @property
    def _second_l1(self) -> Fraction:
        return (self.longest_l1**2 + self.count) / 2 - (not self.square)

    @property
    def stay_squared(self) -> Fraction:
        """Square of how far a row moves within its cell: see `_moved_squared`."""
        return self._moved_squared(self.constant)

    @property
    def move_squared(self) -> Fraction:
        """A row that changes its cell: sizes and first order count twice; the rest moves as in one cell, or twice too.

        All parts are largest for the same pair of rows, with |s| = 1.
        """
        second = 2 * self._second_squared if self.apart else self._moved_squared(False)
        return 2 * (self.sizes + self.constant * Fraction(self.count)) + second

    def _moved_squared(self, constant: bool) -> Fraction:
        """Largest squared distance of two rows in one cell.

        Two columns i <= j add ``(1 - s_i s_j)²`` (the constant is one more, with s = 1 and no square), a ball and a
        column ``1 + s² - 2τs``, two balls ``2 - 2ττ'``; so do entries i <= j of one ball, at most, with τ' = τ: they
        are those of a matrix whose other half is left out, and which is diagonal where the ball is turned so that its
        two vectors mirror each other. As a function of one s, (1 - s²)² <= 1 - s² makes all terms together no more
        than a quadratic with s² (A - 1), A >= 1 what the other s² and the balls and the constant add up to, with
        equality at s = -1 and 1: the largest value is at an end. (Without balls and constant A may be less for all s;
        then the sum is less than ``N + T (T - 1) / 2`` for N products and T = Σs² < B / (B - 1), which B >= 2 ends
        exceed.) With f ends of -1 and a = B - 2f, and 1 for the constant, columns add ``4f (B - f)``, and 4f;
        balls ``K (K + 1) + 2KB``, and 2K, less ``(Στ)² + Στ² + 2a Στ``, which is least where all τ are ``-a / (K + 1)``
        or, beyond, an end.
        """
        balls, boxes = len(self.balls), self.boxes
        if boxes == 1 and not balls and not constant:
            return Fraction(int(self.square))
        fixed = balls * (balls + 1) + 2 * balls * (boxes + constant)

        def flipped(f: int) -> Fraction:
            ends = abs(boxes + constant - 2 * f)
            if ends <= balls + 1:
                gain = Fraction(balls * ends**2, balls + 1)
            else:
                gain = Fraction(2 * balls * ends - balls * (balls + 1))
            return 4 * f * (boxes + constant - f) + fixed + gain

        return max(flipped(f) for f in range(boxes + 1))

    @property
    def known(self) -> tuple[Fraction, Fraction]:
        """L1 and squared L2 where only u moves, by 2h about a middle of at most 1 - h.

        With w the sum of |t| of the longest public row, and 1 for the constant, u and products move by 2hw, u² by
        4h (1 - h): at most 2w, or (w + 2)² / 4 at h = (w + 2) / 4 < 1. With v the sum of t², and 1, the square is
        ``4h²v + 16h² (1 - h)² <= 4v``, as ``4h² (1 - h)² <= 1 - h² <= v (1 - h²)`` where v is 1 or more.
        """
        sums, squared = self.longest_l1 - 1, Fraction(self.count - 1)
        if self.longest is not None:
            sums, squared = min(sums, Fraction(self.longest[0])), min(squared, Fraction(self.longest[1]))
        weight = sums + self.constant
        l1 = (weight + 2) ** 2 / 4 if self.square and weight < 2 else 2 * weight
        squares = squared + self.constant
        # With less than 1 in v, u² counts in full: 4h²v + 16h² (1 - h)² is no more than 4v + 1.
        return l1, 4 * squares + (self.square if squares < 1 else 0)

    @property
    def stay_l1(self) -> Fraction:
        """How far a row moves within its cell, in L1: bounds of `_columns_l1`, `_ball_l1` and `_mixed_l1`."""
        if not self.balls:
            return self._columns_l1()
        if len(self.balls) == 1 and self.boxes == 1:
            return self._ball_l1(moves=False)
        return min(2 * (self.row_l1 - self.sizes), *self._mixed_l1(self.constant))

    @property
    def move_l1(self) -> Fraction:
        """A row that changes its cell, in L1; for columns see `_columns_l1`."""
        twice = 2 * (self.sizes + self.constant * self.longest_l1)
        if self.apart:
            return twice + 2 * self._second_l1
        if not self.balls and self.constant:
            extra = Fraction(self.boxes, 2) if self.square else Fraction(self.boxes, 2) + 1
            return 2 * self.sizes + self.boxes + self._second_l1 + extra
        if not self.balls:
            return 2 * self.sizes + self._columns_l1()
        if len(self.balls) == 1 and self.boxes == 1:
            return 2 * self.sizes + self._ball_l1(moves=True)
        return twice + min(2 * self._second_l1, *self._mixed_l1(False))

    def _columns_l1(self) -> Fraction:
        """Largest L1 distance of two rows of B bounded columns in one cell.

        With h = |z - z'|/2 and m = |z + z'|/2 <= 1 - h, columns move by 2h, products by ``2 (m_i h_j + h_i m_j)`` at
        most, and both (also |z| + |z'|, twice the larger of m and h) are largest for rows of 1 and of s = 1 - 2h, where
        products move by ``1 - s_i s_j``. That is ``N - q(s)``: N sums less ``q = (T² + Σs²) / 2``, T = Σs, and T more
        with the constant, s² less of the response without its square. By Σs² >= T² / B, q is at least
        ``T² (B + 1) / 2B``, and T: 0, or ``-B / 2 (B + 1)``. Without the square let T be of the d predictors: q is
        linear in the s of the response, and at least ``T² (d + 1) / 2d - |T|`` or, with the constant,
        ``T² (d + 1) / 2d + T - |T + 1|``, thus ``-d / 2 (d + 1)`` or -1.

        A row that changes its cell adds Σ(1 + |s|) instead of Σ(1 - s): ``|s| - s²/2 <= 1/2`` for every column; without
        the square of u, ``|s| - T²/2 - T s <= 1 + 1/2`` for the response.
        """
        size = self.boxes
        sums = self.constant * size + self._second_l1
        if self.square:
            return sums + self.constant * Fraction(size, 2 * (size + 1))
        return sums + (1 if self.constant else Fraction(size - 1, 2 * size))

    def _ball_l1(self, *, moves: bool) -> Fraction:
        """Upper bound of the L1 distance for one ball of w columns, and the response.

        By Cauchy and Schwarz, m numbers whose squares add up to l² add up to l √m at most; for the entries i <= j of
        the ball take the symmetric matrix, of squared length 2 - 2τ², and weights of 1 on and 1/2 off its diagonal,
        whose squares add up to w (w + 3) / 4. So with τ = cos γ the distance is no more than::

            √(w (w + 3) / 2) sin γ + √w √(1 + s² - 2 s cos γ) + (1 - s²) + 2 √w sin(γ / 2) + (1 - s)

        the last two with the constant, or twice √w and 1 + |s| where the row changes its cell; 1 - s² with the square.
        The largest value is bounded on every cell of a grid, term by term.
        """
        width = self.balls[0]
        root = sqrt(width)
        angles, ends = np.linspace(0, np.pi, ANGLES + 1)[:, None], np.linspace(-1, 1, LENGTHS + 1)[None, :]
        sines = np.sin(angles[:-1] + np.clip(np.pi / 2 - angles[:-1], 0, np.pi / ANGLES))
        least = np.clip(0.0, ends[:, :-1], ends[:, 1:])
        # Longer with the angle where s > 0 and shorter where s < 0; convex in s.
        lengths = np.sqrt(np.maximum(1 + ends**2 - 2 * ends * np.cos(angles), 0))
        corners = [lengths[:-1, :-1], lengths[1:, :-1], lengths[:-1, 1:], lengths[1:, 1:]]
        total = sqrt(width * (width + 3) / 2) * sines + root * np.max(corners, axis=0) + self.square * (1 - least**2)
        if self.constant and moves:
            total = total + 2 * root + 1 + np.maximum(abs(ends[:, :-1]), abs(ends[:, 1:]))
        elif self.constant:
            total = total + 2 * root * np.sin(angles[1:] / 2) + 1 - ends[:, :-1]
        return Fraction(float(total.max()) * (1 + 1e-9))

    def _mixed_l1(self, constant: bool) -> tuple[Fraction, Fraction]:
        """Upper bounds of the L1 distance for any blocks, as in `_ball_l1`: by all sums together, and block by block.

        A ball's own entries move by √2 at most, products of two blocks by 2, and so does a block; u² by 1.
        """
        widths = [*self.balls, *[1] * self.boxes]
        own = [Fraction(width * (width + 3), 4) for width in widths]
        crossed = [a * b for i, a in enumerate(widths) for b in widths[:i]]
        count = sum(own) + sum(crossed) + constant * sum(widths) - (not self.square)
        apart = sum((2 * root(number) for number in self._numbers(crossed, widths, constant)), Fraction(0))
        apart += sum((root(2 * number) for number in own[: len(self.balls)]), Fraction(self.boxes - (not self.square)))
        return root(count * self._moved_squared(constant)), apart

    @staticmethod
    def _numbers(crossed: list[int], widths: list[int], constant: bool) -> Iterator[int]:
        yield from crossed
        yield from widths if constant else ()


def root(square: Fraction | int) -> Fraction:
    """Square root, rounded up; of a square of a whole number itself."""
    return Fraction(isqrt(ceil(square * PRECISION**2) - 1) + 1, PRECISION) if square else Fraction(0)
