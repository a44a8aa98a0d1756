"""Von Mises rows: sums of cosines and sines."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import MomentFamily, Moments, RowStatistic, Tensors
from pymc_dp.families.features import BoundedFeatures, SumStatistic, feature
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class VonMises(MomentFamily):
    """``pm.VonMises``: Σ cos x and Σ sin x of angles in [-π, π], to which others are clamped: take them there first."""

    distribution = "vonmises"
    event_ndims = (0, 0)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        if observed.bounds is not None and (observed.bounds[0] > -np.pi or observed.bounds[1] < np.pi):
            return Problem(
                where=observed.name,
                what=f"its bounds {observed.bounds} leave out angles",
                remedy="Leave the bounds out: an angle is between -π and π.",
            )
        chosen = tuple(feature(name, -np.pi, np.pi) for name in ("cos", "sin"))
        return BoundedFeatures(low=-np.pi, high=np.pi, features=chosen, pairing="circle")

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[1] > 0) & pt.lt(pt.abs(parameters[0]), np.inf)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Closed forms by ratios of Bessel functions, A_k = I_k / I_0, where ``A_2 = 1 - 2 A_1 / kappa``."""
        mu, kappa = pt.broadcast_arrays(*parameters)
        first = pt.ive(1, kappa) / pt.ive(0, kappa)
        second = pt.ive(2, kappa) / pt.ive(0, kappa)
        cos, sin = pt.cos(mu), pt.sin(mu)
        along = pt.maximum((1 + second) / 2 - first**2, 0)  # variances along the mean direction, and across
        across = (1 - second) / 2
        mixed = (along - across) * cos * sin
        covariance = [[along * cos**2 + across * sin**2, mixed], [mixed, along * sin**2 + across * cos**2]]
        return [first * cos, first * sin], covariance

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``kappa (cos mu Σ cos x + sin mu Σ sin x) - n log I_0(kappa)``."""
        mu, kappa = parameters
        log_bessel = pt.log(pt.ive(0, kappa)) + kappa
        return kappa * (pt.cos(mu) * sums[:, 0] + pt.sin(mu) * sums[:, 1]) - sizes * log_bessel

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.vonmises(*parameters))


__all__ = ["VonMises"]
