"""What one row adds to a release: integers on a public grid, and how large they can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, override

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.readings import Counts, Places, Powers, Reading
from pymc_dp.kernel.shapes import GRID


@dataclass(frozen=True, kw_only=True)
class LevelCounts:
    """A row adds 1 to the count of its level (in its cell), or `trials` to the counts of all levels together.

    Attributes
    ----------
    labels : tuple of str
        One label per level.
    trials : int or None
        None where a row is a level. Else a row is a vector of counts, one per level, and adds ``clip(count, 0, what
        is left of the trials)`` level by level, and all that is left to the last: so that every row, whatever it
        holds, adds whole numbers >= 0 whose sum is `trials`.
    """

    labels: tuple[str, ...]
    trials: int | None = None
    kind: Literal["counts"] = "counts"

    @property
    def per_row(self) -> int:
        """What one row adds to all counts together."""
        return 1 if self.trials is None else self.trials

    @property
    def width(self) -> int:
        """Entries of a row."""
        return 1 if self.trials is None else self.n_levels

    @property
    def n_levels(self) -> int:
        """Number of levels K."""
        return len(self.labels)

    def reading(self, *, second: bool = False) -> Reading:
        """Return how the kernel reads a row; `second` leaves out the first of two counts, whose sum is known."""
        if self.trials is None:
            return Places(self.n_levels, second=second)
        return Counts(self.n_levels, self.trials, second=second)

    def of_rows(self, values: Array) -> Array:
        """Return the levels of drawn rows, (n_rows,)."""
        return values.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class OwnTotals(LevelCounts):
    """A row is a vector of counts with a total of its own, `trials` at most.

    It adds ``clip(count, 0, what is left of the trials)`` level by level, the last level included: so that every row,
    whatever it holds, adds whole numbers >= 0 whose sum is at most `trials`.
    """

    @override
    def reading(self, *, second: bool = False) -> Reading:
        return Counts(self.n_levels, self.trials or 1, rest=False, second=second)


@dataclass(frozen=True, kw_only=True)
class BoundedMoments:
    """A row adds powers of its clamped, centred and rounded value, as integers.

    With ``k = rint((clip(x, low, high) - centre) / unit)``, power 1 adds ``k`` and power 2 adds
    ``rint(k**2 / GRID) - offset``, where ``unit = half_width / GRID`` wherever power 2 is released. An offset of
    ``GRID / 2`` centres the square, which makes a row that changes its cell move less.

    Attributes
    ----------
    low, high : float
        Public bounds of the value, in its own units.
    centre, unit, half_width : float
        Origin, grid step and largest distance from the origin.
    powers : tuple of int
        Which of 1 and 2 are released.
    offset : int
        Subtracted from the rounded square, in grid steps.
    """

    low: float
    high: float
    centre: float
    unit: float
    half_width: float
    powers: tuple[int, ...]
    offset: int = 0
    kind: Literal["moments"] = "moments"
    width: ClassVar[int] = 1

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per power."""
        origin = "x" if self.centre == 0 else f"(x - {self.centre:g})" if self.centre > 0 else f"(x + {-self.centre:g})"
        shift = f" - {self.steps[-1] * self.offset:g}" if self.offset else ""
        return tuple(f"sum {origin}" if power == 1 else f"sum {origin}^2{shift}" for power in self.powers)

    @property
    def steps(self) -> tuple[float, ...]:
        """Grid step of each power in the units of the data."""
        return tuple(self.unit if power == 1 else self.half_width**2 / GRID for power in self.powers)

    @property
    def scales(self) -> tuple[float, ...]:
        """Largest absolute value of each uncentred power, in the units of the data."""
        return tuple(self.half_width**power for power in self.powers)

    @property
    def shifts(self) -> tuple[float, ...]:
        """What is subtracted from each power of a row, in the units of the data: the offset of squares."""
        pairs = zip(self.powers, self.steps, strict=True)
        return tuple(self.offset * step if power == 2 else 0.0 for power, step in pairs)

    def projected(self, sums: Array, n: Array, noise: Array) -> Array:
        """Return the sums of `n` values nearest to given ones, per cell; squares leave a variance of `noise` at least.

        Parameters
        ----------
        sums : (n_cells, n_powers) array
            In the units of the data, the offset of squares subtracted.
        n : (n_cells,) array
        noise : (n_powers,) array
            Scale of the noise: squares that leave no variance would make the density of a standard deviation unbounded.
        """
        sums = sums + np.outer(n, self.shifts)
        if 1 in self.powers:
            sums[:, 0] = np.clip(sums[:, 0], n * (self.low - self.centre), n * (self.high - self.centre))
        if 2 in self.powers:
            least = np.zeros(len(n))
            if 1 in self.powers:
                np.divide(sums[:, 0] ** 2, n, out=least, where=n > 0)
            most = n * self.scales[-1]
            sums[:, -1] = np.clip(sums[:, -1], np.minimum(least + noise[-1], most), most)
        return sums - np.outer(n, self.shifts)

    def of_rows(self, values: Array) -> Array:
        """Return what unclamped rows add before they are rounded: (n_rows, n_powers), in units of the data."""
        return (values.ravel() - self.centre)[:, None] ** np.array(self.powers)

    def simulated_mean(self, rng: np.random.Generator, count: int) -> Array:
        """Mean statistic of made-up rows, nothing subtracted: (n_powers,) array."""
        return np.asarray(self.of_rows(made_up(rng, self.low, self.high, count, self.width)).mean(axis=0))

    def reading(self, *, second: bool = False) -> Powers:
        """Return how the kernel reads a row."""
        return Powers(self.low, self.high, self.centre, self.unit, self.powers, self.offset)

    @property
    def grid_steps(self) -> int:
        """How many steps of the grid the last power spans."""
        low, high = self.reading().ends
        return high - low

    @property
    def reach(self) -> tuple[int, int]:
        """Smallest and largest ``k`` that a row can have."""
        return self.reading().reach


