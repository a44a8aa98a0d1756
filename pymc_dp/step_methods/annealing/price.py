"""What annealed importance sampling costs at a last inverse temperature, and the greatest that a budget affords."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pymc_dp.accounting import (
    BoundedRangeEvent,
    Budget,
    ComposedEvent,
    DiscreteLaplaceEvent,
    Event,
    PureEvent,
    SelfComposedEvent,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting._search import least_noise
from pymc_dp.errors import ArgumentError
from pymc_dp.release.noise import LAPLACE

WEIGHT_BITS = 40
"""Weights are released in units of 2**-40."""
EVIDENCE_BITS = 20
"""The log evidence is released in units of 2**-20 of what one row moves it by, or finer."""
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
    range, sensitivity : float
        R and Δl of one row's log-likelihood over all parameters together.
    indices : int
        Draws that are chosen by their weights, one mechanism each.
    weights, evidence : float
        ε of the noise on all weights, and on the log evidence; 0 where they are not released.
    """

    path: tuple[float, ...]
    updates: tuple[float, ...]
    particles: int
    range: float
    sensitivity: float
    indices: int
    weights: float
    evidence: float

    def transitions(self, beta: float) -> Event:
        """All scans of all particles."""
        events = tuple(BoundedRangeEvent(eta=_above(beta * step * item)) for step in self.path for item in self.updates)
        return SelfComposedEvent(event=ComposedEvent(events=events), count=self.particles)

    def choices(self, beta: float) -> Event:
        """All indices that are drawn by their weights."""
        return SelfComposedEvent(event=BoundedRangeEvent(eta=_above(beta * self.range)), count=self.indices)

    def noise_on_weights(self, beta: float) -> DiscreteLaplaceEvent:
        """Noise on all normalised weights, in units of 2**-40."""
        return _noise(weights_sensitivity(beta * self.range, self.particles), self.weights)

    def noise_on_evidence(self, beta: float) -> DiscreteLaplaceEvent:
        """Noise on the log of the mean weight, in units of `evidence_unit`."""
        moved = beta * self.sensitivity
        return _noise(math.ceil(moved / evidence_unit(moved)) + 1, self.evidence)

    def parts(self, beta: float) -> list[tuple[str, Event]]:
        """Everything that is charged, by name."""
        found: list[tuple[str, Event]] = [("path", self.transitions(beta))]
        if self.indices:
            found.append(("draws", self.choices(beta)))
        if self.weights:
            found.append(("weights", self.noise_on_weights(beta)))
        if self.evidence:
            found.append(("log evidence", self.noise_on_evidence(beta)))
        return found

    def event(self, beta: float) -> Event:
        """Everything, as it is charged."""
        return ComposedEvent(events=tuple(event for _, event in self.parts(beta)))

    def planned(self, beta: float) -> Event:
        """The same, with the pure losses that noise is made for: what decides on β."""
        parts = [self.transitions(beta), *([self.choices(beta)] if self.indices else [])]
        parts += [PureEvent(epsilon=loss) for loss in (self.weights, self.evidence) if loss]
        return ComposedEvent(events=tuple(parts))

    @cached_property
    def ranges(self) -> tuple[float, float]:
        """Sum of the ranges of all exponential mechanisms, and of their squares."""
        chosen = (self.indices * self.range, self.indices * self.range**2)
        first, second = (
            math.fsum(self.particles * (step * item) ** power for step in self.path for item in self.updates)
            for power in (1, 2)
        )
        return first + chosen[0], second + chosen[1]


def weights_sensitivity(eta: float, particles: int) -> int:
    """Return how far one row moves all normalised weights together (L1), in units of 2**-40, each rounded down.

    Parameters
    ----------
    eta : float
        Range over particles of what one row adds to a log weight.
    particles : int

    Notes
    -----
    **Guarantee.** Let w and v be the weights on two neighbours, A the particles of which w > v, and p, q what A has of
    each. By the range of log(w / v) the odds of p and q differ by a factor of e^eta at most, and of all numbers with
    logits at most eta apart p - q is largest for σ(eta/2) - σ(-eta/2) = tanh(eta/4). So the L1 distance, 2 (p - q), is
    at most 2 tanh(eta/4): below the 2 of any two points of a simplex. Rounding down moves each weight by less than a
    unit, the rounding of floats included.

    Examples
    --------
    >>> weights_sensitivity(0.01, 20) / 2**40 < 0.005 + 1e-10, weights_sensitivity(1e9, 20) == 2**41 + 21
    (True, True)
    """
    return math.ceil(min(_above(2 * math.tanh(eta / 4)), 2.0) * 2**WEIGHT_BITS) + particles + 1


def evidence_unit(moved: float) -> float:
    """Return a power of 2 far below what one row moves the log evidence by; public."""
    return 2.0 ** (math.floor(math.log2(moved)) - EVIDENCE_BITS)


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
    ...     sensitivity=2.0,
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
        return total_epsilon(costs.planned(1 / temperature), budget.delta).epsilon

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


def _noise(sensitivity: int, epsilon: float) -> DiscreteLaplaceEvent:
    return DiscreteLaplaceEvent(scale=LAPLACE.calibrate(sensitivity, epsilon), sensitivity=sensitivity)


def _above(value: float) -> float:
    return math.nextafter(value, math.inf)


__all__ = ["Costs", "evidence_unit", "largest_beta", "weights_sensitivity"]
