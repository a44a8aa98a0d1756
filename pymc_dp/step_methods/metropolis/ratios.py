"""The log-likelihood ratio of two places, and how far one row can move it: by exact sums, by a clamp, or by a proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.sensitivity.steps import StepRange
from pymc_dp.sensitivity.unconstrained import Span, StepProof
from pymc_dp.step_methods.metropolis.coefficients import Place, held_sums, row_table
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.transforms.likelihood import TableLikelihood


class Ratio(Protocol):
    """The log-likelihood ratio g of two places, summed over rows.

    Attributes
    ----------
    target : str
        What the chain samples.
    proof : str
        What proves the reach.
    """

    target: str
    proof: str

    def compile(self) -> None:
        """Compile what sampling needs: before the budget is charged."""

    def load(self) -> None:
        """Read the rows, once: the budget was charged."""

    def reach(self, here: Place, there: Place) -> float:
        """Range of g, a public number: sup g - inf g over all rows under ``replace``, sup |g| under ``add_remove``."""

    def largest(self, here: Place, there: Place) -> float:
        """Largest |g| of any row that could be, a public number."""

    def moved(self, here: Place, there: Place) -> float:
        """Sum of g over the rows held. **Private**."""


class SumsRatio:
    """For likelihoods that are linear in exact sums: no pass over the rows, and the range in closed form."""

    target = "the posterior, not tempered, where every row that could be is possible"
    proof = "by closed form"

    def __init__(self, tables: Sequence[TableLikelihood], neighbours: Neighbours) -> None:
        self._tables = tuple(tables)
        rows = [row_table(table) for table in tables]
        self._range, self._largest = StepRange(rows, neighbours), StepRange(rows, "add_remove")

    def compile(self) -> None:
        """Do nothing."""

    def load(self) -> None:
        """Add up the rows."""
        self._sums = np.concatenate([np.zeros(0), *(held_sums(table, table.read()) for table in self._tables)])

    def reach(self, here: Place, there: Place) -> float:
        """Evaluate the closed form."""
        return self._range(there.coefficients - here.coefficients)

    def largest(self, here: Place, there: Place) -> float:
        """Evaluate the closed form for a row that comes or goes, which bounds |g|."""
        return self._largest(there.coefficients - here.coefficients)

    def moved(self, here: Place, there: Place) -> float:
        """Add up in time that does not grow with the rows."""
        return float((there.coefficients - here.coefficients) @ self._sums)


class ClampedRatio:
    """For any density: each row's g is clamped to ± clamp ‖θ' - θ‖, which changes the target where that takes hold.

    Distances are those of values over their `units`.
    """

    def __init__(self, rows: RowRatios, neighbours: Neighbours, clamp: float, units: Array | float = 1.0) -> None:
        self.rows, self._clamp, self._times = rows, clamp, 2 if neighbours == "replace" else 1
        self._units = units
        self.target = f"not the posterior wherever a row's log-likelihood ratio exceeds {clamp:g} ‖θ' - θ‖ and is cut"
        self.proof = f"by clamping g of each row to ± {clamp:g} ‖θ' - θ‖"

    def compile(self) -> None:
        """Compile the density of rows."""
        self.rows.compile()

    def load(self) -> None:
        """Hold the rows."""
        self.rows.load()

    def reach(self, here: Place, there: Place) -> float:
        """Twice the clamp, or once."""
        return self._times * self._limit(here, there)

    def largest(self, here: Place, there: Place) -> float:
        """Return the clamp."""
        return self._limit(here, there)

    def moved(self, here: Place, there: Place) -> float:
        """Pass over the rows."""
        limit = self._limit(here, there)
        return self.rows.total(there.values, here.values, (-limit, limit))

    def _limit(self, here: Place, there: Place) -> float:
        return self._clamp * float(np.linalg.norm((there.values - here.values) / self._units))


class ProvedRatio:
    """For densities that are followed by interval arithmetic: the target is the posterior.

    Each row's g is clamped to what is proved of it, which takes hold of rounding errors only: whatever the compiled
    density returns, no row moves the sum by more.
    """

    def __init__(self, rows: RowRatios, proof: StepProof) -> None:
        self.rows, self._proof = rows, proof
        self._last: tuple[Array, Array, Span] | None = None
        steepness = proof.steepness()
        unchecked = f"; PyMC's parameter checks of {', '.join(proof.unchecked)} are left out" if proof.unchecked else ""
        start = "" if steepness is None else f"; at the start G = {steepness:.4g} per unit of distance"
        self.target = (
            "the posterior, not tempered, wherever a range is proved; what is proved of a row's ratio also limits it, "
            f"which takes hold of rounding errors only{unchecked}"
        )
        self.proof = f"proved from the graph at every step, by interval arithmetic over all rows that could be{start}"

    def compile(self) -> None:
        """Compile the density of rows."""
        self.rows.compile()

    def load(self) -> None:
        """Hold the rows."""
        self.rows.load()

    def reach(self, here: Place, there: Place) -> float:
        """Prove it for these two places."""
        return self._span(here, there).reach

    def largest(self, here: Place, there: Place) -> float:
        """Return the larger end of what is proved of g."""
        span = self._span(here, there)
        return max(abs(span.low), abs(span.high))

    def moved(self, here: Place, there: Place) -> float:
        """Pass over the rows."""
        span = self._span(here, there)
        return self.rows.total(there.values, here.values, (span.low, span.high))

    def _span(self, here: Place, there: Place) -> Span:
        """Remember the last one: a step asks for its reach, and then for its ratio."""
        if self._last is None or self._last[0] is not here.values or self._last[1] is not there.values:
            self._last = here.values, there.values, self._proof.between(here.values, there.values)
        return self._last[2]


__all__ = ["ClampedRatio", "ProvedRatio", "Ratio", "SumsRatio"]
