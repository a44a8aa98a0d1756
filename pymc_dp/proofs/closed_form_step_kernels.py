"""Compiled bounds of one step; imported at first use."""

from __future__ import annotations

import math

import numba

SLACK = 1 + 1e-12
TINY = 1e-14
"""Room for the rounding of the few operations below, relative to the result and to the terms that cancel in it."""


@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)
def step_range(change, counts, widths, cells, groups, domains, alone, limit, work):  # type: ignore[no-untyped-def]
    """R of one step, see `StepRange`; `work` is room for the least and the largest g of every group."""
    total, least, most, size = 0.0, 0.0, 0.0, 0.0
    place, cell = 0, 0
    for table in range(widths.size):
        n_groups = 0
        for _ in range(cells[table]):
            group = groups[cell]
            while n_groups <= group:
                work[0, n_groups] = math.inf
                work[1, n_groups] = -math.inf
                n_groups += 1
            if counts[table]:
                for level in range(widths[table]):
                    value = change[place + level]
                    work[0, group] = min(work[0, group], value)
                    work[1, group] = max(work[1, group], value)
                    size = max(size, abs(value))
                    if not math.isfinite(value):
                        return math.inf
            else:
                constant, slope, bend = change[place], change[place + 1], change[place + 2]
                low, high, error = domains[table]
                here = abs(constant) + max(abs(low), abs(high)) * (abs(slope) + max(abs(low), abs(high)) * abs(bend))
                if not math.isfinite(here):
                    return math.inf
                size = max(size, here)
                below = min(low * (slope + low * bend), high * (slope + high * bend))
                above = max(low * (slope + low * bend), high * (slope + high * bend))
                if bend != 0.0:
                    vertex = -0.5 * slope / bend
                    if low < vertex < high:
                        below = min(below, 0.5 * slope * vertex)
                        above = max(above, 0.5 * slope * vertex)
                work[0, group] = min(work[0, group], constant + below - abs(bend) * error)
                work[1, group] = max(work[1, group], constant + above + abs(bend) * error)
            place += widths[table]
            cell += 1
        widest = 0.0
        for group in range(n_groups):
            if work[0, group] <= work[1, group]:  # a group without cells has neither
                widest = max(widest, work[1, group] - work[0, group])
                if alone:  # all cells are in one group
                    least += work[0, group]
                    most += work[1, group]
        total += widest
    room = TINY * size * widths.size
    if alone:
        return min(max(max(most, -least), 0.0) * SLACK + room, limit)
    return min(total * SLACK + room, 2.0 * limit)
