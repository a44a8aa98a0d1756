"""Compiled sum of clamped ratios; imported at first use."""

from __future__ import annotations

import numba


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def clamped_sum(after, before, limit):  # type: ignore[no-untyped-def]
    """Sum of clip(after - before, -limit, limit) over rows; what is no number adds nothing."""
    total = 0.0
    for i in range(after.size):
        ratio = after[i] - before[i]
        if ratio > limit:
            ratio = limit
        elif ratio < -limit:
            ratio = -limit
        elif ratio != ratio:
            ratio = 0.0
        total += ratio
    return total
