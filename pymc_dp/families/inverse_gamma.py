"""Inverse-gamma rows: sums of the reciprocal and of the logarithm."""

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
from pymc_dp.families.quadrature import LOG
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class InverseGamma(FeatureFamily):
    """``pm.InverseGamma``: Σ1/x where the scale is unknown, Σ log x where the shape is."""

    distribution = "invgamma"
    event_ndims = (0, 0)
    support = (0.0, np.inf)
    on = LOG
    conjugate = (Rate(slot=1, exponents=lambda e: (e.rows * e.given[0], e.total)),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | Problem:
        shape, scale = observed.free
        chosen = [feature("log", low, high)] if shape else []
        if scale or not chosen:
            chosen = [feature("reciprocal", low, high), *chosen]
        return BoundedFeatures(low=low, high=high, features=tuple(chosen))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[1] > 0)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.InverseGamma.dist(*parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        """A logarithm has mean ``log scale - digamma(shape)`` and variance ``trigamma(shape)``."""
        shape, scale = parameters
        return pt.log(scale / shape), pt.sqrt(1 / shape + 1 / shape**2)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``n (shape log scale - log Γ(shape)) - (shape + 1) Σ log x - scale Σ1/x``, without what is not released."""
        assert isinstance(statistic, BoundedFeatures)
        shape, scale = parameters
        total = sizes * (shape * pt.log(scale) - pt.gammaln(shape))
        for i, item in enumerate(statistic.features):
            total -= (shape + 1) * sums[:, i] if item.transform == "log" else scale * sums[:, i]
        return total

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        shape, scale = parameters
        return np.asarray(scale / rng.gamma(shape))
