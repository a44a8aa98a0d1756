"""Privacy filters: the whole budget is reserved first, each step's loss is checked before it is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Never, Self, SupportsIndex, final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting import gdp, zcdp
from pymc_dp.kernel.accounting.budget import decimal, float_down, float_up
from pymc_dp.kernel.accounting.events import Event, GaussianEvent, PureEvent, ZCDPEvent
from pymc_dp.kernel.errors import ArgumentError, BudgetExceeded, PrivacyError


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

    @abstractmethod
    def epsilon_spent(self, delta: float = 0.0) -> float:
        """Return the epsilon at `delta` of the steps made; bookkeeping."""

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

    @override
    def epsilon_spent(self, delta: float = 0.0) -> float:
        return self.spent


@final
class ZCDPFilter(Filter):
    """A run of zCDP steps: bounded ranges (rho = eta^2 / 8), Gaussian noise, pure losses (`Event.zcdp_rho`).

    Examples
    --------
    >>> run = ZCDPFilter.for_budget(1.0, 1e-6)
    >>> while run.may_spend(0.01**2 / 8):
    ...     run.spend(0.01**2 / 8)
    >>> run.epsilon_spent(1e-6) <= 1.0
    True
    """

    unit = "rho"

    @classmethod
    def for_budget(cls, epsilon: float, delta: float) -> Self:
        """Return the filter of the greatest rho that is (`epsilon`, `delta`)-DP; delta must be > 0."""
        return cls(zcdp.rho_for(epsilon, delta))

    @property
    @override
    def event(self) -> ZCDPEvent:
        return ZCDPEvent(rho=self._preset)

    @override
    def epsilon_spent(self, delta: float = 0.0) -> float:
        return 0.0 if self._spent == 0 else zcdp.epsilon_of_rho(self.spent, delta)


@final
class GaussianFilter(Filter):
    """A run of nothing but continuous Gaussian noise and mu-GDP mechanisms, to which it is bound from the start.

    A step of standard deviation s over an L2 sensitivity d costs rho = d^2 / (2 s^2), one that is mu-GDP mu^2 / 2. The
    squares of mu add up even where each step is chosen by looking at those before (Smith, Thakurta 2022; Koskela,
    Tobaben, Honkela 2023), so that the run as a whole costs what one Gaussian mechanism of that rho costs: less than
    zCDP says. For each step can be made from a piece of Brownian motion of length mu^2, with drift 1 on one neighbour
    and 0 on the other (Blackwell 1953); the pieces end before the preset does, and where the whole path ends tells
    neighbours apart as well as the path.

    Examples
    --------
    >>> GaussianFilter(0.125).event
    GaussianEvent(noise_multiplier=2.0)
    """

    unit = "rho"

    @classmethod
    def for_budget(cls, epsilon: float, delta: float) -> Self:
        """Return the filter of the greatest rho, of Gaussian noise, that is (`epsilon`, `delta`)-DP; delta > 0."""
        mu = Fraction(gdp.mu_for(epsilon, delta))
        preset = float_down(mu**2 / 2)
        while gdp.epsilon_at(cls(preset).event, delta) > epsilon:
            preset *= 1 - 1e-15
        return cls(preset)

    @property
    @override
    def event(self) -> GaussianEvent:
        rho = decimal(self._preset)
        noise_multiplier = 1 / math.sqrt(2 * self._preset)
        while 1 / (2 * Fraction(noise_multiplier) ** 2) < rho:  # rounded down: the event covers the preset
            noise_multiplier = math.nextafter(noise_multiplier, 0.0)
        return GaussianEvent(noise_multiplier=noise_multiplier)

    @override
    def epsilon_spent(self, delta: float = 0.0) -> float:
        return 0.0 if self._spent == 0 else gdp.epsilon_of_mu(gdp.mu_of_rho(self._spent), delta)
