"""Likelihoods of whole numbers whose statistic is the sum of the clamped value."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import BoundedMoments, MomentFamily, Moments, RowStatistic, Tensors
from pymc_dp.families.features import SumStatistic
from pymc_dp.inspection.findings import Observed

MOST_TERMS = 1024
"""Values between the bounds that are summed one by one; beyond, the sum is taken at nodes."""
MOST = 2**29


class CountSum(MomentFamily):
    """Rows of whole numbers clamped to public bounds; moments from the probabilities to exceed each value.

    Attributes
    ----------
    least : int
        Smallest value of an unclamped row.
    """

    least: ClassVar[int] = 0

    @abstractmethod
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        """Probability that a row is above k: (n_cells, n_values) from (n_cells, 1) parameters and values."""

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return count_statistic(observed, observed.distribution, least=self.least, sizes_known=sizes_known)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """With D the clamped value less the low bound: E D = Σ P(D > j), and E D² = Σ (2 j + 1) P(D > j)."""
        assert isinstance(statistic, BoundedMoments)
        steps, weights = _steps(int(statistic.high - statistic.low))
        given = [item[:, None] for item in pt.broadcast_arrays(*parameters)]
        tail = pt.clip(self.exceeds(given, pt.constant(steps + statistic.low)[None, :]), 0, 1)
        mean = (weights * tail).sum(axis=-1)
        second = (weights * (2 * steps + 1 - 2 * mean[:, None]) * tail).sum(axis=-1) + mean**2
        width = statistic.half_width
        return [(mean + statistic.low - statistic.centre) / width], [[pt.maximum(second, 0) / width**2]]


def count_statistic(observed: Observed, title: str, *, least: int = 0, sizes_known: bool) -> BoundedMoments | Problem:
    """Sum of a count clamped to public bounds, `least` or more, or why there is none."""
    if observed.bounds is None:
        return Problem(
            where=observed.name,
            what=f"a {title} count has no upper bound, so one row could move the sum by any amount",
            remedy=f"Give a public range: Domain(bounds={{{observed.name!r}: ({least}, high)}}).",
        )
    low, high = observed.bounds
    if low < least or low != int(low) or high != int(high) or high > MOST:
        return Problem(
            where=observed.name,
            what=f"bounds ({low:g}, {high:g}) of a count must be whole numbers in {least}..2**29",
            remedy=f"Give whole numbers, low >= {least}.",
        )
    return bounded_count(low, high, sizes_known=sizes_known)


def bounded_count(low: float, high: float, *, sizes_known: bool) -> BoundedMoments:
    """Sum of x; where cells have private sizes, of x less the middle of the bounds (a half-integer grid)."""
    half_width = (high - low) / 2
    if sizes_known:
        return BoundedMoments(low=low, high=high, centre=0.0, unit=1.0, half_width=half_width, powers=(1,))
    unit = 0.5 if (high - low) % 2 else 1.0
    return BoundedMoments(low=low, high=high, centre=low + half_width, unit=unit, half_width=half_width, powers=(1,))


def _steps(width: int) -> tuple[np.ndarray, np.ndarray]:
    """Values 0..width - 1 and weights 1; where there are many, blocks of them by their middles."""
    if width <= MOST_TERMS:
        return np.arange(width, dtype=float), np.ones(width)
    edges = np.unique(np.rint(np.concatenate([np.arange(64), np.geomspace(64, width, MOST_TERMS - 64)])))
    return (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)


__all__ = ["CountSum", "bounded_count", "count_statistic"]
