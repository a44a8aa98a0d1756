"""A likelihood of one's own."""

from typing import final, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

import pymc_dp as dp
from pymc_dp.families import register
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.constants import number, unknown
from pymc_dp.families.family import RowStatistic, Tensors
from pymc_dp.families.feature_family import FeatureFamily
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.families.quadrature import LOG
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


@final
class Pareto(FeatureFamily):
    """``pm.Pareto`` with a known scale m: Σ log x."""

    distribution = "pareto"
    event_ndims = (0, 0)
    support = (0.0, np.inf)
    on = LOG
    conjugate = (Rate(slot=0, exponents=lambda e: (e.rows, e.total - e.rows * np.log(e.given[0]))),)

    @override
    def features(self, observed: Observed, low: float, high: float) -> BoundedFeatures | dp.errors.Problem:
        scale = number(observed.parameters[1])
        if scale is None:
            return unknown(observed, "the scale m of a Pareto likelihood")
        if low < scale:
            return dp.errors.Problem(
                where=observed.name,
                what=f"the bounds ({low:g}, {high:g}) reach below the scale m = {scale:g}, where no value can be",
                remedy="Give a range above m; values beyond are clamped to it.",
            )
        return BoundedFeatures(low=low, high=high, features=(feature("log", low, high),))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[0] > 0) & (parameters[1] > 0)

    @override
    def variable(self, parameters: Tensors) -> TensorVariable:
        return pm.Pareto.dist(*parameters)

    @override
    def window(self, parameters: Tensors) -> tuple[TensorVariable, TensorVariable]:
        """A logarithm is that of m plus an exponential number over alpha."""
        return pt.log(parameters[1]), 1 / parameters[0]

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``n log alpha + n alpha log m - alpha Σ log x``."""
        alpha, scale = parameters
        return sizes * (pt.log(alpha) + alpha * pt.log(scale)) - alpha * sums[:, 0]

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        alpha, scale = parameters
        return np.asarray(scale * (1 + rng.pareto(alpha)))


register(Pareto())
