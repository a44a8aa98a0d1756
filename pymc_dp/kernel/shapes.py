"""Certified shapes: sets of whole numbers that one row adds, and by how much neighbours can then move a sum.

A norm alone would cost a third more noise than these. The kernel holds each row within the shape, and computes the
move from the shape, the neighbours, cells, weights and persons: no caller states a sensitivity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple, final, override

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel import limits
from pymc_dp.kernel.accounting.events import DiscreteGaussianEvent, DiscreteLaplaceEvent, Event
from pymc_dp.kernel.arguments import exact, exact_all, flag
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.table import WEIGHT_BITS

Array = npt.NDArray[Any]

LONGEST = 2**30
"""Largest L1 norm of what a row adds: 2^32 rows of it fit into 64 bits."""
MOST_POINTS, MOST_PAIRED = 2**16, 2**10
"""Of a list, and of those all pairs of which are compared."""
GRID = 2**30
FACTOR = 2**15
"""Units of a vector whose outer product has a Frobenius norm of 1: 2^30 units."""
ROOM = 1 - 1e-8
"""For the rounding of a sum of up to 10^7 squares, in floats."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """By how much neighbours move a vector of whole numbers at most: exact whole numbers.

    `shifts` are those of the coordinates in a worst case that dominates all, in some order; `coordinates` their number.
    """

    l1: int
    l2_squared: int
    shifts: tuple[int, ...] | None = None
    coordinates: int | None = None

    def event(self, noise: str, scale: float) -> Event:
        """Return what discrete noise of a scale costs, in whole units; ArgumentError for a scale that is none."""
        if noise == "laplace":
            return DiscreteLaplaceEvent(scale=scale, sensitivity=self.l1, shifts=self.shifts)
        if noise != "gaussian":
            raise ArgumentError(f"noise must be 'laplace' or 'gaussian', got {noise!r}.")
        count = self.coordinates if self.shifts is None else None
        return DiscreteGaussianEvent(scale=scale, l2_squared=self.l2_squared, shifts=self.shifts, coordinates=count)


class Facts(NamedTuple):
    """What a shape is: numbers that the row map returns, whole numbers that a row adds, and how large these are.

    `magnitude` is the largest L1 and squared L2 norm of what a row adds, `spread` the largest distances of two rows.
    """

    inputs: int
    size: int
    magnitude: tuple[int, int]
    spread: tuple[int, int]


class Shape(ABC):
    """What one row adds: whole numbers of a set, computed from the numbers of a row map, in whole units.

    Attributes
    ----------
    signless : bool
        Whether a row adds numbers >= 0 alone: two in different places are then no further apart than √2.
    entry : int
        Largest entry of what a row adds.
    """

    signless = False
    entry = LONGEST

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """Sizes and bounds, proved in the docstring of the class."""

    @abstractmethod
    def _hold(self, found: Array, whole: Array) -> None:
        """Write (n_rows, size) whole numbers of the set, whatever stands in (n_rows, inputs) floats. **Private**."""

    @final
    def finer(self, weighted: bool) -> int:
        """Return by how many bits weighted sums are finer, so that they fit."""
        return min(WEIGHT_BITS, max(0, 30 - self.facts.magnitude[0].bit_length())) if weighted else 0

    def move(self, neighbours: str, *, moves: bool = False, weighted: bool = False, rows: int = 1) -> Move:
        """Return by how much a sum moves at most.

        Parameters
        ----------
        neighbours : {"replace", "add_remove"}
        moves : bool
            Whether a row may change its cell under replace: it then leaves one, and joins another.
        weighted : bool
            A weighted row is no larger in any norm, and keeps its signs; two are as far apart as two magnitudes.
        rows : int
            Of a person, add_remove alone: so many times a row's norm, in L2 too, for all may be alike.
        """
        (_, size, (one, square), spread), finer = self.facts, self.finer(weighted)
        if neighbours == "add_remove":
            alone = self._shifts(one, one=size == 1, replaced=False) if rows == 1 and not weighted else None
            return Move(l1=rows * one << finer, l2_squared=rows**2 * square << 2 * finer, shifts=alone)
        if weighted:
            return Move(l1=2 * one << finer, l2_squared=(2 if self.signless else 4) * square << 2 * finer)
        l1, l2 = (max(spread[0], 2 * one), max(spread[1], 2 * square)) if moves else spread
        return Move(l1=l1, l2_squared=l2, shifts=self._shifts(l1, one=size == 1 and not moves, replaced=True))

    def _shifts(self, moved: int, *, one: bool, replaced: bool) -> tuple[int, ...] | None:
        return (moved,) if one else None


@final
@dataclass(frozen=True)
class OneHot(Shape):
    """A row counts 1 at one of `levels` places, the one that its number rounds to; a number of no place counts nowhere.

    Move: 1 under add_remove; two places by 1 under replace (L1 2, L2 √2).
    """

    levels: int
    signless = True

    def __post_init__(self) -> None:
        exact(1, levels=self.levels)

    @property
    @override
    def facts(self) -> Facts:
        return Facts(1, self.levels, (1, 1), (2, 2) if self.levels > 1 else (1, 1))

    @override
    def _shifts(self, moved: int, *, one: bool, replaced: bool) -> tuple[int, ...]:
        return (1, 1) if replaced and not one else (1,)

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        limits.hold_places(found, self.levels, whole)


@final
@dataclass(frozen=True)
class MHot(Shape):
    """A row adds counts >= 0 to `levels` places, `most` together at most.

    Move: two such vectors differ by 2m in L1 and by 2m² in squared L2 at most (a² + b² - 2ab, ab >= 0).
    """

    levels: int
    most: int
    signless = True

    def __post_init__(self) -> None:
        exact(1, levels=self.levels)
        exact(1, LONGEST, most=self.most)

    @property
    @override
    def facts(self) -> Facts:
        m, apart = self.most, 2 if self.levels > 1 else 1
        return Facts(self.levels, self.levels, (m, m**2), (apart * m, apart * m**2))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        limits.hold_counts(found, self.most, whole)


@final
@dataclass(frozen=True)
class Interval(Shape):
    """A row adds one whole number for each of some entries, the k-th within [low_k, high_k]; NaN counts as 0.

    Move: each entry from one end to the other under replace, from 0 to the farther end under add_remove.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    def __post_init__(self) -> None:
        exact_all(None, low=self.low, high=self.high)
        ends = list(zip(self.low, self.high, strict=False))
        if not ends or len(self.low) != len(self.high) or not all(a <= b for a, b in ends):
            raise ArgumentError("Ends of intervals must be whole numbers, low <= high, one pair for each entry.")
        if not 1 <= max(abs(end) for end in (*self.low, *self.high)) <= LONGEST:
            raise ArgumentError(f"The farthest end of intervals must be from 1 to {LONGEST}. Take a coarser unit.")

    @property
    @override
    def facts(self) -> Facts:
        far = [max(abs(a), abs(b)) for a, b in zip(self.low, self.high, strict=True)]
        wide = [b - a for a, b in zip(self.low, self.high, strict=True)]
        norms = [(sum(each), sum(part**2 for part in each)) for each in (far, wide)]
        return Facts(len(far), len(far), norms[0], (max(norms[1][0], 1), max(norms[1][1], 1)))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        limits.hold_whole(found, np.array(self.low), np.array(self.high), whole)


