"""The account of one chain: what a step costs before it is made, what has been spent, and what a step may cost.

What one step of tempered Metropolis may cost at most, and the account of such steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pymc_dp.accounting import Budget, Event, PureEvent, ZCDPEvent, zcdp
from pymc_dp.accounting.filters import Filter, PureFilter, ZCDPFilter
from pymc_dp.kernel.accounting.decimals import decimal, float_down

UP = 1 + 1e-14
"""Room for the rounding of the few operations of a step's loss."""
ORDERS = 128
DIGITS = 14
"""Losses are rounded up to decimals of a unit so many digits below the budget: their sum is then exact as a float."""
DRIFT, SCATTER = 0.2, 2.5
"""What the draws are planned to leave of the budget: a share, as the range changes on their way, and so many standard
deviations of the sum of their losses."""


class Price(Protocol):
    """What a step costs, and what it may cost; all of it public.

    Attributes
    ----------
    power : int
        How the loss of a step grows with its range.
    most : float
        Loss above which a step is refused unseen, whatever its proposal.
    """

    power: int
    most: float

    def restart(self) -> None:
        """Begin the account of one chain."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take it up where `state` stood."""

    def loss(self, reach: float) -> float:
        """Return the loss of a step of range `reach`."""

    def range_of(self, loss: float) -> float:
        """Return about the range that costs `loss`."""

    def allowed(self, left: int, demands: Sequence[float]) -> float:
        """Return the loss per step, on average, that the blocks of `left` more scans may have, given their demands."""

    def share(self, left: int) -> float:
        """Return the share of what is left that `left` steps of one proposal should be planned to use."""

    def affords(self, reach: float) -> bool:
        """Charge a step of range `reach`; False, and nothing is charged, where it does not fit. Public."""

    @property
    def epsilon(self) -> float:
        """Upper bound of the ε, at the budget's δ, of all chains, had each spent what this one has: bookkeeping."""

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""


