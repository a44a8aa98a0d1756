"""Weibull rows of a known shape: the sum of powers."""

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
from pymc_dp.families.quadrature import LOG
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Weibull(FeatureFamily):
    """``pm.Weibull`` with a known shape alpha: Σ x^alpha."""

    distribution = "weibull"
    event_ndims = (0, 0)
    support = (0.0, np.inf)
    on = LOG
    conjugate = (Rate(slot=1, exponents=lambda e: (e.rows, e.total), power=-1.0, times=0),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        shape = number(observed.parameters[0])
        if shape is None:
            return unknown(observed, "the shape alpha of a Weibull likelihood")
        return BoundedFeatures(low=low, high=high, features=(feature("power", low, high, argument=shape),))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[1] > 0)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.Weibull.dist(*parameters)

    @override
    def log_density(self, parameters: Tensors, x: TensorVariable) -> TensorVariable:
        """Evaluate PyMC's own for any shape of values: that of a variable is kept to the shape of its draws."""
        return pm.Weibull.logp(x, *parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        """A logarithm is ``log beta`` plus that of an exponential number over alpha."""
        return pt.log(parameters[1]), 1.3 / parameters[0]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n alpha log beta - Σ x^alpha / beta^alpha``."""
        shape, scale = parameters
        return -sizes * shape * pt.log(scale) - sums[:, 0] / scale**shape

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        shape, scale = parameters
        return np.asarray(scale * rng.weibull(shape))
