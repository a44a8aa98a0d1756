"""Sums of a regression: products of a row's numbers, as one certified shape."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import final, override

from pymc_dp.kernel.arguments import exact, exact_all, finite_all, flag
from pymc_dp.kernel.blocks import Blocks
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.shapes import (
    Array,
    Ball,
    Circle,
    Curve,
    Facts,
    Interval,
    MHot,
    Move,
    OneHot,
    OneOf,
    Products,
    Shape,
)

MOST_BITS = 20
FARTHEST = 1e150
"""How far a number of a row in a ball is looked at, in units of the norm: its square is finite."""


@final
@dataclass(frozen=True, kw_only=True)
class Regression(Shape):
    """A row in a cell, with predictors t and a response u, adds products of these in steps of 4^-bits.

    In this order: 1 to the size of its cell, with `sizes`; t (unless `known`) and u to its cell, with `constant`;
    t_i t_j for i <= j (unless `known`), t_i u, and u² with `square`: in all cells together, or `apart` in its own. Rows
    are read as they are stored (`gram_sums.Regressed`); the kernel rounds, and multiplies whole numbers.

    Parameters
    ----------
    balls : tuple of int
        Numbers of predictors whose vectors are no longer than 1.
    boxes : int
        Number of the other predictors, each within [-1, 1], as u is.
    cells : int
    sizes : bool
        Whether cells are private (or, of one, the number of rows), and their sizes are released.
    known : bool
        Whether t and the cell are functions of public columns alone: a row then changes u alone.
    constant, square, apart : bool
    bits : int
        A number counts in units of 2^-bits.
    longest : (float, float), optional
        Of the rows that are `known`: no sum of |t|, and of t², is larger; a row for which it is adds nothing.

    Notes
    -----
    Move: `blocks.Blocks` has the proof, case by case, in reals; rows are rounded before they are multiplied.
    """

    balls: tuple[int, ...] = ()
    boxes: int = 0
    cells: int = 1
    sizes: bool = False
    known: bool = False
    constant: bool = True
    square: bool = True
    apart: bool = False
    bits: int = 15
    longest: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        exact_all(None, balls=self.balls)
        exact(2, **{f"balls[{i}]": size for i, size in enumerate(self.balls)})
        exact(0, boxes=self.boxes)
        exact(1, cells=self.cells)
        exact(1, MOST_BITS, bits=self.bits)
        for name in ("sizes", "known", "constant", "square", "apart"):
            flag(name, getattr(self, name))
        if not 1 <= self.width <= 1000 or (self.known and self.sizes):
            raise ArgumentError("There must be from 1 to 1000 predictors; if these are public, so are the cells.")

        if self.longest is not None:
            if not self.known:
                raise ArgumentError("longest is of predictors that are public.")
            longest = finite_all("longest", self.longest)
            if len(longest) != 2 or min(longest) < 0:
                raise ArgumentError("longest must be two numbers >= 0: a sum, and one of squares.")
            object.__setattr__(self, "longest", longest)

    @property
    def most_public(self) -> tuple[int, int]:
        """The largest sums of |t| and of t² of a row, in units of 2^-bits and 4^-bits."""
        assert self.longest is not None
        one, two = (Fraction(part) for part in self.longest)
        return int(one * 2**self.bits), int(two * 4**self.bits)

    @property
    def width(self) -> int:
        """Number of predictors."""
        return sum(self.balls) + self.boxes

    @override
    def _shifts(self, moved: int, *, one: bool, replaced: bool) -> None:
        """Norms are bounded apart, and of a single product not by one move."""

    @override
    def move(self, neighbours: str, *, moves: bool = False, weighted: bool = False, rows: int = 1) -> Move:
        if neighbours == "add_remove" and self.known:
            raise PrivacyError("A row that is added brings numbers of its own, none of which is public.")
        return super().move(neighbours, rows=rows)

    @property
    def entry(self) -> int:  # type: ignore[override]
        """A product of two numbers, or a size."""
        return int(4**self.bits)

    @cached_property
    @override
    def facts(self) -> Facts:
        blocks = Blocks(
            balls=self.balls,
            boxes=self.boxes + 1,
            constant=self.constant,
            square=self.square,
            sizes=self.sizes,
            apart=self.apart,
            longest=self.longest,
        )
        l1, l2 = blocks.known if self.known else (blocks.stay_l1, blocks.stay_squared)
        if self.cells > 1 and self.sizes:
            l1, l2 = max(l1, blocks.move_l1), max(l2, blocks.move_squared)
        d, unit = self.width, self.entry
        first = self.cells * (d * (not self.known) + 1) if self.constant else 0
        second = d * (d + 1) // 2 * (not self.known) + d + self.square
        size = self.cells * self.sizes + first + second * (self.cells if self.apart else 1)
        norms = [(ceil(a * unit), ceil(b * unit**2)) for a, b in ((blocks.row_l1, blocks.row_squared), (l1, l2))]
        return Facts((self.cells > 1) + d + 1, size, norms[0], norms[1])

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        raise ArgumentError("Products of a regression are added up as `gram_sums.Regressed` reads them.")


CERTIFIED: tuple[type[Shape], ...] = (OneHot, MHot, Interval, Curve, Circle, OneOf, Ball, Products)
