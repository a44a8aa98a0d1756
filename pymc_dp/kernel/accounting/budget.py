"""A privacy budget: a value, compared and split exactly.

Exact arithmetic of privacy losses: a float stands for the decimal number that it prints.

0.1 as a float is 5.6e-18 more than one tenth, so ten spends of 0.1 would not fit a budget of 1.0. Everywhere in this
package a loss written 0.1 therefore *means* one tenth: sums and comparisons are exact on fractions, and a loss that is
computed is rounded up to a float whose printed decimal is not below it. No tolerance is needed and none is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from pymc_dp.kernel import _validate
from pymc_dp.kernel.errors import ArgumentError

_LONG = 10**1000
_GRID = 10**200


def decimal(value: float) -> Fraction:
    """Return the number that ``repr(value)`` shows, as a fraction; `value` must be finite."""
    return Fraction(repr(value))


def float_up(value: Fraction) -> float:
    """Return the least float whose decimal is >= `value` (inf where there is none).

    Printed decimals increase with the float, because each lies in its float's own rounding interval; so a step or two
    from the nearest float is enough.
    """
    try:
        result = float(value)
    except OverflowError:
        return math.inf
    while math.isfinite(result) and decimal(result) < value:
        result = math.nextafter(result, math.inf)
    return result


def bounded(value: Fraction) -> Fraction:
    """Return `value` where it can be written in some digits, or else a number hardly above it.

    Sums of fractions with different denominators grow by the digits of each, and Python refuses to write or to read
    numbers of more than 4300.
    """
    if value.denominator < _LONG:
        return value
    return Fraction(-(-value.numerator * _GRID // value.denominator), _GRID)


def float_down(value: Fraction) -> float:
    """Return the greatest float whose decimal is <= `value`; `value` must be >= 0 and within range."""
    result = float(value)
    while decimal(result) > value:
        result = math.nextafter(result, -math.inf)
    return result


@final
@dataclass(frozen=True)
class Budget:
    """An amount of privacy loss: (epsilon, delta) per row, for everything it pays for together.

    Parameters
    ----------
    epsilon : float
        Privacy loss >= 0, read as the decimal number it prints.
    delta : float
        Failure probability in [0, 1).

    Examples
    --------
    >>> Budget(1.0, 1e-6).covers(Budget(0.5))
    True
    >>> print(Budget(1.0))
    epsilon=1.0, delta=0
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon = _validate.number("epsilon", self.epsilon)
        object.__setattr__(self, "epsilon", epsilon if epsilon == 0 else _validate.epsilon(epsilon))
        object.__setattr__(self, "delta", _validate.delta(self.delta))

    def __str__(self) -> str:
        return f"epsilon={self.epsilon!r}, delta={self.delta or 0!r}"

    def covers(self, other: Budget) -> bool:
        """Return whether `other` is no more than this, in epsilon and in delta."""
        _validate.instance("other", other, Budget, "Write dp.Budget(epsilon, delta).")
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def split(self, weights: Sequence[float]) -> tuple[Budget, ...]:
        """Return budgets in proportion to `weights` (> 0) whose exact sum is not above this one.

        Examples
        --------
        >>> [part.epsilon for part in Budget(1.0).split([1, 2, 2])]
        [0.2, 0.4, 0.4]
        """
        given = [_validate.number("each of weights", weight) for weight in _validate.several("weights", weights)]
        exact = list(map(Fraction, given))
        if not exact or min(exact) <= 0:
            raise ArgumentError(f"weights must be one number > 0 or more, got {given}.")
        shares = [weight / sum(exact) for weight in exact]
        epsilon, delta = decimal(self.epsilon), decimal(self.delta)
        return tuple(Budget(float_down(epsilon * share), float_down(delta * share)) for share in shares)
