"""Exponential rows: the sum of the value."""

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


class Exponential(FeatureFamily):
    """``pm.Exponential``: Σx."""

    distribution = "exponential"
    event_ndims = (0,)
    support = (0.0, np.inf)
    from_zero = True
    conjugate = (Rate(slot=0, exponents=lambda e: (e.rows, e.total), power=-1.0),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        return BoundedFeatures(low=low, high=high, features=(feature("identity", low, high),))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return parameters[0] > 0

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.Exponential.dist(scale=parameters[0])

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        return parameters[0], parameters[0]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log scale - Σx / scale``."""
        return -sizes * pt.log(parameters[0]) - sums[:, 0] / parameters[0]

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.exponential(*parameters))
