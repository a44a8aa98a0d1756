"""What likelihoods of counted levels share."""

from __future__ import annotations

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
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


def natural_bounds(observed: Observed, n_levels: int) -> Problem | None:
    """Refuse declared bounds that are not the levels themselves."""
    if observed.bounds is None or observed.bounds == (0, n_levels - 1):
        return None
    return Problem(
        where=observed.name,
        what=f"its bounds {observed.bounds} are not its levels 0..{n_levels - 1}",
        remedy="Leave the bounds out: the likelihood already says which values there are.",
    )
