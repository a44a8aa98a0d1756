"""The posterior that is not private: what those of a release come to as its noise goes to nothing."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families import MomentFamily
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.gaussian_sums import GaussianSums


class UnnoisedDensity(ReleaseDensity):
    """Density of exact counts, and of exact sums of **clamped** rows, normal as for a release.

    The plug-in form takes values at the bounds for what was observed: where many are clamped it would be further from
    the truth than a private posterior.
    """

    @override
    def _plugin_logp(self, value: TensorVariable, given: list[TensorVariable]) -> TensorVariable:
        if isinstance(self.statistic, LevelCounts) or not isinstance(self.family, MomentFamily):
            return super()._plugin_logp(value, given)
        first = 0 if self.sizes.public else 1
        n = pt.maximum(self.sizes.bound.astype(float) if self.sizes.public else value[:, 0], 1e-3)
        mean, covariance = self.family.moments(given, self.statistic)
        sums = value[:, first:] / np.array(self.statistic.scales)
        columns = [sums[:, i] for i in range(len(mean))]
        return GaussianSums().sums(columns, self._centred(mean), covariance, pt.zeros(len(mean)), n)


__all__ = ["UnnoisedDensity"]
