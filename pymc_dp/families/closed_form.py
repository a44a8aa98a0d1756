"""How far one row moves a log-likelihood over bounded parameters, in closed form: what a likelihood says of itself.

With l(x, θ) the log-likelihood of a row and d = l(x, θ) - l(x', θ), the range of d over θ is what the exponential
mechanism pays for (theory: Dong, Durfee, Rogers 2020); the sensitivity Δl of the papers is the largest |d|.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.families.features import RowStatistic
from pymc_dp.inspection.rows import Array

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


__all__ = ["Base", "Box", "Boxes", "CellRanges", "ClosedForm", "Moving"]
