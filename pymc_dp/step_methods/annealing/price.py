"""What annealed importance sampling costs at a last inverse temperature, and the greatest that a budget affords.

The path from the prior to the tempered posterior: inverse temperatures, relative to the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from pymc_dp import _validate
from pymc_dp.accounting import (
    BoundedRangeEvent,
    Budget,
    ComposedEvent,
    Event,
    PureEvent,
    SelfComposedEvent,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.calibrate import least_noise
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.sums import least_gap
from pymc_dp.step_methods.gibbs.paying import PricedDraw

LEAST_GAPS = 2.0
"""Widths of the shortest interval that the kernel takes."""
LEAST_SHARE = 1e-9
"""Of ε, that the path must have."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Everything that is paid for, at inverse temperature 1 of the last transition.

    Attributes
    ----------
    path : tuple of float
        Inverse temperatures relative to the last.
    updates : tuple of float
        Range of each mechanism of one scan.
    particles : int
    range : float
        R of one row's log-likelihood over all parameters together.
    indices : int
        Draws that are chosen by their weights, one mechanism each.
    weights, evidence : float
        ε of the noise on all weights, and on the log evidence; 0 where they are not released.
    slacks : tuple of float
        What is added to the range of each mechanism of a scan, by whole weights and rounding.
    slack : float
        Likewise, of an index.
    ends : (float, float), optional
        Of rows that are gone through one by one: between which their log-likelihoods lie.
    """

    path: tuple[float, ...]
    updates: tuple[float, ...]
    particles: int
    range: float
    indices: int
    weights: float
    evidence: float
    slacks: tuple[float, ...] = ()
    slack: float = 0.0
    ends: tuple[float, float] | None = None

    def transitions(self, beta: float) -> Event:
        """All scans of all particles."""
        pairs = list(zip(self.updates, self.slacks or (0.0,) * len(self.updates), strict=True))
        events = tuple(
            PricedDraw(most=item, slack=more).event(beta * step) for step in self.path for item, more in pairs
        )
        return SelfComposedEvent(event=ComposedEvent(events=events), count=self.particles)

    def choices(self, beta: float) -> Event:
        """All indices that are drawn by their weights."""
        return SelfComposedEvent(
            event=BoundedRangeEvent(eta=_above(beta * self.range + self.slack)), count=self.indices
        )

    def interval(self, beta: float) -> tuple[float, float]:
        """Return the ends between which a row's share of a log weight is held, where rows are gone through."""
        assert self.ends is not None
        low, high = beta * self.ends[0], beta * self.ends[1]
        short = max(0.0, LEAST_GAPS * least_gap(self.particles) - (high - low))
        return low - short / 2, high + short / 2

    def parts(self, beta: float) -> list[tuple[str, Event]]:
        """Everything that is charged, by name."""
        found: list[tuple[str, Event]] = [("path", self.transitions(beta))]
        if self.indices:
            found.append(("draws", self.choices(beta)))
        noised = (("weights", self.weights), ("log evidence", self.evidence))
        return found + [(name, PureEvent(epsilon=loss)) for name, loss in noised if loss]

    def event(self, beta: float) -> Event:
        """Everything, as it is charged."""
        return ComposedEvent(events=tuple(event for _, event in self.parts(beta)))

    @cached_property
    def ranges(self) -> tuple[float, float]:
        """Sum of the ranges of all exponential mechanisms, and of their squares."""
        chosen = (self.indices * self.range, self.indices * self.range**2)
        first, second = (
            math.fsum(self.particles * (step * item) ** power for step in self.path for item in self.updates)
            for power in (1, 2)
        )
        return first + chosen[0], second + chosen[1]


def largest_beta(costs: Costs, budget: Budget) -> float:
    """Return the greatest last inverse temperature in (0, 1] found at which everything fits a budget.

    Raises
    ------
    ArgumentError
        If the shares of weights and evidence leave nothing to the path.

    Examples
    --------
    >>> path = Costs(
    ...     path=(0.5, 1.0),
    ...     updates=(2.0,),
    ...     particles=3,
    ...     range=2.0,
    ...     indices=1,
    ...     weights=0.0,
    ...     evidence=0.0,
    ... )
    >>> round(largest_beta(path, Budget(1.1)) * (3 * 1.5 * 2 + 2), 6)
    1.1
    """
    return _largest_beta(costs, budget)


@lru_cache(maxsize=256)
def _largest_beta(costs: Costs, budget: Budget) -> float:
    def total(temperature: float) -> float:
        return total_epsilon(costs.event(1 / temperature), budget.delta).epsilon

    left = budget.epsilon - costs.weights - costs.evidence
    if left <= LEAST_SHARE * budget.epsilon:  # of ε, or of what rounding has left of it
        raise ArgumentError("weights_share and evidence_share leave nothing to the path. Their sum must be below 1.")
    if total(1.0) <= budget.epsilon:
        return 1.0
    first, second = costs.ranges
    temperatures = [first / left]
    if budget.delta > 0:
        temperatures.append(math.sqrt(second / (8 * zcdp.rho_for(left, budget.delta))))
    temperature, more = max(1.0, min(temperatures)), 1e-15
    while total(temperature) > budget.epsilon:  # by the last digits only
        temperature *= 1 + more
        more = min(2 * more, 0.5)
    if budget.delta > 0:
        temperature = min(temperature, max(1.0, least_noise(total, budget.epsilon, temperature)))
    return 1 / temperature


def _above(value: float) -> float:
    return math.nextafter(value, math.inf)


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


__all__ = ["Costs", "Temperatures", "largest_beta", "path_of"]
