"""Negative binomial rows of a known alpha: the sum of the clamped counts."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Chance
from pymc_dp.families.constants import number, unknown
from pymc_dp.families.family import BoundedMoments, RowStatistic, Tensors, drawn_counts
from pymc_dp.families.feature_family import CountSum
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class NegativeBinomial(CountSum):
    """``pm.NegativeBinomial`` with a known alpha (n): Σx."""

    distribution = "negative_binomial"
    event_ndims = (0, 0)
    conjugate = (Chance(slot=1, exponents=lambda e: (e.rows * e.given[0], e.total)),)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        if number(observed.parameters[0]) is None:
            return unknown(observed, "alpha (n) of a negative binomial likelihood")
        return super().statistic(observed, sizes_known=sizes_known)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[1] > 0) & (parameters[1] <= 1)

    @override
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        alpha, p = parameters
        return pt.betainc(k + 1, alpha, 1 - p)

    @override
    def log_mass(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        alpha, p = parameters
        ways = pt.gammaln(k + alpha) - pt.gammaln(alpha) - pt.gammaln(k + 1)
        return ways + alpha * pt.log(p) + k * pt.log1p(-pt.clip(p, 0, 1 - 1e-16))

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``n alpha log p + Σx log(1 - p)``."""
        assert isinstance(statistic, BoundedMoments)
        alpha, p = parameters
        total = sums[:, 0] + statistic.centre * sizes
        return sizes * alpha * pt.log(p) + total * pt.log1p(-pt.clip(p, 0, 1 - 1e-16))

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        alpha, p = parameters
        return drawn_counts(rng, rng.gamma(alpha) * (1 - p) / p)


__all__ = ["NegativeBinomial"]