@dataclass(frozen=True, kw_only=True)
class ExposedCounts:
    """A row adds its exposure and its count: two sums, each of values that are clamped and rounded by themselves.

    Attributes
    ----------
    exposure, counts : BoundedMoments
        Powers of order 1 of values from 0, nothing subtracted.
    of : str
        Name of the exposure: another column with the same bounds is no stand-in.
    """

    exposure: BoundedMoments
    counts: BoundedMoments
    of: str
    kind: Literal["exposed"] = "exposed"
    width: ClassVar[int] = 1
    labels: ClassVar[tuple[str, ...]] = ("sum of exposures", "sum of counts")
    shifts: ClassVar[tuple[float, ...]] = (0.0,)

    @property
    def middle(self) -> float:
        """Exposure in the middle of its bounds."""
        return (self.exposure.low + self.exposure.high) / 2

    @property
    def scales(self) -> tuple[float, ...]:
        """Largest count of a row."""
        return (self.counts.high,)

    def projected(self, sums: Array, n: Array, noise: Array) -> Array:
        """Return the sums of counts nearest to given ones: none is below 0."""
        return np.maximum(sums, 0.0)

    def simulated_mean(self, rng: np.random.Generator, count: int) -> Array:
        """Return a mean count of made-up rows over a mean exposure: (1,) array."""
        return np.asarray(self.counts.simulated_mean(rng, count) / self.middle)


def projected_to_simplex(row: Array, total: float) -> Array:
    """Euclidean projection on non-negative vectors with a given sum (Held, Wolfe, Crowder 1974)."""
    ordered = np.sort(row)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(row) + 1)
    last = np.nonzero(ordered - excess > 0)[0]
    shift = excess[last[-1]] if len(last) else excess[-1]
    return np.maximum(row - shift, 0)


def made_up(rng: np.random.Generator, low: float, high: float, count: int, width: int) -> Array:
    """Draw rows within bounds, (count, width), each entry from some beta distribution."""
    first, second = (rng.uniform(0.5, 4.0, size=width) for _ in range(2))
    return low + (high - low) * rng.beta(first, second, size=(count, width))
