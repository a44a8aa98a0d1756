"""Bernoulli rows: counts of 0 and 1."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families._counts import clip_probability, natural_bounds
from pymc_dp.families.conjugate_form import Chance
from pymc_dp.families.family import CountFamily, LevelCounts, RowStatistic, Tensors
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array


class Bernoulli(CountFamily):
    """``pm.Bernoulli``, by probability or logit: one count per cell where the size of the cell is public, else two.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 3.2; the papers release the pair (x, 1 - x), which doubles the
    sensitivity of a public-size cell for nothing.
    """

    distribution = "bernoulli"
    event_ndims = (0,)
    base = 0.0
    conjugate = (Chance(slot=0, exponents=lambda e: (e.sums[:, 1], e.sums[:, 0])),)

    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        """Levels 0 and 1."""
        return natural_bounds(observed, 2) or LevelCounts(labels=("0", "1"))

    def supported(self, parameters: Tensors) -> TensorVariable:
        """``0 <= p <= 1``."""
        return (parameters[0] >= 0) & (parameters[0] <= 1)

    def probabilities(self, parameters: Tensors) -> TensorVariable:
        """Return (1 - p, p)."""
        p = clip_probability(parameters[0])
        return pt.stack([1 - p, p], axis=-1)

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        (p,) = parameters
        return (rng.random(len(p)) < p).astype(np.float64)
