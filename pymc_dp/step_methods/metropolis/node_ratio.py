"""The log-likelihood ratio of two states where ε is per unit of a metric: rows count for public nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.metropolis.coefficients import Place
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.step_methods.row_functions import Nodes
from pymc_dp.step_methods.row_functions.node_bounds import Numbers


class NodeRatio:
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


__all__ = ["NodeRatio"]