@final
@dataclass(frozen=True)
class Curve(Shape):
    """A row adds a number k within ±`units`, and its square k²/units, rounded, less `units`/2 where `centred`.

    The kernel squares. With t = k/units and a = |t - t'|, |t + t'| <= 2 - a: L1 a (3 - a) <= 9/4; squared L2
    a² + a² (2 - a)² <= 4, where the intervals would be 3 and 5 apart. Roundings move a distance by 1 at most.
    """

    units: int = GRID
    centred: bool = True

    def __post_init__(self) -> None:
        flag("centred", self.centred)
        exact(2, GRID, units=self.units)
        if self.units % 2:
            raise ArgumentError(f"units must be an even number, got {self.units}.")

    @property
    @override
    def facts(self) -> Facts:
        G = self.units
        norms = ((3 * G + 1) // 2, G**2 + (G // 2 + 1) ** 2) if self.centred else (2 * G, G**2 + (G + 1) ** 2)
        return Facts(1, 2, norms, (9 * G // 4 + 1, (2 * G + 2) ** 2))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        G = self.units
        limits.hold_whole(found, np.array([-G]), np.array([G]), whole[:, :1])
        whole[:, 1] = (whole[:, 0] ** 2 + G // 2) // G - (G // 2 if self.centred else 0)


@final
@dataclass(frozen=True)
class Circle(Shape):
    """A row adds a point of a circle of `units`, both numbers rounded, NaN as 0; a point further out adds 0.

    Held are points no further out than `units` + 1, by their squares. Move: of two such points, √2 times as much in L1.
    """

    units: int = GRID

    def __post_init__(self) -> None:
        exact(1, GRID, units=self.units)

    @property
    @override
    def facts(self) -> Facts:
        G = self.units
        l1 = isqrt(2 * G**2) + 3, isqrt(8 * G**2) + 3
        return Facts(2, 2, (l1[0], (G + 2) ** 2), (l1[1], (2 * G + 2) ** 2))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        G = self.units
        limits.hold_whole(found, np.full(2, -G), np.full(2, G), whole)
        whole[(whole**2).sum(axis=1) > (G + 1) ** 2] = 0


@final
@dataclass(frozen=True, eq=False)
class OneOf(Shape):
    """A row adds one of some public points, (n, size) whole numbers, the one that its number rounds to, or 0.

    Move: the largest distance of two of them; of more than 2^10 points, the ranges of all entries together, or that of
    the first to any other where each entry has two values and `flips` says that two points differ as some point differs
    from the first. Squares are added in units of 2^20, rounded up.
    """

    points: Array

    def __post_init__(self) -> None:
        given = np.asarray(self.points)
        plain = given.dtype.kind in "iu" and given.ndim == 2 and 1 <= len(given) <= MOST_POINTS and given.size > 0
        if not plain or not (given.min() >= -LONGEST and given.max() <= LONGEST and given.any()):
            raise ArgumentError(
                f"Points must be up to {MOST_POINTS} rows of whole numbers within ±{LONGEST}, not all 0."
            )
        held = np.frombuffer(given.astype(np.int64).tobytes(), dtype=np.int64)  # whose memory nobody can write to
        object.__setattr__(self, "points", held.reshape(given.shape))

    @cached_property
    @override
    def facts(self) -> Facts:
        one, two = self._spread()
        return Facts(1, self.points.shape[1], _farthest(self.points), (max(one, 1), max(two, 1)))

    def _spread(self) -> tuple[int, int]:
        points = self.points
        if flips(points):
            return _farthest(points, points[0])
        if len(points) <= MOST_PAIRED:
            found = [_farthest(points[start:], point) for start, point in enumerate(points)]
            return max(one for one, _ in found), max(two for _, two in found)
        ranges = [int(item) for item in points.max(axis=0) - points.min(axis=0)]
        return sum(ranges), sum(item**2 for item in ranges)

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        places = np.rint(found[:, 0])
        good = (places >= 0) & (places < len(self.points))
        whole[:] = 0
        whole[good] = self.points[places[good].astype(np.int64)]


def _farthest(points: Array, origin: Array | int = 0) -> tuple[int, int]:
    """Largest L1 and squared L2 distance of points from one; squares of several numbers in whole units of 2^20."""
    one, two = 0, 0
    if points.shape[1] == 1:
        one = int(np.abs(points - origin).max())
        return one, one**2
    for start in range(0, len(points), 2**12):
        size = np.abs(points[start : start + 2**12] - origin)
        one = max(one, int(size.sum(axis=1).max()))
        two = max(two, int((-(-(size**2) >> 20)).sum(axis=1).max()) << 20)
    return one, two


def flips(points: Array) -> bool:
    """Whether points are of the rows of two-valued entries, by each of which every number is flipped, or never."""
    above = points > points.min(axis=0)
    if len(points) & (len(points) - 1) or not (points == np.where(above, points.max(axis=0), points.min(axis=0))).all():
        return False
    found = above[:1]
    while len(found) < len(points):
        found = np.concatenate([found, found ^ above[len(found)] ^ above[0]])
    return bool((found == above).all())


@final
@dataclass(frozen=True)
class Ball(Shape):
    """A row adds a vector of `width` numbers of an L2 norm of `units` at most, shortened to it; one with NaN adds 0.

    Move: two norms apart in L2; in L1 by Cauchy and Schwarz.
    """

    width: int
    units: int = limits.UNITS

    def __post_init__(self) -> None:
        exact(1, width=self.width)
        exact(1, GRID, units=self.units)

    @property
    @override
    def facts(self) -> Facts:
        one, square = isqrt(self.width * self.units**2), self.units**2
        return Facts(self.width, self.width, (one, square), (2 * one + 1, 4 * square))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        limits.hold_ball(found, self.units, whole)


@final
@dataclass(frozen=True)
class Products(Shape):
    """A row adds `width` numbers k within ±`units`, and all k_i k_j / units, i <= j, rounded, squares less units / 2.

    The kernel multiplies. With t = k / units, h = |t - t'| / 2, m = |t + t'| / 2 <= 1 - h and H = Σh, numbers move by
    2h, products by 2 (m_i h_j + h_i m_j) at most, squares by 4mh: together 2 (d + 2) H - 2 H² - 2 Σh² at most, largest
    where every h is (d + 2) / 2(d + 1): d (d + 2)² / 2(d + 1). A quarter of the squared L2 is at most |h|² (1 + |m|²) +
    (Σmh)² + 2 Σm²h², largest where every h is 0 or 1: k ones give 4k (1 + d - k). Roundings move each by 1 at most.
    """

    width: int
    units: int = GRID

    def __post_init__(self) -> None:
        exact(1, 100, width=self.width)
        exact(2, GRID, units=self.units)
        if self.units % 2:
            raise ArgumentError(f"units must be an even number, got {self.units}.")

    @property
    @override
    def facts(self) -> Facts:
        d, G = self.width, self.units
        crossed, size = d * (d - 1) // 2, d * (d + 3) // 2
        one, square = d * (G + G // 2) + crossed * G, (d + crossed) * G**2 + d * (G // 2) ** 2
        l1 = -(-d * (d + 2) ** 2 * G // (2 * (d + 1))) + size + 1
        corners = max(4 * k * (1 + d - k) for k in range(d + 1))
        return Facts(d, size, (one, square), (l1, (isqrt(corners * G**2) + 1 + isqrt(size) + 1) ** 2))

    @override
    def _hold(self, found: Array, whole: Array) -> None:
        d, G = self.width, self.units
        limits.hold_whole(found, np.full(d, -G), np.full(d, G), whole[:, :d])
        for place, (i, j) in enumerate(zip(*np.triu_indices(d), strict=True), start=d):
            whole[:, place] = (whole[:, i] * whole[:, j] + G // 2) // G - (G // 2 if i == j else 0)
