"""Poisson rows over an exposure: the sums of the exposures and of the clamped counts."""

from __future__ import annotations

from typing import override

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.family import Family, RowStatistic, Tensors
from pymc_dp.families.feature_family import MOST, count_statistic, distinguishable
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts
from pymc_dp.inspection.exposures import EXPOSED
from pymc_dp.inspection.findings import Observed
from pymc_dp.kernel.shapes import GRID


class Exposed(Family):
    """``pm.Poisson`` with a rate per unit of exposure: Σe and Σy.

    Given the exposures of all its rows together, the counts of a cell have a Poisson sum, whatever the exposure of each
    row is. Unless it is public, that total is an unknown number of the private model, with a flat prior. The posterior
    takes no count for clamped: the upper bound should be one that hardly a count reaches.
    """

    distribution = EXPOSED
    event_ndims = (0,)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        assert observed.totals is not None and observed.totals.bounds is not None
        counts = count_statistic(observed, "Poisson", sizes_known=True)
        if isinstance(counts, Problem):
            return counts
        low, high = observed.totals.bounds
        whole = observed.totals.integer and high <= MOST
        if not whole and not distinguishable(0.0, high):
            return Problem(
                where=observed.name,
                what=f"its exposures of up to {high:g} are too large or too small for floats to add up",
                remedy="Measure the exposure in another unit.",
            )
        unit = 1.0 if whole else high / GRID
        exposure = BoundedMoments(low=low, high=high, centre=0.0, unit=unit, half_width=high, powers=(1,))
        return ExposedCounts(exposure=exposure, counts=counts, of=observed.totals.name)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """``rate >= 0``."""
        return parameters[0] >= 0

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``Σy log rate - Σe rate``; `sizes` are the exposures."""
        return sums[:, 0] * pt.log(parameters[0]) - sizes * parameters[0]


__all__ = ["Exposed"]
