"""Laplace rows about a known place: the sum of distances."""

from __future__ import annotations

from typing import override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.constants import number, unknown
from pymc_dp.families.family import RowStatistic, Tensors
from pymc_dp.families.feature_family import FeatureFamily
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Laplace(FeatureFamily):
    """``pm.Laplace`` with a known location: Σ|x - location|."""

    distribution = "laplace"
    event_ndims = (0, 0)
    support = (-np.inf, np.inf)
    conjugate = (Rate(slot=1, exponents=lambda e: (e.rows, e.total), power=-1.0),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        location = number(observed.parameters[0])
        if location is None:
            return unknown(observed, "the location of a Laplace likelihood")
        return BoundedFeatures(low=low, high=high, features=(feature("distance", low, high, argument=location),))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[1] > 0) & pt.lt(pt.abs(parameters[0]), np.inf)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.Laplace.dist(*parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        return parameters[0], parameters[1]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log scale - Σ|x - location| / scale``."""
        return -sizes * pt.log(parameters[1]) - sums[:, 0] / parameters[1]

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.laplace(*parameters))
