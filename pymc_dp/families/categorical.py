"""Categorical rows: counts of every level."""

from __future__ import annotations

from typing import override

import numpy as np

from pymc_dp.errors import Problem
from pymc_dp.families._counts import natural_bounds
from pymc_dp.families.conjugate_form import Shares
from pymc_dp.families.family import CountFamily, LevelCounts, RowStatistic, drawn_levels
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Categorical(CountFamily):
    """``pm.Categorical`` (also ``pm.OrderedLogistic``): one count per level and cell.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), algorithm 1.
    """

    distribution = "categorical"
    event_ndims = (1,)
    base = 0.0
    conjugate = (Shares(slot=0),)

    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        """One level per entry of the last axis of ``p``."""
        n_levels = observed.static_shapes[0][-1]
        if n_levels is None:
            return Problem(
                where=observed.name,
                what="the number of its categories is not known before sampling",
                remedy="Give the probability vector dims= or a constant shape.",
            )
        return natural_bounds(observed, n_levels) or LevelCounts(labels=tuple(str(k) for k in range(n_levels)))

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return drawn_levels(rng, *parameters)
