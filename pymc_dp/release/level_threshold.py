"""Which levels of a column of labels are released: those whose noised count reaches a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from pymc_dp.accounting import ApproximateEvent, Budget, Event
from pymc_dp.domain import Neighbours
from pymc_dp.kernel.accounting.budget import decimal
from pymc_dp.kernel.noise import LAPLACE, tail
from pymc_dp.release.sensitivity import sizes_move
from pymc_dp.rows.levels import Label


@final
@dataclass(frozen=True, kw_only=True)
class LevelThreshold:
    """Counts of the levels that occur, with discrete Laplace noise, as far as they reach a threshold then.

    Attributes
    ----------
    scale : float
        Of the noise.
    least : int
        Noised count from which a level is released.
    budget : Budget

    Notes
    -----
    **Guarantee.** (ε, δ)-DP for one row, ε and δ those of `budget`; class exact, arithmetic hardened (discrete
    noise by OpenDP, a threshold by `tail`). What is seen is a list of levels and their noised counts. Levels are
    independent, so that only those matter whose numbers of rows differ between two tables: one under ``"add_remove"``,
    where the scale is at least 1 / ε, and at most two under ``"replace"``, where it is at least 2 / ε. Write e for
    1 / scale, and d for the probability that a level of one row is released, at most δ.

    - A level of a rows in one table and a + 1 in the other, a >= 1: its noised count, of which what is seen is a
      function, has a loss of e either way.
    - A level of one row in one table and none in the other: it is released with probability d from the one, and never
      from the other. So it is (0, d)-DP.

    Under ``"add_remove"`` this is all. Under ``"replace"`` one level loses the row, and another one gains it. Two of
    the first kind have a loss of 2 e <= ε together; one of each kind is (e, d)-DP, by basic composition. Two of the
    second kind: one table shows the first level alone with probability d, the other the second level alone, and both
    show neither with probability 1 - d, so that they differ by d. Hence δ is spent once here too.

    That time and memory grow with the number of levels that occur is not covered.

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
        scale = LAPLACE.calibrate(sizes_move(neighbours).l1, budget.epsilon)
        chance = decimal(budget.delta)
        low, beyond = 0, 1
        while tail(scale, beyond) > chance:
            low, beyond = beyond, 2 * beyond
        while beyond - low > 1:
            middle = (low + beyond) // 2
            low, beyond = (middle, beyond) if tail(scale, middle) > chance else (low, middle)
        return cls(scale=scale, least=1 + beyond, budget=budget)

    @property
    def event(self) -> Event:
        """What it costs."""
        return ApproximateEvent(epsilon=self.budget.epsilon, delta=self.budget.delta)

    def released(self, counts: Mapping[Label, int], most: int) -> dict[Label, int]:
        """Return the noised counts of the levels that reach the threshold, the `most` largest. A private release.

        Parameters
        ----------
        counts : mapping of label to int
            Number of rows, >= 1, of each level that occurs.
        most : int
            Of several with the same noised count, the first in the order of their labels.
        """
        if not counts:
            return {}
        exact = np.fromiter(counts.values(), np.int64, len(counts))
        noised = LAPLACE.add(exact, self.scale).tolist()
        seen = {label: count for label, count in zip(counts, noised, strict=True) if count >= self.least}
        return largest(seen, most)


def largest(seen: Mapping[Label, int], most: int) -> dict[Label, int]:
    """Return the levels with the `most` largest counts."""
    inside = sorted(sorted(seen), key=lambda label: seen[label], reverse=True)[:most]
    return {label: seen[label] for label in inside}


__all__ = ["LevelThreshold", "largest"]
