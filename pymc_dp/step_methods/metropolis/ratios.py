"""The log-likelihood ratio of two states, and how far one row can move it: by exact sums, by a clamp, or by a proof.

The log-likelihood ratio of two states where ε is per unit of a metric: rows count for public nodes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, override

import numpy as np

from pymc_dp.accounting import Event
from pymc_dp.domain import Neighbours
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Kernel
from pymc_dp.proofs.closed_form_ranges import StepRange
from pymc_dp.proofs.unconstrained import StepProof
from pymc_dp.samplers.row_ratio import RowRatio, Rule
from pymc_dp.step_methods.metropolis.coefficients import Place, exact_product, exact_sums, row_table
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.step_methods.row_functions import Nodes, RatioLimit
from pymc_dp.step_methods.row_functions.node_bounds import Numbers
from pymc_dp.transforms.likelihood import TableLikelihood

FAR = 1024.0
"""Log odds, beyond those of the prior, at which a chance is 0 or 1 as a float."""
ROUNDING = 2.0**-52
"""Of a bounded float: by how much the rounding of two of them adds to their difference."""


class FloatBits:
    """Bits of the old way: the log ratio is a float, of which its bit is drawn.

    Where rows are passed over the kernel draws bits (`samplers.row_ratio`); here they are of exact sums, and of shares
    of public nodes.
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


class Held(NamedTuple):
    """What a pass over the rows enforces at one step.

    Attributes
    ----------
    limit : RatioLimit
        The interval of each row's g.
    centred : bool
        Whether it is one about the middle of g for a row's public values.
    largest : float
        Largest |g| of any row that could be.
    """

    limit: RatioLimit
    centred: bool
    largest: float


class HeldRatio:
    """For rows that are passed over: each row's g is held in an interval, whose length is what is charged.

    Parameters
    ----------
    rows : RowRatios
    neighbours : {"replace", "add_remove"}

    Notes
    -----
    **Guarantee.** Between neighbours `moved` differs by at most `reach`, whatever the compiled density returns: both
    are of the same limit.
    """

    def __init__(self, rows: RowRatios, neighbours: Neighbours) -> None:
        self.rows, self._neighbours = rows, neighbours
        self._last: tuple[Array, Array, Held | None] | None = None

    def compile(self) -> None:
        """Compile the density of rows."""
        self.rows.compile()

    def load(self) -> None:
        """Hold the rows."""
        self.rows.load()

    def reach(self, here: Place, there: Place) -> float:
        """Return how far one row moves what is held; infinite where there is no limit."""
        held = self._held(here, there)
        return math.inf if held is None else held.limit.reach(self._neighbours)

    def largest(self, here: Place, there: Place) -> float:
        """Return the largest |g| of any row that could be; infinite where there is no limit."""
        held = self._held(here, there)
        return math.inf if held is None else held.largest

    def moved(self, here: Place, there: Place) -> float:
        """Pass over the rows."""
        held = self._held(here, there)
        if held is None:
            raise PrivacyError("A step without a limit was not refused; this is an error of pymc_dp.")
        return self.rows.total(there.values, here.values, held.limit, centred=held.centred)

    def _held(self, here: Place, there: Place) -> Held | None:
        """Remember the last one: a step asks for its reach, and then for its ratio."""
        if self._last is None or self._last[0] is not here.values or self._last[1] is not there.values:
            self._last = here.values, there.values, self._holds(here.values, there.values)
        return self._last[2]

    @abstractmethod
    def _holds(self, here: Array, there: Array) -> Held | None:
        """Choose the limit of one step from public numbers, the same both ways."""


class ClampedRatio(HeldRatio):
    """For any density: each row's g is clamped to ± clamp ‖θ' - θ‖, which changes the target where that takes hold.

    Distances are those of values over their `units`.
    """

    def __init__(self, rows: RowRatios, neighbours: Neighbours, clamp: float, units: Array | float = 1.0) -> None:
        super().__init__(rows, neighbours)
        self._clamp, self._units = clamp, units
        self.target = f"not the posterior wherever a row's log-likelihood ratio exceeds {clamp:g} ‖θ' - θ‖ and is cut"
        self.proof = f"by clamping g of each row to ± {clamp:g} ‖θ' - θ‖"

    @override
    def _holds(self, here: Array, there: Array) -> Held | None:
        size = self._clamp * float(np.linalg.norm((there - here) / self._units))
        if not size < math.inf:
            return None
        limit = self.rows.limit(-size, size)
        return Held(limit, centred=False, largest=limit.largest)


