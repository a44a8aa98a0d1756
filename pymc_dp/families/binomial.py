"""Binomial rows of a known number of trials: the sum of successes."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp._special import special
from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Chance
from pymc_dp.families.constants import number, unknown
from pymc_dp.families.family import BoundedMoments, Moments, RowStatistic, Tensors, WholeFamily
from pymc_dp.families.feature_family import MOST, bounded_count
from pymc_dp.families.features import SumStatistic
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Binomial(WholeFamily):
    """``pm.Binomial`` with one known number of trials for all rows: Σx, which lies in 0..trials for every row."""

    distribution = "binomial"
    event_ndims = (0, 0)
    conjugate = (Chance(slot=1, exponents=lambda e: (e.total, e.rows * e.given[0] - e.total)),)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        trials = number(observed.parameters[0])
        if trials is None:
            return unknown(observed, "the number of trials n of a binomial likelihood")
        if trials > MOST:
            return Problem(
                where=observed.name,
                what=f"the number of trials n of a binomial likelihood is {trials:g}, and sums of many rows overflow",
                remedy="Count in larger units: n of 2**29 at most.",
            )
        if observed.bounds is not None and observed.bounds != (0, trials):
            return Problem(
                where=observed.name,
                what=f"its bounds {observed.bounds} are not its values 0..{trials:g}",
                remedy="Leave the bounds out: the likelihood already says which values there are.",
            )
        return bounded_count(0.0, trials, sizes_known=sizes_known)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        return (parameters[1] >= 0) & (parameters[1] <= 1)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Mean ``trials p`` and variance ``trials p (1 - p)``: nothing is clamped."""
        assert isinstance(statistic, BoundedMoments)
        trials, p = pt.broadcast_arrays(*parameters)
        width = statistic.half_width
        return [(trials * p - statistic.centre) / width], [[trials * p * (1 - p) / width**2]]

    @override
    def log_masses(self, parameters: Tensors, statistic: BoundedMoments) -> TensorVariable:
        trials, p = statistic.high, pt.clip(parameters[1], 1e-300, 1 - 1e-16)
        k = np.arange(trials + 1)
        ways = special.gammaln(trials + 1) - special.gammaln(k + 1) - special.gammaln(trials - k + 1)
        return ways + k * pt.log(p) + (trials - k) * pt.log1p(-p)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``Σx log p + (n trials - Σx) log(1 - p)``."""
        assert isinstance(statistic, BoundedMoments)
        trials, p = parameters[0], pt.clip(parameters[1], 1e-16, 1 - 1e-16)
        total = sums[:, 0] + statistic.centre * sizes
        return total * pt.log(p) + (sizes * trials - total) * pt.log1p(-p)

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        trials, p = parameters
        return np.asarray(rng.binomial(np.rint(trials).astype(np.int64), p))


__all__ = ["Binomial"]
