"""Where sums of predictors and sums with the response lie in a released vector of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pymc_dp.families.gram import GramSums

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GramLayout:
    """Places of the sums of one statistic.

    Attributes
    ----------
    statistic : GramSums
    """

    statistic: GramSums

    @cached_property
    def first(self) -> Index:
        """(n_cells, per_cell) places of sums of first order, that of u at last."""
        return self._table("first", self.statistic.per_cell if self.statistic.constant else 0)

    @cached_property
    def second(self) -> Index:
        """(n_blocks, products) places of sums of products."""
        return self._table("second", self.statistic.products)

    @cached_property
    def predictors(self) -> Index:
        """Places of what predictors alone add up to: sizes, sums of t, sums of t_i t_j."""
        sizes = np.arange(self.statistic.count)[self.statistic.parts["sizes"]]
        return np.concatenate([sizes, self.first[:, :-1].ravel(), self.second[:, : self.pairs].ravel()])

    @cached_property
    def responses(self) -> Index:
        """(1, k) places of sums with u: those of cells, then Σ t u, then Σ u²; with `apart` one row per cell."""
        first, second = self.first[:, -1:], self.second[:, self.pairs :]
        if not self.statistic.apart:
            first = first.T
        return np.concatenate([first, second], axis=1) if self.statistic.constant else second

    @property
    def pairs(self) -> int:
        """Sums of products of predictors with one another, of a block."""
        d = self.statistic.width
        return 0 if self.statistic.known else d * (d + 1) // 2

    def _table(self, part: str, columns: int) -> Index:
        places = np.arange(self.statistic.count)[self.statistic.parts[part]]
        return places.reshape((-1, columns)) if columns else places.reshape((len(self.statistic.cells), 0))


__all__ = ["GramLayout", "Index"]
