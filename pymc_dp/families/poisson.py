"""Poisson rows: the sum of the clamped counts."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.count_sums import bounded_count
from pymc_dp.families.family import BoundedMoments, MomentFamily, RowStatistic, Tensors
from pymc_dp.families.features import SumStatistic
from pymc_dp.families.row_draws import drawn_counts
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Poisson(MomentFamily):
    """``pm.Poisson`` on rows clamped to public bounds (low, high).

    The noise-aware density uses the moments of the *clamped* count, with all the mass beyond the bounds at them.
    """

    distribution = "poisson"
    event_ndims = (0,)
    conjugate = (Rate(slot=0, exponents=lambda e: (e.total, e.rows)),)

    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        """Sum of x; where cells have private sizes, of x less the middle of the bounds (a half-integer grid)."""
        if observed.bounds is None:
            return Problem(
                where=observed.name,
                what="a Poisson count has no upper bound, so one row could move the sum by any amount",
                remedy=f"Give a public range: Domain(bounds={{{observed.name!r}: (0, high)}}).",
            )
        low, high = observed.bounds
        if low < 0 or low != int(low) or high != int(high) or high > 2**29:
            return Problem(
                where=observed.name,
                what=f"bounds ({low:g}, {high:g}) of a count must be whole numbers in 0..2**29",
                remedy="Give whole numbers, low >= 0.",
            )
        return bounded_count(low, high, sizes_known=sizes_known)

    def supported(self, parameters: Tensors) -> TensorVariable:
        """``rate >= 0``."""
        return parameters[0] >= 0

    def moments(
        self, parameters: Tensors, statistic: SumStatistic
    ) -> tuple[list[TensorVariable], list[list[TensorVariable]]]:
        """Mean and variance of the clamped count, from the closed form of its truncated factorial moments."""
        assert isinstance(statistic, BoundedMoments)
        rate = parameters[0]
        low, high, centre, width = int(statistic.low), int(statistic.high), statistic.centre, statistic.half_width
        below, above = _cdf(low, rate), 1 - _cdf(high - 1, rate)
        inside_1 = rate * (_cdf(high - 2, rate) - _cdf(low - 1, rate))
        inside_2 = rate**2 * (_cdf(high - 3, rate) - _cdf(low - 2, rate)) + inside_1
        inside_0 = _cdf(high - 1, rate) - below
        mean = inside_1 + low * below + high * above
        second = (
            (inside_2 - 2 * mean * inside_1 + mean**2 * inside_0)
            + (low - mean) ** 2 * below
            + (high - mean) ** 2 * above
        )
        return [(mean - centre) / width], [[pt.maximum(second, 0) / width**2]]

    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``s log rate - n rate``."""
        assert isinstance(statistic, BoundedMoments)
        total = sums[:, 0] + statistic.centre * sizes
        return total * pt.log(parameters[0]) - sizes * parameters[0]

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return drawn_counts(rng, *parameters)


def _cdf(k: int, rate: TensorVariable) -> TensorVariable:
    """P(X <= k) for X ~ Poisson(rate)."""
    if k < 0:
        return pt.zeros_like(rate)
    return pt.gammaincc(pt.constant(float(k + 1)), rate)
