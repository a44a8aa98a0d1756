"""Geometric rows: the sum of the clamped number of trials."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.conjugate_form import Chance
from pymc_dp.families.family import BoundedMoments, RowStatistic, Tensors
from pymc_dp.families.feature_family import CountSum
from pymc_dp.inspection.rows import Array


class Geometric(CountSum):
    """``pm.Geometric``: Σx, x the number of the first success, at least 1."""

    distribution = "geometric"
    event_ndims = (0,)
    least = 1
    conjugate = (Chance(slot=0, exponents=lambda e: (e.rows, e.total - e.rows)),)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[0] <= 1)

    @override
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        return pt.exp(k * pt.log1p(-pt.clip(parameters[0], 0, 1 - 1e-16)))

    @override
    def log_mass(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        p = parameters[0]
        return pt.log(p) + (k - 1) * pt.log1p(-pt.clip(p, 0, 1 - 1e-16))

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``n log p + (Σx - n) log(1 - p)``."""
        assert isinstance(statistic, BoundedMoments)
        total = sums[:, 0] + statistic.centre * sizes
        return sizes * pt.log(parameters[0]) + (total - sizes) * pt.log1p(-pt.clip(parameters[0], 0, 1 - 1e-16))

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.geometric(*parameters))


__all__ = ["Geometric"]
