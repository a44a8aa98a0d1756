"""Poisson rows: the sum of the clamped counts."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.family import BoundedMoments, Moments, RowStatistic, Tensors, drawn_counts
from pymc_dp.families.feature_family import TINY, CountSum, count_statistic
from pymc_dp.families.features import SumStatistic
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Poisson(CountSum):
    """``pm.Poisson`` on rows clamped to public bounds (low, high).

    The noise-aware density uses the moments of the *clamped* count, with all the mass beyond the bounds at them.
    """

    distribution = "poisson"
    event_ndims = (0,)
    conjugate = (Rate(slot=0, exponents=lambda e: (e.total, e.rows)),)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return count_statistic(observed, "Poisson", sizes_known=sizes_known)

    def supported(self, parameters: Tensors) -> TensorVariable:
        """``rate >= 0``."""
        return parameters[0] >= 0

    @override
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        return pt.gammainc(k + 1, parameters[0])

    @override
    def log_mass(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        rate = parameters[0]
        return k * pt.log(pt.maximum(rate, TINY)) - rate - pt.gammaln(k + 1)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
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
