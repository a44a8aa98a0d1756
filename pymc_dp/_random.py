"""Randomness of what is no privacy noise: a generator from the seed that a user gave."""

from __future__ import annotations

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError


def public_generator(random_seed: object) -> np.random.Generator:
    """Return a generator from the `random_seed` that a user gave.

    Raises
    ------
    ArgumentError
        For what is no seed.
    """
    try:
        return np.random.default_rng(random_seed)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"random_seed must be a whole number >= 0, a Generator or None, got {_validate.shown(random_seed)}. Leave "
            "it out for another draw at each call."
        ) from None
