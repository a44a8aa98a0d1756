"""Which histories of spends fit a budget, where each spend may be chosen by looking at the results of earlier ones.

Three facts carry the account. P and Q are the distributions, on two neighbours, of everything that is seen: results and
choices.

1. *Adding.* Let the spends of a history h have pure losses that sum to e0. Then P(h) <= e^e0 Q(h), so that
   (P(h) p - e^epsilon Q(h) q)+ <= P(h) (p - e^(epsilon - e0) q)+, where p and q are the distributions of what follows
   h. If that is (epsilon - e0, delta)-DP after every h, then everything together is (epsilon, delta)-DP. How it goes
   on, and by which rules it is counted from then on, may depend on h. Spends that are (loss, d)-DP add likewise, their
   d too: P is a part below e^loss Q and one of mass d, whatever follows; what follows is to be (epsilon - e0, delta -
   sum of the d)-DP (basic composition; Rogers, Roth, Ullman, Vadhan 2016, theorem 3.6).
2. *One sum.* One spend that is (e1, d)-DP among spends with pure losses is together (e1 + sum of the losses, d)-DP: the
   filter of basic composition (Rogers, Roth, Ullman, Vadhan 2016, theorem 3.6). Any accountant may say what e1 is,
   since a spend's parameters are fixed before its first result. Which spend is the one is never decided later.
3. *Several rules.* Let rule j let through a set of histories, each with its beginnings, and let what it lets through
   be (epsilon, d_j)-DP. A run that may go on while any one rule lets it is (epsilon, sum of d_j)-DP: give each complete
   history to the first rule that lets it through. Those of rule j occur with the same probabilities where rule j alone
   decides, so that they add at most d_j to the integral of (P - e^epsilon Q)+. The d_j must be fixed before the first
   result: they may not be delta each, since choices that look at results could then collect the delta of both.

Spends add (1), at no delta or one that they have themselves, until one has neither, or needs more of delta to be
cheap. That one *opens* what is left of epsilon, before it has a result, to two rules (3) with half of what is left of
delta each: one sum (2), and concentrated losses (zCDP and one Renyi order fixed at the opening, which together are one
rule: see `Concentrated`). Where the one spend takes more than half of what is left, or would not fit otherwise,
one sum gets all of that delta.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self, final, override

from pymc_dp.kernel.accounting import basic, pure, rdp, zcdp
from pymc_dp.kernel.accounting.decimals import bounded, decimal, float_down, float_up
from pymc_dp.kernel.accounting.events import Event, PureEvent
from pymc_dp.kernel.accounting.totals import Total, total_epsilon
from pymc_dp.kernel.errors import ArgumentError

# These steer how much fits, never whether what fits is sound.
_MANY = 32  # a spend of at most 1 / 32 of what is left counts as the first of many, which concentrate
_LEAST = 1e-12  # of what is left; below, nothing is worth sharing
_GAIN = 100  # the one spend of a sum saves 1 / 100 of what is left, or more, by having a delta
_LAST_GAIN = 10_000  # or so much less where it does not fit otherwise


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """A set of histories that is (`left`, `delta`)-DP: those whose `total` is at most `left`."""

    left: float
    delta: float

    @abstractmethod
    def after(self, event: Event) -> Self:
        """Return the rule with `event` added to the history."""

    @property
    @abstractmethod
    def total(self) -> Total:
        """What the history costs by this rule; infinite where it says nothing."""

    @property
    @abstractmethod
    def remaining(self) -> float:
        """A pure loss that the rule would still let through, rounded down."""


@final
@dataclass(frozen=True, kw_only=True)
class OneSum(Rule):
    """Spends with pure losses, and among them `one` that has a delta: the first to which it makes a difference."""

    losses: Fraction | None = Fraction(0)
    one: Total | None = None

    @override
    def after(self, event: Event) -> Self:
        loss = pure.total(event)
        if self.one is None:
            total = alone_at(event, self.delta)
            if loss is None or self._gains(loss, total):
                return replace(self, one=total)
        return replace(self, losses=None if loss is None or self.losses is None else bounded(self.losses + loss))

    def _gains(self, loss: Fraction, total: Total) -> bool:
        """Whether a delta makes a difference to a spend: it saves enough, or the spend does not fit without one."""
        assert self.losses is not None
        saves = loss - decimal(total.epsilon)
        fits = self.losses + loss <= decimal(self.left)
        return saves >= decimal(self.left) / (_GAIN if fits else _LAST_GAIN)

    @property
    @override
    def total(self) -> Total:
        if self.losses is None or (self.one is not None and math.isinf(self.one.epsilon)):
            return Total(epsilon=math.inf, delta=self.delta, accountant="sum")
        if self.one is None:
            return Total(epsilon=float_up(self.losses), delta=0.0, accountant="pure")
        epsilon = float_up(self.losses + decimal(self.one.epsilon))
        return Total(epsilon=epsilon, delta=self.delta, accountant="sum" if self.losses else self.one.accountant)

    @property
    @override
    def remaining(self) -> float:
        spent = self.total.epsilon
        return float_down(decimal(self.left) - decimal(spent)) if spent <= self.left else 0.0


@final
@dataclass(frozen=True, kw_only=True)
class Concentrated(Rule):
    """Spends whose zCDP, or Renyi divergences of one order, add.

    Attributes
    ----------
    order : float
        The Renyi order at which the rho of the budget converts to the budget. It is kept, not computed again: another
        version of the package may come to another, and divergences of two orders do not add.

    References
    ----------
    Feldman, Zrnic 2021 (Renyi filter). Taking the better of zCDP and of one order is one rule: the order is the one at
    which the rho of the budget converts to the budget, so that what zCDP lets through, the order lets through too.
    """

    order: float
    rho: Fraction | None = Fraction(0)
    divergence: float = 0.0

    @classmethod
    def opened(cls, left: float, delta: float) -> Self:
        """Return the rule before anything was spent."""
        return cls(left=left, delta=delta, order=zcdp.order_for(left, delta))

    @override
    def after(self, event: Event) -> Self:
        divergence = math.nextafter(self.divergence + rdp.divergence(event, self.order), math.inf)
        rho = zcdp.total(event)
        both = None if self.rho is None or rho is None else bounded(self.rho + rho)
        return replace(self, rho=both, divergence=divergence)

    @property
    @override
    def total(self) -> Total:
        by_rho = math.inf if self.rho is None else zcdp.epsilon_of_rho(float_up(self.rho), self.delta)
        by_order = rdp.epsilon_of(self.divergence, self.order, self.delta)
        name = "zcdp" if by_rho <= by_order else "rdp"
        return Total(epsilon=min(by_rho, by_order), delta=self.delta, accountant=name)

    @property
    @override
    def remaining(self) -> float:
        # A loss e has rho = e tanh(e/2) > e - 1, and rho seldom exceeds the epsilon it converts to; were the upper end
        # too low, less would be offered than there is.
        low, high = 0.0, self.left + 1
        for _ in range(60):
            middle = (low + high) / 2
            fits = self.after(PureEvent(epsilon=middle)).total.epsilon <= self.left
            low, high = (middle, high) if fits else (low, middle)
        return low


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """What was spent of (`epsilon`, `delta`), in order; a value.

    Attributes
    ----------
    added : Fraction
        Sum of the losses before the opening; like all sums here it is exact, or of so many digits that it is rounded up
        (`bounded`).
    failed : Fraction
        Sum of the failure probabilities that these had themselves.
    rules : tuple of Rule
        Those of the opening; none before it.
    """

    epsilon: float
    delta: float
    added: Fraction = Fraction(0)
    failed: Fraction = Fraction(0)
    rules: tuple[Rule, ...] = ()

    @property
    def left(self) -> float:
        """What is not added yet, rounded down."""
        return float_down(decimal(self.epsilon) - self.added)

    @property
    def delta_left(self) -> float:
        """What no spend has failed with yet, rounded down."""
        return float_down(decimal(self.delta) - self.failed)

    @property
    def remaining(self) -> float:
        """A pure epsilon that would fit now, rounded down; 0 if there is none."""
        return max(rule.remaining for rule in self.rules) if self.rules else self.left

    def after(self, event: Event, alone: Total) -> tuple[Self, Total]:
        """Return the account with `event` spent, and its total; the event fits where that is at most `epsilon`.

        Parameters
        ----------
        event : Event
            What is spent.
        alone : Total
            What it costs by itself, at the delta of the account.
        """
        if self.rules:
            account = replace(self, rules=tuple(rule.after(event) for rule in self.rules))
            return account, account._with_added(account._least)
        loss, sums = pure.total(event), basic.total(event)
        if loss is not None and (self.delta_left == 0 or self._adds(loss, alone)):
            sums = loss, Fraction(0)
        elif sums is None or not self._adds_failing(*sums, alone):
            return self._opened(event, alone)
        account = replace(self, added=bounded(self.added + sums[0]), failed=bounded(self.failed + sums[1]))
        return account, account._with_added(Total(epsilon=0.0, delta=0.0, accountant="pure"))

    def _adds_failing(self, loss: Fraction, failure: Fraction, alone: Total) -> bool:
        return (
            failure <= decimal(self.delta_left)
            and loss <= decimal(self.left)
            and math.isfinite(alone.epsilon)
            and loss <= 2 * decimal(alone.epsilon)
        )

    def _adds(self, loss: Fraction, alone: Total) -> bool:
        left = decimal(self.left)
        return left / _MANY < loss <= left and loss <= 2 * decimal(alone.epsilon)

    def _opened(self, event: Event, alone: Total) -> tuple[Self, Total]:
        if self.failed:
            alone = alone_at(event, self.delta_left)
        half = self.delta_left / 2
        if alone.epsilon <= self.left / 2 and self.left > _LEAST and half > 0:
            rules: list[Rule] = [OneSum(left=self.left, delta=half), Concentrated.opened(self.left, half)]
            account = replace(self, rules=tuple(rule.after(event) for rule in rules))
            if account._least.epsilon <= self.left:
                return account, self._with_added(alone)
        whole: Rule = OneSum(left=self.left, delta=self.delta_left)
        account = replace(self, rules=(whole.after(event),))
        return account, self._with_added(account._least)

    @property
    def _least(self) -> Total:
        return min((rule.total for rule in self.rules), key=lambda total: total.epsilon)

    def _with_added(self, total: Total) -> Total:
        epsilon = float_up(self.added + decimal(total.epsilon)) if math.isfinite(total.epsilon) else math.inf
        accountant = "sum" if self.added and total.delta else "basic" if self.failed else total.accountant
        return Total(epsilon=epsilon, delta=self.delta if total.delta or self.failed else 0.0, accountant=accountant)


def alone_at(event: Event, delta: float) -> Total:
    """Return what an event costs by itself; infinite where its own failure probability is above `delta`."""
    try:
        return total_epsilon(event, delta)
    except ArgumentError:
        return Total(epsilon=math.inf, delta=delta, accountant="basic")
