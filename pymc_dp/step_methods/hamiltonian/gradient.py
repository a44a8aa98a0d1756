"""Sum over rows of clipped gradients at a place, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.compiled import without_python
from pymc_dp.step_methods.langevin.gradients import RowGradients

CHUNK = 8192
"""Rows that are differentiated at a time."""
MARGIN = 1 - 1e-9
"""Rows are clipped to this share of the clip norm: room for the rounding of norms and of products with them."""


class ClippedGradient:
    """Gradients of rows and of the prior, per unit of each value.

    Parameters
    ----------
    graphs : RowGradients
    units : (n_values,) array
        Unit of each value on the unconstrained scale: gradients are multiplied by it before they are clipped.
    clip_norm : float
        Greatest Euclidean norm of what a row adds.
    """

    def __init__(self, graphs: RowGradients, units: Array, clip_norm: float) -> None:
        self._graphs, self._units, self._bound = graphs, units, clip_norm * MARGIN
        self._starts = [block.start for block in graphs.blocks]
        self._rows: Sequence[Array] = ()
        self._functions: tuple[Any, Any] | None = None

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._functions is not None:
            return
        graphs = self._graphs
        each = [block.factors[:, None] * block.vectors for block in graphs.blocks]
        with without_python():
            rows = pytensor.function([graphs.position, *graphs.rows], each, on_unused_input="ignore")
        prior = pytensor.function([graphs.position], graphs.prior, on_unused_input="ignore")
        rows.trust_input = prior.trust_input = True
        self._functions = rows, prior

    def hold(self, rows: Sequence[Array]) -> None:
        """Hold clamped rows, one array per column. **Private**."""
        self._rows = rows

    @np.errstate(all="ignore")  # a warning could depend on a row
    def of_rows(self, values: Array) -> Array:
        """Sum of the clipped gradients of the rows held. **Private**.

        A row adds at most the clip norm; one whose gradient is no number adds nothing.
        """
        assert self._functions is not None
        total = np.zeros(len(self._units))
        for begin in range(0, len(self._rows[0]), CHUNK):
            part = [column[begin : begin + CHUNK] for column in self._rows]
            self._add(self._functions[0](values, *part), total)
        return total

    def of_prior(self, values: Array) -> Array:
        """Gradient of the log prior, Jacobians included. Public."""
        assert self._functions is not None
        with np.errstate(all="ignore"):
            return np.asarray(self._functions[1](values)) * self._units

    def _add(self, blocks: Sequence[Array], total: Array) -> None:
        """Add the clipped gradients of some rows, given in blocks of consecutive values."""
        each = [(start, self._per_unit(start, block)) for start, block in zip(self._starts, blocks, strict=True)]
        norms = np.sqrt(sum(np.einsum("ij,ij->i", block, block) for _, block in each))
        lost = ~np.isfinite(norms)
        weights = np.where(lost, 0.0, np.minimum(1.0, self._bound / norms))
        for start, block in each:
            block[lost] = 0.0
            total[start : start + block.shape[1]] += weights @ block

    def _per_unit(self, start: int, block: Array) -> Array:
        return np.asarray(block * self._units[start : start + block.shape[1]])


__all__ = ["ClippedGradient"]
