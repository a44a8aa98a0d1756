"""Sum over rows of clipped gradients at a point, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.compiled import compiled
from pymc_dp.step_methods.langevin.gradients import RowGradients
from pymc_dp.step_methods.row_functions.chunks import whole_chunk
from pymc_dp.step_methods.row_functions.clipping import clip_to

CHUNK = 8192
"""Most rows that are differentiated at a time."""


class ClippedGradient:
    """Gradients of rows and of the prior, per unit of each value.

    Parameters
    ----------
    graphs : RowGradients
        In units: gradients are multiplied by these before they are clipped.
    dummies : sequence of arrays
        A few rows that are made up, one array per column.
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

    def __init__(self, graphs: RowGradients, dummies: Sequence[Array], clip_norm: float, n_rows: int) -> None:
        self._graphs, self._dummies = graphs, tuple(dummies)
        self._clip = clip_to(clip_norm, size=graphs.size, n_rows=n_rows)
        self._rows: tuple[Array, ...] = ()
        self._functions: tuple[Any, Any] | None = None

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._functions is None:
            self._functions = compiled(self._graphs)
            self._sum(np.zeros(self._graphs.size), self._dummies)

    def hold(self, rows: Sequence[Array]) -> None:
        """Hold clamped rows, one array per column. **Private**."""
        self._rows = tuple(rows)

    def of_rows(self, values: Array) -> Array:
        """Sum of the clipped gradients of the rows held. **Private**.

        A row adds at most the clip norm; one whose gradient is no number adds nothing.
        """
        return self._sum(values, self._rows)

    def of_prior(self, values: Array) -> Array:
        """Gradient of the log prior, Jacobians included. Public."""
        self.compile()
        assert self._functions is not None
        return np.array(self._functions[1](values)[0])

    def _sum(self, values: Array, rows: tuple[Array, ...]) -> Array:
        from pymc_dp.step_methods.langevin.unnoised import clipped_sum

        self.compile()
        assert self._functions is not None
        return clipped_sum(
            self._functions[0],
            values,
            self._graphs.starts,
            self._clip,
            rows,
            np.arange(len(rows[0])),
            dtypes=[dummy.dtype for dummy in self._dummies],
            chunk=whole_chunk(sum(dummy[0].size for dummy in self._dummies), CHUNK),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions behind: another process makes its own."""
        return {**vars(self), "_functions": None}


__all__ = ["ClippedGradient"]
