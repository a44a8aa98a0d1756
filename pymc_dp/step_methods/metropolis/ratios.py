"""The log-likelihood ratio of two states, and how far one row can move it: by exact sums, or by public nodes.

At the nodes of a grid rows count where ε is per unit of a metric. Where rows are passed over the kernel does that.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Kernel, RowMap
from pymc_dp.rows.gate import read
from pymc_dp.samplers.row_ratio import RowRatio, Rule
from pymc_dp.samplers.rows import ModelRows
from pymc_dp.samplers.sums import SumsRatio
from pymc_dp.step_methods.metropolis.coefficients import Place
from pymc_dp.step_methods.row_functions import Nodes
from pymc_dp.step_methods.row_functions.node_bounds import Numbers

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


class NodeRatio(FloatBits):
    """For densities that factorise over rows, under a metric: g is known at every node, and read from there.

    Parameters
    ----------
    rows : ModelRows
    nodes : Nodes

    Notes
    -----
    **Guarantee.** Between two tables `moved` differs by at most ``reach Σ ρ(x_i, y_i)``, whatever the compiled density
    returns: it is a sum over nodes of whole numbers times shares of rows, and `reach` is the steepest of these numbers.
    Both are the same for a step and for the way back, but for the sign of `moved`.
    """

    target = "the posterior, not tempered, of rows whose log-likelihood is linear between nodes"

    def __init__(self, rows: ModelRows, nodes: Nodes) -> None:
        self._rows, self._nodes = rows, nodes
        self.proof = f"per unit of ρ = {nodes.metric}, the steepest of all numbers at {nodes}, at every step"
        self._last: tuple[Array, Array, tuple[Numbers, float] | None] | None = None
        self._weights = np.zeros(nodes.count, dtype=np.int64)
        self._count = 0
        self._density: RowMap | None = None

    def compile(self) -> None:
        """Compile the density of nodes."""
        self._density = self._density or self._rows.row_map(pt.stack([self._rows.logp]), [self._rows.at])

    def load(self) -> None:
        """Read the rows, once, and count their shares."""
        rows = [read(column) for column in self._rows.columns.values()]
        self._weights, self._count = self._nodes.weights(rows), len(rows[0])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the compiled density behind: another process makes its own."""
        return {**vars(self), "_density": None}

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
        after, before = (self._at(values) for values in (there, here))
        with np.errstate(all="ignore"):
            ratios = after - before
        if not np.isfinite(ratios).all():
            return None
        middle = float(ratios.min() / 2 + ratios.max() / 2)
        return Numbers.of(self._nodes, np.stack([np.zeros_like(ratios), ratios - middle])), middle

    def _at(self, values: Array) -> Array:
        """Return the log-likelihood of every node at a state."""
        self.compile()
        assert self._density is not None
        named = zip(self._rows.columns, self._nodes.columns, strict=True)
        nodes = {name: column.reshape(-1, *self._rows.inputs[name].type.shape) for name, column in named}
        return np.asarray(self._density.on(nodes, [values], 1)[:, 0])


Ratio = RowRatio | SumsRatio | NodeRatio

__all__ = ["NodeRatio", "Ratio", "SumsRatio"]
