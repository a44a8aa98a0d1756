"""Sum over rows of clipped gradients at a point, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.compiled import without_python
from pymc_dp.step_methods.langevin.gradients import RowGradients
from pymc_dp.step_methods.row_functions.chunks import compiled_rows, filled, whole_chunk
from pymc_dp.step_methods.row_functions.clipping import clip_to

CHUNK = 8192
"""Most rows that are differentiated at a time."""


class ClippedGradient:
    """Gradients of rows and of the prior, per unit of each value.

    Parameters
    ----------
    graphs : RowGradients
    units : (n_values,) array
        Unit of each value on the unconstrained scale: gradients are multiplied by it before they are clipped.
    clip_norm : float
        Greatest Euclidean norm of what a row adds.
    n_rows : int
        Public number of rows, or the bound on it.

    Notes
    -----
    **Guarantee.** The norm is enforced on the whole numbers that are summed, and the sum is exact (`Clip`): a row moves
    it by at most the clip norm, one that is replaced by twice that. Not covered: the last bits of the draw of the noise
    that is added, which is continuous and of float64.
    """

    def __init__(self, graphs: RowGradients, units: Array, clip_norm: float, n_rows: int) -> None:
        self._graphs, self._units = graphs, units
        self._clip = clip_to(clip_norm, size=len(units), n_rows=n_rows)
        self._starts = [block.start for block in graphs.blocks]
        self._rows: Sequence[Array] = ()
        self._functions: tuple[Any, Any] | None = None

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._functions is not None:
            return
        from pymc_dp.step_methods.row_functions.clipped_sums import add_clipped_rows

        graphs, size = self._graphs, len(self._units)
        add_clipped_rows(np.zeros((0, size)), self._clip, np.zeros(size))
        each = [block.factors[:, None] * block.vectors for block in graphs.blocks]
        with without_python():
            inputs = [graphs.position, *graphs.rows]
            rows = compiled_rows(inputs, each)
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
        chunk = whole_chunk(sum(column[:1].size for column in self._rows), CHUNK)
        for begin in range(0, len(self._rows[0]), chunk):
            part = [column[begin : begin + chunk] for column in self._rows]
            count = len(part[0])
            blocks = self._functions[0](values, *(_filled(column) for column in part))
            self._add([block[:count] for block in blocks], total)
        return total * self._clip.unit  # exact: a power of 2

    def of_prior(self, values: Array) -> Array:
        """Gradient of the log prior, Jacobians included. Public."""
        assert self._functions is not None
        with np.errstate(all="ignore"):
            return np.asarray(self._functions[1](values)) * self._units

    def _add(self, blocks: Sequence[Array], total: Array) -> None:
        """Add the clipped gradients of some rows, given in blocks of consecutive values."""
        from pymc_dp.step_methods.row_functions.clipped_sums import add_clipped_rows

        rows = np.zeros((len(blocks[0]), len(total)))
        for start, block in zip(self._starts, blocks, strict=True):
            rows[:, start : start + block.shape[1]] = block
        rows *= self._units
        add_clipped_rows(rows, self._clip, total)


def _filled(column: Array) -> Array:
    """Return a part of a column with its last row repeated, to a number of rows that are all evaluated alike."""
    return np.pad(column, [(0, filled(len(column)) - len(column)), *[(0, 0)] * (column.ndim - 1)], mode="edge")


__all__ = ["ClippedGradient"]
