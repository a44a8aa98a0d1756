"""A mechanism of which nothing but its pure loss is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event


@final
@dataclass(frozen=True, kw_only=True)
class PureEvent(Event, kind="pure"):
    """Any mechanism that is `epsilon`-DP with delta = 0, of which nothing else is known.

    Parameters
    ----------
    epsilon : float
        Pure privacy loss > 0 per use, read as the decimal number it prints.

    Examples
    --------
    >>> PureEvent(epsilon=0.5).to_dict()
    {'kind': 'pure', 'epsilon': 0.5}
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.epsilon(self.epsilon))

    @override
    def pure_loss(self) -> Fraction:
        return decimal(self.epsilon)


__all__ = ["PureEvent"]