class ProvedRatio(HeldRatio):
    """For densities that are followed by interval arithmetic: the target is the posterior.

    Each row's g is held within what is proved of it, which takes hold of rounding errors only: whatever the compiled
    density returns, no row moves the sum by more.
    """

    def __init__(self, rows: RowRatios, neighbours: Neighbours, proof: StepProof) -> None:
        super().__init__(rows, neighbours)
        self._proof = proof
        steepness = proof.steepness()
        unchecked = f"; PyMC's parameter checks of {', '.join(proof.unchecked)} are left out" if proof.unchecked else ""
        start = "" if steepness is None else f"; at the start G = {steepness:.4g} per unit of distance"
        self.target = (
            "the posterior, not tempered, wherever a range is proved; the proved range of a row's ratio also limits "
            f"it, which affects rounding errors only{unchecked}"
        )
        self.proof = f"proved from the graph at every step, by interval arithmetic over all possible rows{start}"

    @override
    def _holds(self, here: Array, there: Array) -> Held | None:
        span = self._proof.between(here, there)
        if not math.isfinite(span.reach):
            return None
        limit, largest = self.rows.limit(*span.held), self.rows.limit(span.low, span.high).largest
        return Held(limit, centred=span.centred, largest=largest)


class NodeRatio(FloatBits):
    """For densities that factorise over rows, under a metric: g is known at every node, and read from there.

    Parameters
    ----------
    rows : RowRatios
        Which holds the nodes in place of rows.
    nodes : Nodes

    Notes
    -----
    **Guarantee.** Between two tables `moved` differs by at most ``reach Σ ρ(x_i, y_i)``, whatever the compiled density
    returns: it is a sum over nodes of whole numbers times shares of rows, and `reach` is the steepest of these numbers.
    Both are the same for a step and for the way back, but for the sign of `moved`.
    """

    target = "the posterior, not tempered, of rows whose log-likelihood is linear between nodes"

    def __init__(self, rows: RowRatios, nodes: Nodes) -> None:
        self._rows, self._nodes = rows, nodes
        self.proof = f"per unit of ρ = {nodes.metric}, the steepest of all numbers at {nodes}, at every step"
        self._last: tuple[Array, Array, tuple[Numbers, float] | None] | None = None
        self._weights = np.zeros(nodes.count, dtype=np.int64)
        self._count = 0
        rows.hold(nodes.columns)

    def compile(self) -> None:
        """Compile the density of nodes."""
        self._rows.compile()

    def load(self) -> None:
        """Read the rows, once, and count their shares."""
        self.hold(self._rows.read())

    def hold(self, rows: Sequence[Array]) -> None:
        """Count the shares of clamped rows, one array per column."""
        self._weights, self._count = self._nodes.weights(rows), len(rows[0])

    def reach(self, here: Place, there: Place) -> float:
        """Return how far the sum moves per unit of ρ; infinite where some node is impossible at either state."""
        found = self._numbers(here.values, there.values)
        return math.inf if found is None else found[0].steepest

    def largest(self, here: Place, there: Place) -> float:
        """Return the largest |g| of any node."""
        found = self._numbers(here.values, there.values)
        return math.inf if found is None else float(np.abs(found[0].whole).max()) * found[0].unit + abs(found[1])

    def moved(self, here: Place, there: Place) -> float:
        """Add up shares of rows. **Private**."""
        found = self._numbers(here.values, there.values)
        if found is None:
            raise PrivacyError("A step to an impossible place was not refused; this is an error of pymc_dp.")
        numbers, middle = found
        return int(numbers.whole[1] @ self._weights) * (numbers.unit / self._nodes.shares) + middle * self._count

    def _numbers(self, here: Array, there: Array) -> tuple[Numbers, float] | None:
        """Return g of the nodes about its middle, as numbers at two points, of which the first are 0; and the middle.

        The last ones are remembered: a step asks for its reach, and then for its ratio.
        """
        if self._last is None or self._last[0] is not here or self._last[1] is not there:
            self._last = here, there, self._made(here, there)
        return self._last[2]

    def _made(self, here: Array, there: Array) -> tuple[Numbers, float] | None:
        ratios = self._rows.each(there, here)
        if not np.isfinite(ratios).all():
            return None
        middle = float(ratios.min() / 2 + ratios.max() / 2)
        return Numbers.of(self._nodes, np.stack([np.zeros_like(ratios), ratios - middle])), middle


Ratio = RowRatio | SumsRatio | NodeRatio

__all__ = ["ClampedRatio", "HeldRatio", "NodeRatio", "ProvedRatio", "Ratio", "SumsRatio"]
