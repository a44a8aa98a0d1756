"""Rows drawn by NumPy, where its generator has no call for a likelihood."""

from __future__ import annotations

import numpy as np

from pymc_dp.inspection.rows import Array

MOST_RATE = 1e18
"""Beyond, where no posterior is, NumPy draws no counts."""


def drawn_levels(rng: np.random.Generator, p: Array) -> Array:
    """Draw one level per row of (n, n_levels) probabilities."""
    below = np.cumsum(p, axis=-1)
    found: Array = (rng.random((len(p), 1)) * below[:, -1:] >= below[:, :-1]).sum(axis=-1).astype(np.float64)
    return found


def drawn_counts(rng: np.random.Generator, rate: Array) -> Array:
    """Draw one Poisson count per rate."""
    return np.asarray(rng.poisson(np.minimum(rate, MOST_RATE)))


__all__ = ["MOST_RATE", "drawn_counts", "drawn_levels"]
