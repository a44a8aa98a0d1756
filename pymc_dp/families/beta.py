"""Beta rows: sums of the logarithms of the value and of what is left to 1."""

from __future__ import annotations

from typing import override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import RowStatistic, Tensors
from pymc_dp.families.feature_family import FeatureFamily
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.families.quadrature import LOGIT
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Beta(FeatureFamily):
    """``pm.Beta``: Σ log x where alpha is unknown, Σ log(1 - x) where beta is."""

    distribution = "beta"
    event_ndims = (0, 0)
    support = (0.0, 1.0)
    on = LOGIT

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        alpha, other = observed.free
        chosen = [feature("log_rest", low, high)] if other else []
        if alpha or not chosen:
            chosen = [feature("log", low, high), *chosen]
        return BoundedFeatures(low=low, high=high, features=tuple(chosen))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[1] > 0)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.Beta.dist(*parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        """A logit has mean ``digamma(alpha) - digamma(beta)`` and the sum of two trigammas for its variance."""
        first, second = parameters
        return pt.log(first / second), pt.sqrt(1 / first + 1 / first**2 + 1 / second + 1 / second**2)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``(alpha - 1) Σ log x + (beta - 1) Σ log(1 - x) - n log B``, without what is not released."""
        assert isinstance(statistic, BoundedFeatures)
        first, second = parameters
        total = sizes * (pt.gammaln(first + second) - pt.gammaln(first) - pt.gammaln(second))
        for i, item in enumerate(statistic.features):
            total += ((first if item.transform == "log" else second) - 1) * sums[:, i]
        return total

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.beta(*parameters))
