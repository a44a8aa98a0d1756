"""Half-normal rows: the sum of squares."""

from __future__ import annotations

from typing import override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.family import RowStatistic, Tensors
from pymc_dp.families.feature_family import FeatureFamily
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class HalfNormal(FeatureFamily):
    """``pm.HalfNormal``: Σx²."""

    distribution = "halfnormal"
    event_ndims = (0, 0)
    support = (0.0, np.inf)
    from_zero = True
    conjugate = (Rate(slot=1, exponents=lambda e: (e.rows / 2, e.total / 2), power=-2.0),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        return BoundedFeatures(low=low, high=high, features=(feature("square", low, high),))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return parameters[1] > 0

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.HalfNormal.dist(parameters[1])

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        return parameters[0], parameters[1]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log scale - Σx² / 2 scale²``."""
        return -sizes * pt.log(parameters[1]) - sums[:, 0] / (2 * parameters[1] ** 2)

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        location, sd = parameters
        return np.asarray(location + np.abs(rng.normal(0.0, sd)))
