"""Norms of rows' gradients at one position, by compiled loops and without any noise. **Private**."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.kernels import room, squared
from pymc_dp.step_methods.row_functions.cached_loop import closed_over


@numba.njit(error_model="numpy", inline="always")
def _fill(gradient: Any, position: Any, rows: Any, buffers: Any, norms: Any) -> None:
    place, square = np.zeros(1, dtype=np.int64), np.zeros(1)
    for i in range(norms.size):
        place[0] = i
        squared(gradient, position, rows, place, 0, 1, buffers, square)
        norms[i] = np.sqrt(square[0])


def row_norms(gradient: Any, position: Array, rows: tuple[Array, ...], dtypes: Sequence[Any]) -> Array:
    """Return the Euclidean norm of every row's gradient: (n_rows,), NaN or infinite where no gradient is.

    One row at a time, widened to `dtypes`: in a batch a row's gradient may be rounded by where it stands, and a row
    that is added would then move others across a threshold.
    """
    norms = np.empty(len(rows[0]))
    closed_over(_fill, gradient)(position, tuple(rows), room(rows, dtypes, 1), norms)
    return norms


__all__ = ["row_norms"]
