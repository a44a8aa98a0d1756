"""Poisson rows: the sum of the clamped counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp._special import special
from pymc_dp.errors import Problem
from pymc_dp.families.closed_form import Boxes, CellRanges, ClosedForm, Moving
from pymc_dp.families.conjugate_form import Rate
from pymc_dp.families.family import BoundedMoments, Moments, RowStatistic, Tensors, drawn_counts
from pymc_dp.families.feature_family import TINY, CountSum, count_statistic
from pymc_dp.families.features import SumStatistic
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True)
class _Rows(ClosedForm):
    """L = x log λ - λ. d within a cell is (x - x') log λ; alone, the range is convex in x, so largest at an end."""

    @override
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        assert isinstance(statistic, BoundedMoments)
        low, high = boxes[0]
        least, most = statistic.low, statistic.high
        alone = np.zeros(len(low))
        for x in (least, most):
            best = np.clip(x, low, high)
            ends = [x * np.log(rate) - rate if x else -rate for rate in (best, low, high)]
            alone = np.maximum(alone, ends[0] - np.minimum(ends[1], ends[2]))
        pairs = list(zip(low, high, strict=True))
        return CellRanges(
            same=(most - least) * (np.log(high) - np.log(low)),
            alone=alone,
            same_size=np.array([max(_spread(statistic, rate) for rate in pair) for pair in pairs]),
            alone_size=np.array([max(_size(statistic, rate) for rate in pair) for pair in pairs]),
            reason=f"counts clamped to ({least:g}, {most:g}): their width times the range of log rate",
        )


class Poisson(CountSum):
    """``pm.Poisson`` on rows clamped to public bounds (low, high).

    The noise-aware density uses the moments of the *clamped* count, with all the mass beyond the bounds at them.
    """

    distribution = "poisson"
    event_ndims = (0,)
    closed_form = _Rows(base=lambda x: -special.gammaln(x + 1))
    conjugate = (Rate(slot=0, exponents=lambda e: (e.total, e.rows)),)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return count_statistic(observed, "Poisson", sizes_known=sizes_known)

    def supported(self, parameters: Tensors) -> TensorVariable:
        """``rate >= 0``."""
        return parameters[0] >= 0

    @override
    def exceeds(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        return pt.gammainc(k + 1, parameters[0])

    @override
    def log_mass(self, parameters: Tensors, k: TensorVariable) -> TensorVariable:
        rate = parameters[0]
        return k * pt.log(pt.maximum(rate, TINY)) - rate - pt.gammaln(k + 1)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Mean and variance of the clamped count, from the closed form of its truncated factorial moments."""
        assert isinstance(statistic, BoundedMoments)
        rate = parameters[0]
        low, high, centre, width = int(statistic.low), int(statistic.high), statistic.centre, statistic.half_width
        below, above = _cdf(low, rate), 1 - _cdf(high - 1, rate)
        inside_1 = rate * (_cdf(high - 2, rate) - _cdf(low - 1, rate))
        inside_2 = rate**2 * (_cdf(high - 3, rate) - _cdf(low - 2, rate)) + inside_1
        inside_0 = _cdf(high - 1, rate) - below
        mean = inside_1 + low * below + high * above
        second = (
            (inside_2 - 2 * mean * inside_1 + mean**2 * inside_0)
            + (low - mean) ** 2 * below
            + (high - mean) ** 2 * above
        )
        return [(mean - centre) / width], [[pt.maximum(second, 0) / width**2]]

    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``s log rate - n rate``."""
        assert isinstance(statistic, BoundedMoments)
        total = sums[:, 0] + statistic.centre * sizes
        return total * pt.log(parameters[0]) - sizes * parameters[0]

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return drawn_counts(rng, *parameters)


def _cdf(k: int, rate: TensorVariable) -> TensorVariable:
    """P(X <= k) for X ~ Poisson(rate)."""
    if k < 0:
        return pt.zeros_like(rate)
    return pt.gammaincc(pt.constant(float(k + 1)), rate)


def _spread(statistic: BoundedMoments, rate: float) -> float:
    """Largest l(x) - l(x') at one rate: l is concave in x, with its mode at the rate rounded down.

    In log rate it is linear for each x and x', so that its largest value over rates is at an end.
    """
    if not 0 < rate < math.inf:
        return math.inf
    mode = min(max(math.floor(rate), statistic.low), statistic.high)
    values = [x * math.log(rate) - math.lgamma(x + 1) for x in (mode, statistic.low, statistic.high)]
    return values[0] - min(values)


def _size(statistic: BoundedMoments, rate: float) -> float:
    """Largest -l at one rate: l <= 0 is concave in x and in the rate, so least at ends."""
    if not 0 < rate < math.inf:
        return math.inf
    return max(rate - x * math.log(rate) + math.lgamma(x + 1) for x in (statistic.low, statistic.high))
