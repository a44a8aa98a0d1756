"""Parameters that events of several kinds have: shifts, noise multipliers, losses."""

from __future__ import annotations

import math
from fractions import Fraction

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_down
from pymc_dp.errors import ArgumentError


def canonical_shifts(shifts: object) -> tuple[int, ...]:
    """Return shifts in falling order: the loss does not depend on it, and equal events must compare equal."""
    if not isinstance(shifts, tuple | list) or not shifts:
        raise ArgumentError(f"shifts must be a tuple of whole numbers such as (1, 1), or None, got {shifts!r}.")
    return tuple(sorted((_validate.integer("each of shifts", shift) for shift in shifts), reverse=True))


def multiplier(value: object, unit: str) -> float:
    """Return a noise multiplier, standard deviation over `unit`, neither so small nor so large that squares fail."""
    result = _validate.number("noise_multiplier", value)
    if not 1e-6 <= result <= 1e12:
        raise ArgumentError(
            f"noise_multiplier (standard deviation / {unit}) must lie in [1e-6, 1e12], got {result}. "
            "calibrate.noise_multiplier returns the least one for a budget."
        )
    return result


def divided(loss: float, *factors: float) -> float:
    """Return a loss with so much more noise, rounded down."""
    try:
        return float_down(decimal(loss) / math.prod(map(decimal, factors), start=Fraction(1)))
    except OverflowError:
        raise ArgumentError(
            f"A loss of {loss!r} with {factors[0]!r} of its noise is beyond any float. Ask for a smaller epsilon."
        ) from None


__all__ = ["canonical_shifts", "divided", "multiplier"]
