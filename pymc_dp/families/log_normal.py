"""Log-normal rows: sums of the logarithm and of its square."""

from __future__ import annotations

from typing import override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.constants import number
from pymc_dp.families.family import RowStatistic, Tensors
from pymc_dp.families.feature_family import FeatureFamily
from pymc_dp.families.features import BoundedFeatures, Feature, curve, feature
from pymc_dp.families.normal import CONJUGATE
from pymc_dp.families.quadrature import LOG
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class LogNormal(FeatureFamily):
    """``pm.LogNormal``: Σ log x where the mean is unknown, squares about it where the standard deviation is."""

    distribution = "lognormal"
    event_ndims = (0, 0)
    support = (0.0, np.inf)
    on = LOG
    conjugate = CONJUGATE

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        mean, sd = (number(parameter) for parameter in observed.parameters)
        chosen: tuple[Feature, ...] = curve(low, high, log=True)
        if sd is not None:
            chosen = (feature("log", low, high),)
        elif mean is not None:
            chosen = (feature("log_square", low, high, argument=mean),)
        return BoundedFeatures(low=low, high=high, features=chosen, pairing="curve" if len(chosen) > 1 else "apart")

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[1] > 0) & pt.lt(pt.abs(parameters[0]), np.inf)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.LogNormal.dist(*parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        return parameters[0], parameters[1]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log sd - Σ(log x - mean)² / 2 sd²``, without terms free of the parameters."""
        assert isinstance(statistic, BoundedFeatures)
        mean, sd = parameters
        last = statistic.features[-1]
        origin = last.argument if last.transform == "log_square" else 0.0
        line = sums[:, 0] if statistic.features[0].transform == "log" else sizes * origin
        squares = sums[:, -1] if last.transform == "log_square" else pt.zeros_like(sizes)
        about = squares - 2 * (mean - origin) * (line - sizes * origin) + sizes * (mean - origin) ** 2
        return -sizes * pt.log(sd) - about / (2 * sd**2)

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.lognormal(*parameters))
