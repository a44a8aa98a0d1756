"""A privacy budget: a value, compared and split exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.decimals import decimal, float_down


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
