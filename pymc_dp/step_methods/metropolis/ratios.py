"""The log-likelihood ratio of two states by exact sums, and how far one row can move it.

Where rows are passed over, the kernel does that.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dp.accounting import Event
from pymc_dp.domain import Neighbours
from pymc_dp.kernel import Kernel
from pymc_dp.proofs.closed_form_ranges import StepRange
from pymc_dp.samplers.row_ratio import RowRatio, Rule
from pymc_dp.step_methods.metropolis.coefficients import Place, exact_product, exact_sums, row_table
from pymc_dp.transforms.likelihood import TableLikelihood

FAR = 1024.0
"""Log odds, beyond those of the prior, at which a chance is 0 or 1 as a float."""
ROUNDING = 2.0**-52
"""Of a bounded float: by how much the rounding of two of them adds to their difference."""


class FloatBits:
    """Bits of the old way: the log ratio is a float, of which its bit is drawn.

    Where rows are passed over the kernel draws bits (`samplers.row_ratio`); here they are of exact sums.
    """

    def begin(self, paid: Sequence[Event], pay: Callable[[Kernel], Any]) -> None:
        """Begin a chain."""

    pays: None = None

    @abstractmethod
    def moved(self, here: Place, there: Place) -> float:
        """Sum of g over the rows held. **Private**."""

    @abstractmethod
    def largest(self, here: Place, there: Place) -> float:
        """Largest |g| of any row that could be, a public number."""

    def draw(
        self,
        rule: Rule,
        here: Place,
        there: Place,
        beta: float,
        *,
        rng: np.random.Generator,
        noise: float = 0.0,
        rows: int = 0,
    ) -> bool:
        """Draw a bit by a rule; `noise` is in nats, and `rows` is how many there may be."""
        moved = self.moved(here, there)
        if rule == "accept":
            limit = rows * self.largest(here, there)
            moved = min(max(moved, -limit), limit)
        odds = there.prior - here.prior + beta * moved
        if rule == "barker":
            return bool(rng.random() < sigmoid(odds))
        if rule == "penalty":
            odds += noise * rng.standard_normal() - noise * noise / 2
        return bool(rng.random() < math.exp(min(0.0, odds)))


def sigmoid(odds: float) -> float:
    """Return 1 / (1 + e^-odds)."""
    if odds >= 0:
        return 1 / (1 + math.exp(-odds))
    small = math.exp(odds)
    return small / (1 + small)


class SumsRatio(FloatBits):
    """For likelihoods that are linear in exact sums: no pass over the rows, and the range in closed form.

    Sums and their products with the coefficients' differences are not rounded, so that nothing cancels; the result is,
    and what that adds is in the reach. Log ratios that no prior could balance are cut, where a chance is 0 or 1.

    Parameters
    ----------
    tables : sequence of TableLikelihood
    neighbours : {"replace", "add_remove"}
    """

    target = "the posterior, not tempered, where every possible row has positive density"
    proof = "by closed form"

    def __init__(self, tables: Sequence[TableLikelihood], neighbours: Neighbours) -> None:
        self._tables = tuple(tables)
        rows = [row_table(table) for table in tables]
        self._range, self._largest = StepRange(rows, neighbours), StepRange(rows, "add_remove")

    def compile(self) -> None:
        """Do nothing."""

    def load(self) -> None:
        """Add up the rows."""
        self._sums = [one for table in self._tables for one in exact_sums(table.statistic, table.read_integers())]

    def reach(self, here: Place, there: Place) -> float:
        """Evaluate the closed form."""
        return self._range(there.coefficients - here.coefficients) + ROUNDING * _far(here, there)

    def largest(self, here: Place, there: Place) -> float:
        """Evaluate the closed form for a row that comes or goes, which bounds |g|."""
        return self._largest(there.coefficients - here.coefficients)

    def moved(self, here: Place, there: Place) -> float:
        """Add up in time that does not grow with the rows."""
        far = Fraction(_far(here, there))
        exact = exact_product(there.coefficients - here.coefficients, self._sums)
        return float(min(max(exact, -far), far))


def _far(here: Place, there: Place) -> float:
    """Return a log-likelihood ratio that no prior could balance."""
    return FAR + abs(there.prior - here.prior)


Ratio = RowRatio | SumsRatio

__all__ = ["Ratio", "SumsRatio"]
