"""Privacy filters: the whole budget is reserved first, each step's loss is checked before it is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Never, SupportsIndex, final, override

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel.accounting.decimals import decimal, float_down, float_up
from pymc_dp.kernel.accounting.events import Event, PureEvent, ZCDPEvent


class Filter(ABC):
    """A preset loss for a run whose steps are chosen by looking at those before, and which stops before it is used up.

    Parameters
    ----------
    preset : float
        Loss > 0 of the whole run, per row, read as the decimal number it prints.

    Notes
    -----
    **Guarantee.** That of `event`, which the ledger is charged before the first step, whatever is then spent. A step's
    loss must hold for every pair of neighbours and be computed from released values and the public domain, before the
    step is made. The realised sum is bookkeeping; it is no guarantee.

    A filter cannot be copied or pickled, since two copies could spend the same preset twice.

    References
    ----------
    Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021.
    """

    #: What is spent, in error texts.
    unit: str

    def __init__(self, preset: float) -> None:
        self._preset = _validate.epsilon(preset, self.unit)
        self._spent = Fraction(0)

    @property
    def preset(self) -> float:
        """Loss of the whole run."""
        return self._preset

    @property
    def spent(self) -> float:
        """Sum of the losses of the steps made, rounded up; bookkeeping."""
        return min(float_up(self._spent), self._preset)

    @property
    def remaining(self) -> float:
        """The greatest loss that may be spent now, rounded down."""
        return float_down(decimal(self._preset) - self._spent)

    @property
    @abstractmethod
    def event(self) -> Event:
        """What the whole run costs; charge it before the first step."""

    def may_spend(self, loss: float) -> bool:
        """Return whether a step of `loss` >= 0 still fits; False if it is infinite."""
        return loss != math.inf and not self._exceeds(loss)

    def spend(self, loss: float) -> None:
        """Charge one step of `loss` >= 0, or raise and change nothing. Call it before the step is made.

        Raises
        ------
        BudgetExceeded
            If the sum would be above the preset.
        ArgumentError
            If `loss` is negative or no number.
        """
        if not self.may_spend(loss):
            raise BudgetExceeded(
                f"A step of {self.unit}={loss!r} does not fit: {self.spent!r} of {self._preset!r} is spent. "
                "Stop here; what was released so far is paid for."
            )
        self._spent += decimal(float(loss))

    def _exceeds(self, loss: float) -> bool:
        loss = _validate.number(self.unit, loss)
        if loss < 0:
            raise ArgumentError(f"{self.unit} of a step must be >= 0, got {loss}. A step can only add to the loss.")
        return self._spent + decimal(loss) > decimal(self._preset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.unit}={self._preset!r}), spent {self.spent!r}"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        raise PrivacyError(
            "A filter cannot be copied or pickled: the copies could spend the same preset twice. Make one for each "
            "chain, with a preset of its own."
        )


@final
class PureFilter(Filter):
    """A run of steps with pure losses, which add.

    Examples
    --------
    >>> run = PureFilter(1.0)
    >>> run.spend(0.75)
    >>> run.may_spend(0.25), run.may_spend(0.3)
    (True, False)
    >>> run.event
    PureEvent(epsilon=1.0)
    """

    unit = "epsilon"

    @property
    @override
    def event(self) -> PureEvent:
        return PureEvent(epsilon=self._preset)


@final
class ZCDPFilter(Filter):
    """A run of zCDP steps: bounded ranges (rho = eta^2 / 8), Gaussian noise, pure losses (`Event.zcdp_rho`).

    Examples
    --------
    >>> run = ZCDPFilter(0.5)
    >>> run.spend(1.0**2 / 8)
    >>> run.remaining
    0.375
    """

    unit = "rho"

    @property
    @override
    def event(self) -> ZCDPEvent:
        return ZCDPEvent(rho=self._preset)
