"""From which noised count on levels of a column of labels are released, and how much noise a budget buys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

from pymc_dp.accounting import ApproximateEvent, Budget
from pymc_dp.accounting.noise_kinds import laplace_scale
from pymc_dp.domain import Neighbours
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.labels import Label
from pymc_dp.kernel.noise import tail
from pymc_dp.release.sensitivity import sizes_move


@final
@dataclass(frozen=True, kw_only=True)
class LevelThreshold:
    """The noise of counts of levels, and the threshold that noised counts have to reach, for a budget.

    Attributes
    ----------
    scale : float
        Of the noise.
    least : int
        Noised count from which a level is released.
    budget : Budget

    Notes
    -----
    The kernel proves what these cost (`kernel.labels`), and refuses them where it is more than `event`. So nothing
    rests on the search for them.

    References
    ----------
    Korolova, Kenthapadi, Mishra, Ntoulas (2009), doi 10.1145/1526709.1526733; Bun, Nissim, Stemmer (2016), on
    stability-based histograms; the noise is that of Ghosh, Roughgarden, Sundararajan (2012).
    """

    scale: float
    least: int
    budget: Budget

    @classmethod
    def calibrated(cls, budget: Budget, neighbours: Neighbours) -> Self:
        """Return the least noise and the least threshold for a budget with δ > 0."""
        scale = laplace_scale(sizes_move(neighbours).l1, budget.epsilon)
        chance = decimal(budget.delta)
        low, beyond = 0, 1
        while tail(scale, beyond) > chance:
            low, beyond = beyond, 2 * beyond
        while beyond - low > 1:
            middle = (low + beyond) // 2
            low, beyond = (middle, beyond) if tail(scale, middle) > chance else (low, middle)
        return cls(scale=scale, least=1 + beyond, budget=budget)

    @property
    def event(self) -> ApproximateEvent:
        """What is charged."""
        # All that was asked for, although rounding leaves a little of it: a ledger then states what its user wrote.
        return ApproximateEvent(epsilon=self.budget.epsilon, delta=self.budget.delta)


def largest(seen: Mapping[Label, int], most: int) -> dict[Label, int]:
    """Return the levels with the `most` largest noised counts; of equal ones the first in the order of labels."""
    inside = sorted(sorted(seen), key=lambda label: seen[label], reverse=True)[:most]
    return {label: seen[label] for label in inside}


__all__ = ["LevelThreshold", "largest"]
