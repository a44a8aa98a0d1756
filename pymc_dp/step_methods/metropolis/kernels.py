"""Compiled sum of clamped ratios; imported at first use."""

from __future__ import annotations

import numba


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def clamped_sum(after, before, low, high):  # type: ignore[no-untyped-def]
    """Sum of clip(after - before, low, high) over rows; what is no number counts as 0 before it is clipped."""
    total = 0.0
    for i in range(after.size):
        ratio = after[i] - before[i]
        if ratio != ratio:
            ratio = 0.0
        total += min(max(ratio, low), high)
    return total
