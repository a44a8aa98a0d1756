"""Log density of noised counts of all levels, cell by cell: compiled, see `noise_aware.counts_logp`.

Values and slopes of tables, compiled; imported at first use.

A parameter is one of a cell. Its chart turns it into a share s of at most one half, of which there are two sheets: for
a probability p the first is ``s = p``, the second ``s = 1 - p``. So both ends have all the digits that floats have near
zero, and rows of `panels` are functions of ``sqrt(s)``, two to a cell. Below its least share a row goes on as a
straight line in log s.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

import numpy as np

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.transforms.cell_tables import WIDTH, Chart
from pymc_dp.transforms.count_kernels import noised_count
from pymc_dp.transforms.jit import exponential, inlined, inlined_kernel, kernel, sums
from pymc_dp.transforms.noised_count import LEAST, MOST

PROBABILITY, LOG_ODDS, REAL = Chart.PROBABILITY, Chart.LOG_ODDS, Chart.REAL
LEAST_AT_PANEL = 1e-300
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
        s = max(1 - parameter, FINEST) if second else max(parameter, LEAST_AT_PANEL)
        return second, s, -1 / s if second else (1 / s if s > LEAST_AT_PANEL else 0.0)
    second = parameter > centre
    s = centre / (parameter + centre) if second else parameter / (parameter + centre)
    if s < LEAST_AT_PANEL:
        return second, LEAST_AT_PANEL, 0.0
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


@kernel
def levels_of_public_size(p, value, bound, at_mean, noise):  # type: ignore[no-untyped-def]
    """Return the log density of every cell, and its slopes in the probabilities.

    Parameters
    ----------
    p, value : (n_cells, n_levels) arrays
        Probabilities and released counts.
    bound, at_mean : (n_cells,) arrays
        Public sizes, and the log probability of a Poisson count with such a mean at it.
    noise : (3,) array
        Kind, scale and log probability at zero.
    """
    found, slopes = np.empty(len(p)), np.zeros(p.shape)
    parts = np.empty((p.shape[1], 4))
    least, most = exp(LEAST), exp(MOST)
    for c in range(len(p)):
        total, spread, away = 0.0, SMALL, bound[c]
        for k in range(p.shape[1]):
            eta = log(min(max(bound[c] * p[c, k], least), most))
            single = noised_count(value[c, k], eta, -1.0, noise[0], noise[1], noise[2])
            for i in range(4):
                parts[k, i] = single[i]
            total, away, spread = total + single[0], away - single[1], spread + single[2]
        found[c] = total - 0.5 * (LOG_2PI + log(spread) + away * away / spread) - at_mean[c]
        by_spread = 0.5 * (away * away / spread - 1) / spread
        for k in range(p.shape[1]):
            rate = bound[c] * p[c, k]
            if least < rate < most:
                by_eta = parts[k, 1] - rate + away / spread * parts[k, 2] + by_spread * parts[k, 3]
                slopes[c, k] = by_eta / p[c, k]
    return found, slopes


@kernel
def levels_of_private_size(p, value, cells, release, roots, log_weights, starts, ends, numbers):  # type: ignore[no-untyped-def]
    """Return the log density of some cells, and its slopes in the probabilities.

    Parameters
    ----------
    p, value : (m, n_levels) arrays
        Probabilities and released counts.
    cells : (m,) array
        Their numbers.
    release : (n_cells, n_levels) array
        Counts that tables are of: the log density of others is NaN.
    roots, log_weights : (n_cells, n_nodes) arrays
        Roots of the rates of all counts of a cell, over the largest rate and rising; logarithms of their weights.
    starts, ends, numbers : arrays
        Tables of all counts of every cell, in the root of the rate over that of the largest.
    """
    found, slopes = np.empty(len(p)), np.empty(p.shape)
    n_nodes, n_levels = roots.shape[1], p.shape[1]
    terms, own = np.empty(n_nodes), np.empty((n_levels, n_nodes))
    for i in range(len(p)):
        c, same = int(cells[i]), True
        level, held, first = log_weights[c], release[c], c * n_levels
        for j in range(n_nodes):
            terms[j] = level[j]
        for k in range(n_levels):
            same = same and value[i, k] == held[k]
            _add_level(first + k, sqrt(max(p[i, k], 0.0)), roots[c], starts, ends, numbers, terms, own[k])
        top, total = _weigh(terms)
        found[i] = top + log(total) if same else np.nan
        for k in range(n_levels):
            slopes[i, k] = _dot(terms, own[k]) / (total * max(p[i, k], 1e-300))
    return found, slopes


@inlined
def _add_level(row, root, roots, starts, ends, numbers, terms, own):  # type: ignore[no-untyped-def]
    """Add the log probability of a count at all rates of its cell; write its slopes in the logarithm of its share."""
    panel, last = int(starts[row]), int(starts[row + 1]) - 1
    for j in range(len(terms)):
        u = roots[j] * root  # larger ones follow
        while panel < last and ends[panel] < u:
            panel += 1
        value, own[j], least = at_panel(panel, u, numbers)
        terms[j] += value
        if u < 0.99 * least:
            terms[j] += 2 * own[j] * log(max(u, 1e-150) / least)


@sums
def _weigh(terms):  # type: ignore[no-untyped-def]
    """Replace logarithms of weights by weights in units of the largest; return its logarithm, and their sum."""
    top, total = terms[0], 0.0
    for j in range(len(terms)):
        top = max(top, terms[j])
    for j in range(len(terms)):
        terms[j] = exponential(terms[j] - top)
        total += terms[j]
    return top, total


@sums
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


__all__ = ["at_panel", "levels_of_private_size", "levels_of_public_size", "look_up", "share", "table_logp"]
