"""How far one row moves a log-likelihood over bounded parameters, in closed form: what a likelihood says of itself.

With l(x, θ) the log-likelihood of a row and d = l(x, θ) - l(x', θ), the range of d over θ is what the exponential
mechanism pays for (theory: Dong, Durfee, Rogers 2020); the sensitivity Δl of the papers is the largest |d|.

The closed form of a likelihood that is an exponential family in one unknown parameter.

With ``l(x, θ) = T(x) η(θ) - c A(θ)``, c a known number, two rows of one cell differ by ``(T - T') η(θ)``: its range
over θ is the width of T times that of η, which is monotone. The range of one row alone, ``max_θ l - min_θ l``, is a
largest value of functions that are linear in T, so convex: it is largest at an end of T. l has one maximum in θ, so
that its least value is at an end of the box of θ, and its greatest at that maximum or at the end next to it.

Parameters that are constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import override

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.families.features import BoundedFeatures, RowStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array, plain_numbers, unwrap

Box = tuple[Array, Array]
"""Lowest and highest value of one parameter in each cell: two (n_cells,) or (n_cells, n_levels) arrays."""
Boxes = Sequence[Box]
Moving = Sequence[Array]
"""For each parameter the cells in which it moves: (n_cells,) boolean arrays."""
Base = float | Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True)
class CellRanges:
    """Upper bounds in each cell, over the box of its parameters.

    Attributes
    ----------
    same, alone : (n_cells,) arrays
        Of the range over θ: of d for two rows that lie in the cell, and of l for a row that comes or goes. Where the
        other parameters are held at several values, the cells stand here once for each, in blocks.
    same_size, alone_size : arrays of the same shape
        Of the largest |d| and the largest |l|; not used without a `base`.
    room : float
        What l may be off by beside that, wherever a row moves anything.
    reason : str
        ``{title}`` stands for the name of the likelihood.
    """

    same: Array
    alone: Array
    same_size: Array
    alone_size: Array
    room: float = 0.0
    reason: str


@dataclass(frozen=True, kw_only=True)
class ClosedForm(ABC):
    """What bounds the rows of one likelihood.

    Attributes
    ----------
    slot : int
        Which parameter has to be bounded within an open interval, for any range to be finite.
    low, high : float
        That interval. The other parameters just have to be finite.
    base : float, callable or None
        What the log-likelihood of a row has beside ``plugin_logp``, which is free of the parameters: a number, or a
        function of the clamped value, largest in size at one of its bounds. None where that is not known: then nothing
        bounds |d| and |l| themselves. Only for likelihoods whose rows are counts or powers (`LevelCounts`,
        `BoundedMoments`): all samplers take their sums.
    """

    slot: int = 0
    low: float = 0.0
    high: float = np.inf
    base: Base | None = None

    def inside(self, slot: int) -> tuple[float, float]:
        """Return the open interval that a parameter has to be bounded within for ranges to be finite."""
        return (self.low, self.high) if slot == self.slot else (-np.inf, np.inf)

    def applies(self, statistic: RowStatistic, boxes: Boxes) -> bool:
        """Whether ranges are known for what is unknown of these parameters."""
        return True

    @abstractmethod
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        """Bound what one row moves in each cell; infinite or not a number where nothing bounds it.

        Parameters
        ----------
        statistic : RowStatistic
            Its public bounds.
        boxes : sequence of (low, high)
            Public bounds of each parameter in each cell.
        moving : sequence of (n_cells,) boolean arrays
            For each parameter the cells in which θ runs over its box; where it does not, it is held anywhere in it.
            Ranges of cells without any are not used.
        normalised : bool
            Whether probabilities of levels are known to add up to 1. If not, they are what the likelihood makes of
            them.
        """


@dataclass(frozen=True, kw_only=True)
class OneParameter(ClosedForm):
    """A likelihood ``l(x, θ) = T(x) η(θ) - c A(θ)`` of one unknown parameter θ, T its one statistic and c known.

    Attributes
    ----------
    slot : int
        Which of its parameters is unknown.
    low, high : float
        Open interval of values of θ.
    known : int or None
        Which of its parameters is the number c; None for 1.
    natural : callable
        η as a function of θ and c.
    density : callable
        l as a function of T, θ and c, up to terms free of θ.
    best : callable
        The θ at which l is largest, from T and c.
    """

    known: int | None
    natural: Callable[[Array, Array], Array]
    density: Callable[[Array, Array, Array], Array]
    best: Callable[[Array, Array], Array]

    @override
    def applies(self, statistic: RowStatistic, boxes: Boxes) -> bool:
        """All parameters but θ are known numbers."""
        known = (bool((low == high).all()) for slot, (low, high) in enumerate(boxes) if slot != self.slot)
        return len(statistic.labels) == 1 and all(known)

    @override
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        low, high = boxes[self.slot]
        c, same_c = (np.ones(len(low)),) * 2 if self.known is None else boxes[self.known]
        inside = (low > self.low) & (high < self.high) & (c == same_c) & (c > 0)
        least, most = _ends(statistic)
        same = (most - least) * np.abs(self.natural(high, c) - self.natural(low, c))
        alone = np.maximum(*(self._alone(np.full(low.shape, t), low, high, c) for t in (least, most)))
        same, alone = np.where(inside, same, np.inf), np.where(inside, alone, np.inf)
        reason = "{title} rows, one parameter"
        return CellRanges(same=same, alone=alone, same_size=same, alone_size=alone, reason=reason)

    def _alone(self, t: Array, low: Array, high: Array, c: Array) -> Array:
        best = self.best(t, c)
        best = np.clip(np.where(np.isnan(best), low, best), low, high)
        heights = np.stack([self.density(t, theta, c) for theta in (best, low, high)])
        top, bottom = heights.max(axis=0), heights[1:].min(axis=0)
        return np.asarray(top - bottom + 1e-13 * np.abs(heights).max(axis=0))


def _ends(statistic: RowStatistic) -> tuple[float, float]:
    """Least and greatest T of a row, as it is rounded and clipped."""
    if isinstance(statistic, BoundedMoments):
        return float(statistic.low), float(statistic.high)
    assert isinstance(statistic, BoundedFeatures)
    (only,) = statistic.features
    return only.centre - only.half_width, only.centre + only.half_width


def of_scale(known: int | None = None, slot: int = 1) -> OneParameter:
    """A scale s: ``-c log s - T / s``."""
    return OneParameter(
        slot=slot,
        known=known,
        natural=lambda s, c: -1 / s,
        density=lambda t, s, c: -c * np.log(s) - t / s,
        best=lambda t, c: t / c,
    )


def number(parameter: Variable) -> float | None:
    """Value of a parameter that is one constant, else None."""
    inner = unwrap(parameter)
    if inner.owner is not None or not hasattr(inner, "data"):
        return None
    numbers = list(plain_numbers([inner], []))
    if len(numbers) != 1 or numbers[0].size != 1 or not isfinite(numbers[0].item()):
        return None
    return float(numbers[0].item())


def unknown(observed: Observed, what: str) -> Problem:
    """Refuse a parameter that has to be constant."""
    return Problem(
        where=observed.name,
        what=f"{what} is not a constant, so the likelihood has no finite sufficient statistics",
        remedy=f"Give {what} as a number, or release a histogram: Statistics(mechanism=dp.Histogram(edges)).",
    )


__all__ = [
    "Base",
    "Box",
    "Boxes",
    "CellRanges",
    "ClosedForm",
    "Moving",
    "OneParameter",
    "number",
    "of_scale",
    "unknown",
]
