"""What one posterior sample costs at a temperature, and the least temperature that a budget allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymc_dp.accounting import BoundedRangeEvent, Budget, Event, PureEvent
from pymc_dp.accounting.calibrate import range_per_use
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.decimals import decimal, float_down

INSIDE, ABOVE = 1 - 1e-12, 1 + 1e-12
"""A temperature is raised by so much, and a price, for the rounding of the few operations that lead to it."""


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """How a posterior is tempered: the likelihood to the power `inverse`, the prior too where `prior` is set.

    Attributes
    ----------
    inverse : float
        β in (0, 1].
    prior : bool
    event : Event
        Cost of one draw.
    rule : str
        How β was found.
    """

    inverse: float
    prior: bool
    event: Event
    rule: str


def by_range(range_: float, budget: Budget, uses: int, added: float = 0.0) -> Temperature:
    """One draw is the exponential mechanism of bounded range β R; whole weights of a choice have `added` to it."""
    eta = range_per_use(budget.epsilon, budget.delta, uses=uses)
    inverse = _inverse(_less(eta, added, budget), range_)
    event = BoundedRangeEvent(eta=eta if inverse < 1 else (range_ + added) * ABOVE)
    return Temperature(inverse=inverse, prior=False, event=event, rule="bounded range")


def by_papers(sensitivity: float, budget: Budget, uses: int, added: float = 0.0) -> Temperature:
    """One draw is 2 β Δl-DP, and losses add; the prior is tempered as well [Foulds et al. 2016, theorem 2]."""
    if budget.delta:
        raise ArgumentError(
            f"delta={budget.delta:g} would buy nothing: the papers' rule adds pure losses. Use delta=0."
        )
    share = float_down(decimal(budget.epsilon) / uses)
    inverse = _inverse(_less(share, added, budget), 2 * sensitivity)
    event = PureEvent(epsilon=share if inverse < 1 else (2 * sensitivity + added) * ABOVE)
    return Temperature(inverse=inverse, prior=True, event=event, rule="2 Δl / ε, prior tempered (the papers')")


def sharpest(range_: float, budget: Budget, uses: int, added: float = 0.0) -> Temperature:
    """Pay for (prior x likelihood)^β by its bounded range β R, with β as large as it may be.

    β may be above 1, towards the mode. The prior has the same power, which the range does not see.
    """
    eta = range_per_use(budget.epsilon, budget.delta, uses=uses)
    event, least = BoundedRangeEvent(eta=eta), _less(eta, added, budget)
    return Temperature(inverse=least / range_ * INSIDE, prior=True, event=event, rule="bounded range")


def per_unit(range_: float, budget: Budget, uses: int, added: float, *, sharp: bool = False) -> Temperature:
    """One draw costs β R per unit of a metric, and what its whole weights add; losses add.

    With `sharp` the prior has the power β too, which may be above 1.
    """
    share = float_down(decimal(budget.epsilon) / uses)
    least = _less(share, added, budget)
    inverse = least / range_ * INSIDE if sharp else _inverse(least, range_)
    event = PureEvent(epsilon=share if sharp or inverse < 1 else (range_ + added) * ABOVE)
    return Temperature(inverse=inverse, prior=sharp, event=event, rule="range per unit of ρ")


def worth(temperature: float, count: int) -> str:
    """Say how far so many draws at a temperature lie from the truth, where rows are many."""
    mean = f", the mean of {count} draws √(1 + T / {count}) = {math.sqrt(1 + temperature / count):.3g} times"
    return (
        f"about the truth a draw has √(1 + T) = {math.sqrt(1 + temperature):.3g} times the posterior's sd"
        f"{mean if count > 1 else ''}, where rows are many; more draws would each have a higher temperature. "
        "Intervals that know it, of two draws or more: dp.from_draws.draw_intervals(idata)"
    )


def _less(eta: float, added: float, budget: Budget) -> float:
    """Return what of a price is left for the rows."""
    if eta <= 2 * added:
        raise ArgumentError(
            f"epsilon={budget.epsilon:g} is too little: the whole weights of one choice among so many cells or "
            f"candidates cost {added:.2g} alone. Give fewer of them, fewer draws, or a larger epsilon."
        )
    return eta - added


def _inverse(allowed: float, needed: float) -> float:
    return 1.0 if needed <= allowed else allowed / needed * INSIDE


__all__ = ["Temperature", "by_papers", "by_range", "per_unit", "sharpest", "worth"]
