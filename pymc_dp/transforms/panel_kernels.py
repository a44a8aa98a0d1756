"""Values and slopes of tables, compiled; imported at first use.

A parameter is one of a cell. Its chart turns it into a share s of at most one half, of which there are two sheets: for
a probability p the first is ``s = p``, the second ``s = 1 - p``. So both ends have all the digits that floats have near
zero, and rows of `panels` are functions of ``sqrt(s)``, two to a cell. Below its least share a row goes on as a
straight line in log s.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

import numpy as np

from pymc_dp.transforms.cell_tables import Chart
from pymc_dp.transforms.jit import inlined_kernel, kernel
from pymc_dp.transforms.panels import WIDTH

PROBABILITY, LOG_ODDS, REAL = Chart.PROBABILITY, Chart.LOG_ODDS, Chart.REAL
LEAST = 1e-300
"""Shares below have no slope."""
FLAT = 1e-6
"""Slopes in log s below this one are none, where a row goes on."""
FINEST = 1e-16
"""Of a difference from 1."""


@inlined_kernel
def at_panel(panel: int, u: float, numbers: Any) -> tuple[float, float, float]:
    """Return the value of a panel, its slope in log(u²), and the u of both: the least one where u is below."""
    first = WIDTH * panel
    inverse = numbers[first + 1]
    t = max((u - numbers[first]) * inverse, -1.0)
    value, slope = numbers[first + WIDTH - 1], 0.0
    for k in range(first + WIDTH - 2, first + 1, -1):
        slope = slope * t + value
        value = value * t + numbers[k]
    at = numbers[first] + t / inverse
    return value, 0.5 * slope * inverse * at, at


@inlined_kernel
def look_up(row: int, u: float, starts: Any, ends: Any, numbers: Any) -> tuple[float, float, float]:
    """Return what `at_panel` does, for the panel of this row that holds u."""
    low, high = int(starts[row]), int(starts[row + 1]) - 1
    while low < high:
        middle = (low + high) // 2
        if ends[middle] < u:
            low = middle + 1
        else:
            high = middle
    return at_panel(low, u, numbers)


@kernel
def share(parameter: float, chart: Any) -> tuple[bool, float, float]:
    """Return whether it is the second sheet, the share s, and the slope of log s."""
    kind, centre, width = chart[0], chart[1], chart[2]
    if kind == LOG_ODDS:
        s = 1 / (1 + exp(abs(parameter)))
        return parameter > 0, s, (s - 1 if parameter > 0 else 1 - s)
    if kind == REAL:
        distance = (parameter - centre) / width
        s = 0.5 / (1 + abs(distance))
        return distance > 0, s, (-2 * s if distance > 0 else 2 * s) / width
    if kind == PROBABILITY:
        second = parameter > 0.5
        s = max(1 - parameter, FINEST) if second else max(parameter, LEAST)
        return second, s, -1 / s if second else (1 / s if s > LEAST else 0.0)
    second = parameter > centre
    s = centre / (parameter + centre) if second else parameter / (parameter + centre)
    if s < LEAST:
        return second, LEAST, 0.0
    return second, s, (s - 1 if second else 1 - s) / parameter


@kernel
def table_logp(
    parameter: Any, value: Any, release: Any, chart: Any, starts: Any, ends: Any, numbers: Any
) -> tuple[Any, Any]:
    """Return the log density of every cell, and its slope in the parameter.

    Parameters
    ----------
    parameter : (n_cells,) array
    value, release : (n_cells, n_columns) array
        Of another value than the tabulated release, and of another number of cells, the log density is NaN.
    chart : (5,) array
        Kind, centre, width, and the least and the largest parameter that the likelihood has.
    starts, ends, numbers : arrays
        `panels.Panels`, two rows to a cell.
    """
    logp, slope = np.empty(len(parameter)), np.zeros(len(parameter))
    alike = len(parameter) == len(release) and value.shape == release.shape
    for i in range(len(parameter)):
        at, held = parameter[i], alike
        for column in range(release.shape[1]):
            held = held and value[i, column] == release[i, column]
        if not held:
            logp[i] = np.nan
        elif chart[3] <= at <= chart[4]:
            second, s, rise = share(at, chart)
            u = sqrt(s)
            found, steep, least = look_up(2 * i + int(second), u, starts, ends, numbers)
            if u < 0.99 * least:
                steep = steep if abs(steep) > FLAT else 0.0
                log_s = -abs(at) if chart[0] == LOG_ODDS else log(s)  # where s is small
                found += steep * (log_s - 2 * log(least))
            logp[i], slope[i] = found, steep * rise
        else:
            logp[i] = -np.inf
    return logp, slope


__all__ = ["at_panel", "look_up", "share", "table_logp"]