class Spending:
    """A filter over exponential mechanisms of given ranges, with a conversion to ε that takes microseconds.

    Parameters
    ----------
    budget : Budget
        For all chains together. With δ = 0 ranges add; else their zero-concentrated losses do.
    chains : int
        Chains that share it equally.

    Attributes
    ----------
    power : {1, 2}
        How the loss of a step grows with its range.
    reserved : float
        What one chain may spend, in the filter's unit.

    References
    ----------
    Feldman, Zrnic (2021); conversion: Canonne, Kamath, Steinke (2020), proposition 12, at a fixed set of orders.
    """

    most = math.inf

    def __init__(self, budget: Budget, chains: int) -> None:
        self.budget = budget
        self.pure = budget.delta == 0
        self.power = 1 if self.pure else 2
        self._total = budget.epsilon if self.pure else zcdp.rho_for(budget.epsilon, budget.delta)
        self.chains, self.reserved = chains, float_down(decimal(self._total) / chains)
        digits = DIGITS - math.ceil(math.log10(self.reserved))
        self._per_unit = 10.0 ** min(max(digits, 0), 22)
        if not self.pure:
            self._slopes, self._offsets = _conversion(self._total, budget.delta)
        self.restart()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the filter behind: a copy in another process begins its own, once its chain has taken its token."""
        return {name: value for name, value in vars(self).items() if name != "filter"}

    @property
    def event(self) -> Event:
        """What all chains cost, whatever they spend."""
        return PureEvent(epsilon=self._total) if self.pure else ZCDPEvent(rho=self._total)

    def restart(self, spent: float = 0.0, pure_sum: float = 0.0) -> None:
        """Begin the account of one chain, or take it up where it stood."""
        self.filter: Filter = PureFilter(self.reserved) if self.pure else ZCDPFilter(self.reserved)
        self.filter.spend(spent)
        self.pure_sum = pure_sum

    def loss(self, reach: float) -> float:
        """Return what a step of range `reach` costs, rounded up: its range, or at most an eighth of its square."""
        loss = reach if self.pure else min(reach * reach / 8, reach * math.tanh(reach / 2))
        units = loss * UP * self._per_unit
        return math.ceil(units) / self._per_unit if units < math.inf else math.inf

    def range_of(self, loss: float) -> float:
        """Return about the range that costs `loss`."""
        return loss if self.pure else math.sqrt(8 * loss)

    def allowed(self, left: int, demands: Sequence[float]) -> float:
        """Share what is left among `left` scans, and among the blocks of each: what some do not need is for others."""
        return level(self.remaining / max(left, 1), demands)

    def share(self, left: int) -> float:
        """Leave room for the scatter of losses, and for ranges that change on the way."""
        return 1 / (1 + DRIFT + SCATTER * math.sqrt(2 / max(left, 1)))

    def affords(self, reach: float) -> bool:
        """Charge a step of range `reach`; False, and nothing is charged, where it does not fit. Public."""
        loss = self.loss(reach)
        if not self.filter.may_spend(loss):
            return False
        self.filter.spend(loss)
        self.pure_sum += reach * UP
        return True

    @property
    def spent(self) -> float:
        """What this chain has spent, in the filter's unit."""
        return self.filter.spent

    @property
    def remaining(self) -> float:
        """What this chain may still spend, in the filter's unit."""
        return max(0.0, self.reserved - self.filter.spent)

    @property
    def epsilon(self) -> float:
        """Upper bound of the ε, at the budget's δ, of all chains, had each spent what this one has."""
        spent = self.chains * self.filter.spent
        if self.pure or self.pure_sum == 0.0:
            return spent
        converted = float((self._slopes * spent + self._offsets).min())
        return min(max(converted, 0.0), self.chains * self.pure_sum)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take the account up where `state` stood."""
        self.restart(**state)

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""
        return {"spent": self.filter.spent, "pure_sum": self.pure_sum}


def level(total: float, demands: Sequence[float]) -> float:
    """Return the level at which demands, each met up to it, add up to `total`; what the largest may have, if all fit.

    Examples
    --------
    >>> level(6.0, [math.inf, 1.0, math.inf]), level(6.0, [1.0, 2.0])
    (2.5, 5.0)
    """
    left, count = total, len(demands)
    for demand in sorted(demands)[:-1]:
        if demand * count >= left:
            break
        left, count = left - demand, count - 1
    return left / count


def _conversion(rho: float, delta: float) -> tuple[Any, Any]:
    """Slopes and offsets of ε(ρ') = min over orders of lines, for ρ' from 1e-12 ρ to ρ; each line is a valid bound."""
    log_inverse = -math.log(delta)
    x = np.sqrt(log_inverse / (rho * np.geomspace(1e-12, 1.0, ORDERS)))  # order less one
    x = np.append(x, zcdp.order_for(zcdp.epsilon_of_rho(rho, delta), delta) - 1)
    terms = np.stack([log_inverse / x, -np.log1p(x) / x, np.log(x) - np.log1p(x)])
    return (1 + x) * UP, terms.sum(axis=0) + 1e-13 * np.abs(terms).sum(axis=0)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What the kernel charges for one step: (`epsilon`, 1 - e^-`fall`); public."""

    epsilon: float
    fall: float


class Allowance:
    """Steps of which each may cost an equal share of (ε, δ); what one does not use is lost to the others.

    Attributes
    ----------
    epsilon, delta : float
        Of one step.
    chains : int
    """

    power = 1
    most = math.inf

    def __init__(self, epsilon: float, delta: float, chains: int = 1) -> None:
        self.each, self.delta, self.chains = epsilon, delta, chains
        self.restart()

    @property
    def most_fall(self) -> float:
        """Largest `Certificate.fall` of a step."""
        return -math.log1p(-self.delta)

    def covers(self, step: Certificate) -> bool:
        """Whether a step is certified to cost no more than its share. Public."""
        return step.epsilon <= self.each and step.fall <= self.most_fall

    def restart(self) -> None:
        """Begin the account of one chain."""
        self.epsilon = 0.0

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take it up where `state` stood."""
        self.epsilon = state["epsilon"]

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""
        return {"epsilon": self.epsilon}

    def loss(self, reach: float) -> float:
        """Return the loss itself."""
        return reach

    def range_of(self, loss: float) -> float:
        """Return the loss itself."""
        return loss

    def allowed(self, left: int, demands: Sequence[float]) -> float:
        """Return the share of one step."""
        return self.each

    def share(self, left: int) -> float:
        """Return the whole."""
        return 1.0

    def affords(self, reach: float) -> bool:
        """Note the loss of a step whose certificate was covered."""
        self.epsilon += self.chains * reach
        return True


__all__ = ["Allowance", "Certificate", "Price", "Spending", "level"]
