"""The path from the prior to the tempered posterior: inverse temperatures, relative to the last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError

POWER = 4.0
"""Steps close to the prior are short, where the likelihood is unlikely, and cost next to nothing."""
Temperatures = int | Sequence[float]


def path_of(temperatures: Temperatures, power: float | None = None) -> tuple[float, ...]:
    """Return inverse temperatures that increase to 1, without the prior's 0.

    Parameters
    ----------
    temperatures : int or sequence of float
        How many, J, on the path ``(j / J) ** power``; or numbers > 0 that increase, of which only ratios count: β_j,
        or the ε_j of an exact draw at each, which is proportional to it.
    power : float, optional
        > 0; 4 unless given. Only for a number of temperatures.

    Raises
    ------
    ArgumentError
        For other numbers.

    References
    ----------
    Friel, Pettitt (2008), Marginal likelihood estimation via power posteriors, section 3 (powers of 3 to 5), doi
    10.1111/j.1467-9868.2007.00650.x.

    Examples
    --------
    >>> path_of(4, power=2)
    (0.0625, 0.25, 0.5625, 1.0)
    >>> path_of([0.1, 0.2, 0.4])
    (0.25, 0.5, 1.0)
    """
    if isinstance(temperatures, Sequence) and not isinstance(temperatures, str):
        if power is not None:
            raise ArgumentError(
                "power= shapes a path that is given by the number of its temperatures. Leave it out with a list of "
                "them."
            )
        return _given(temperatures)
    count = _validate.integer("temperatures", temperatures, 1, 10**6)
    exponent = POWER if power is None else _validate.number("power", power)
    if exponent <= 0:
        raise ArgumentError(f"power must be > 0, got {exponent}. Leave it out for {POWER:g}.")
    return _checked([(place / count) ** exponent for place in range(1, count + 1)])


def _given(temperatures: Sequence[float]) -> tuple[float, ...]:
    held = [_validate.number("each of temperatures", item) for item in temperatures]
    if not held:
        raise ArgumentError("temperatures must be a number of them, or a list of one or more.")
    return _checked([item / held[-1] if held[-1] else math.nan for item in held])


def _checked(path: Sequence[float]) -> tuple[float, ...]:
    if not all(low < high for low, high in pairwise([0.0, *path])):
        raise ArgumentError(
            "temperatures must be inverse temperatures > 0 that increase, from close to the prior to the posterior: on "
            "a path that turns back one row could move a weight by more than is paid for."
        )
    return tuple(path)


__all__ = ["Temperatures", "path_of"]
