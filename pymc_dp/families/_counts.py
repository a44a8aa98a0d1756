"""What likelihoods of counted levels share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.closed_form import Boxes, CellRanges, ClosedForm, Moving
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Observed

SMALLEST_PROBABILITY = 1e-16
"""Probabilities closer than this to 0 or 1 are moved, so that 0 * log 0 cannot arise."""
OFF_BALANCE = 1e-5
"""How far from 1 the sum of a row's probabilities may be: the likelihood divides them by it."""


def clip_probability(p: TensorVariable) -> TensorVariable:
    """Keep `p` within [1e-16, 1 - 1e-16]."""
    return pt.clip(p, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)


def multinomial_logp(probabilities: TensorVariable, counts: TensorVariable) -> TensorVariable:
    """``sum_k counts_k log probabilities_k`` over the last axis; counts need not be whole."""
    return (counts * pt.log(probabilities)).sum(axis=-1)


def on_the_simplex(p: TensorVariable) -> TensorVariable:
    """Whether vectors along the last axis are probabilities."""
    return pt.all(p >= 0, axis=-1) & (pt.abs(p.sum(axis=-1) - 1) < OFF_BALANCE)


def clipped_to_simplex(p: TensorVariable) -> TensorVariable:
    """Return probabilities, renormalised after clipping away exact zeros."""
    p = clip_probability(p)
    return p / p.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class Levels(ClosedForm):
    """Each p_k in [low_k, high_k] of the simplex: log (p_k / p_j) is largest with both at their ends."""

    high: float = 1.0

    @override
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        """Bound one row; where it is of several trials, all of them may be of the level that moves it most."""
        assert isinstance(statistic, LevelCounts)
        trials = statistic.per_row
        low, high = boxes[self.slot]
        if normalised:  # each is at most what the least of the others leave
            high = np.minimum(high, low + (1 - low.sum(axis=-1, keepdims=True)).clip(0))
        ranges = np.sort(np.log(high) - np.log(low), axis=-1)
        ratio = np.log(high)[..., :, None] - np.log(low)[..., None, :]
        ratio = np.where(np.eye(low.shape[-1], dtype=bool), 0.0, ratio)
        # log p_k - log p_j runs from log low_k - log high_j to log high_k - log low_j.
        spread = ratio + np.swapaxes(ratio, -1, -2)
        return CellRanges(
            same=trials * spread.max(axis=(-1, -2)),
            alone=trials * ranges[..., -1],
            same_size=trials * ratio.max(axis=(-1, -2)),
            alone_size=-trials * np.log(low.min(axis=-1)),
            room=0.0 if normalised else trials * 2.1 * OFF_BALANCE,
            reason=("" if statistic.trials is None else "trials by ")
            + "range of log(p_k / p_j) over the truncated simplex",
        )


def natural_bounds(observed: Observed, n_levels: int) -> Problem | None:
    """Refuse declared bounds that are not the levels themselves."""
    if observed.bounds is None or observed.bounds == (0, n_levels - 1):
        return None
    return Problem(
        where=observed.name,
        what=f"its bounds {observed.bounds} are not its levels 0..{n_levels - 1}",
        remedy="Leave the bounds out: the likelihood already says which values there are.",
    )
