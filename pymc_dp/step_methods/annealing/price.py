"""What annealed importance sampling costs at a last inverse temperature, and the greatest that a budget affords.

The path from the prior to the tempered posterior: inverse temperatures, relative to the last.

How far one row can move the log-likelihood over all parameters together: what weights along a path pay for.
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
    DiscreteLaplaceEvent,
    Event,
    PureEvent,
    SelfComposedEvent,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.calibrate import least_noise
from pymc_dp.accounting.noise_kinds import laplace_scale
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.kernel.choices import Ends
from pymc_dp.kernel.shapes import Move
from pymc_dp.kernel.sums import least_gap
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods
from pymc_dp.step_methods.table_rounding import rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import TableLikelihood

WEIGHT_BITS = 40
"""Weights are released in units of 2**-40."""
EVIDENCE_BITS = 20
"""The log evidence is released in units of 2**-20 of what one row moves it by, or finer."""
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
    range, sensitivity : float
        R and Δl of one row's log-likelihood over all parameters together.
    indices : int
        Draws that are chosen by their weights, one mechanism each.
    weights, evidence : float
        ε of the noise on all weights, and on the log evidence; 0 where they are not released.
    slacks : tuple of float
        Of a kernel that makes these choices: what whole weights add to what each mechanism of a scan costs.
    slack : float
        Likewise, of an index.
    ends : (float, float, int), optional
        Of rows that are gone through one by one: between which their log-likelihoods lie, and in how many rows
        neighbours differ.
    """

    path: tuple[float, ...]
    updates: tuple[float, ...]
    particles: int
    range: float
    sensitivity: float
    indices: int
    weights: float
    evidence: float
    slacks: tuple[float, ...] = ()
    slack: float = 0.0
    ends: tuple[float, float, int] | None = None

    def transitions(self, beta: float) -> Event:
        """All scans of all particles."""
        pairs = list(zip(self.updates, self.slacks or (0.0,) * len(self.updates), strict=True))
        events = tuple(
            BoundedRangeEvent(eta=_above(beta * step * item + more)) for step in self.path for item, more in pairs
        )
        return SelfComposedEvent(event=ComposedEvent(events=events), count=self.particles)

    def choices(self, beta: float) -> Event:
        """All indices that are drawn by their weights."""
        return SelfComposedEvent(
            event=BoundedRangeEvent(eta=_above(beta * self.range + self.slack)), count=self.indices
        )

    def noise_on_weights(self, beta: float) -> DiscreteLaplaceEvent:
        """Noise on all normalised weights, in units of 2**-40."""
        return _noise(weights_sensitivity(beta * self.range, self.particles), self.weights)

    def noise_on_evidence(self, beta: float) -> DiscreteLaplaceEvent:
        """Noise on the log of the mean weight, in units of `evidence_unit`."""
        if self.ends is not None:
            return self._noise_by_rows(beta)
        moved = beta * self.sensitivity
        return _noise(math.ceil(moved / evidence_unit(moved)) + 1, self.evidence)

    def interval(self, beta: float) -> tuple[float, float]:
        """Return the ends between which a row's share of a log weight is held."""
        assert self.ends is not None
        low, high = beta * self.ends[0], beta * self.ends[1]
        short = max(0.0, LEAST_GAPS * least_gap(self.particles) - (high - low))
        return low - short / 2, high + short / 2

    @property
    def scale_by_rows(self) -> float:
        """Scale of the noise on the log evidence, over what a row moves it by."""
        return (1 + 1e-12) / self.evidence

    def _noise_by_rows(self, beta: float) -> DiscreteLaplaceEvent:
        assert self.ends is not None
        moved = Ends(*self.interval(beta)).moved(self.ends[2]) + 3  # as `Kernel.soft_max` has it
        event = Move(l1=moved, l2_squared=moved**2, shifts=(moved,)).event("laplace", self.scale_by_rows * moved)
        assert isinstance(event, DiscreteLaplaceEvent)
        return event

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
    return DiscreteLaplaceEvent(scale=laplace_scale(sensitivity, epsilon), sensitivity=sensitivity)


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


def sensitivity_of(likelihoods: Likelihoods, neighbours: Neighbours, *, sizes: bool) -> dict[str, RowRange]:
    """Bound the range R of one row's log-likelihood over all free variables, and Δl where `sizes` are wanted.

    Reads nothing private.

    Returns
    -------
    dict of str to RowRange
        For each observed variable; those of one row add up.

    Raises
    ------
    UnsupportedModelError
        With every likelihood that a row can move by any amount, as far as is proved.
    """
    found = {table.name: _of_table(table, boxes, neighbours) for table, boxes in likelihoods.tables}
    problems = [
        _unbounded(name) for name, one in found.items() if math.isinf(max(one.value, one.sensitivity if sizes else 0.0))
    ]
    if problems:
        raise UnsupportedModelError(problems)
    return found


def _of_table(table: TableLikelihood, boxes: Sequence[Box], neighbours: Neighbours) -> RowRange:
    ends = [(box.low, box.high) for box in boxes]
    found, off = table.row_range(ends, neighbours), rounding(table, ends)
    if (problem := rounding_problem(found, off, table.name)) is not None:
        raise UnsupportedModelError([problem])
    return with_rounding(found, off)


def _unbounded(name: str) -> Problem:
    return Problem(
        where=name,
        what="one row can move its log-likelihood by any amount",
        remedy="Bound the parameter space by public numbers, with dp.truncate, away from the ends of their range.",
    )


__all__ = ["Costs", "Temperatures", "evidence_unit", "largest_beta", "path_of", "sensitivity_of", "weights_sensitivity"]
