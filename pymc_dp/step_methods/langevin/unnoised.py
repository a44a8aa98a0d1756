"""What rows' gradients at one position come to, by compiled loops and without any noise. **Private**."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.kernels import Table, add_clipped, room, squared
from pymc_dp.step_methods.row_functions.cached_loop import closed_over
from pymc_dp.step_methods.row_functions.limits import Clip


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


def clipped_sum(
    gradient: Any,
    position: Array,
    starts: Array,
    clip: Clip,
    rows: tuple[Array, ...],
    places: Array,
    *,
    dtypes: Sequence[Any],
    chunk: int,
) -> Array:
    """Return the sum of the clipped gradients of the rows at `places`, so many differentiated at a time."""
    table = Table(tuple(rows), room(rows, dtypes, chunk), np.empty(chunk), places, keys=np.empty(0, dtype=np.int64))
    total = np.zeros(position.size)
    loop = closed_over(add_clipped, gradient)
    loop(position, starts, clip, table, len(places), total)
    return total * clip.unit  # exact: a power of 2


__all__ = ["clipped_sum", "row_norms"]
