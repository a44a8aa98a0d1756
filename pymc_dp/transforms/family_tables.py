"""Tables of any likelihood with one unknown parameter per cell: its own graph, evaluated by NumPy at many points.

In the graph of a log density a cell is one entry of the release, of the size and of the parameter. Here entries are
pairs of a cell and a point, so nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_tables import CellTables, Chart
from pymc_dp.transforms.panels import tabulate

Density = Callable[[Array, Array], Array]
"""From (m,) numbers of cells and (m,) parameters to log densities."""
Supported = Callable[[float], bool]

AT_ONCE = 4096
"""Entries that are evaluated in one call."""
SAMPLED = 5
"""Cells among which the middle of the parameter is looked for."""
SIZES = 2.0 ** np.arange(-40, 41)
"""Sizes of parameters that are looked at for it; a log density is a straight line beyond."""
FLAT = 1e-3
"""Change of a log density that has settled."""
LARGEST = float(np.finfo(float).max)
LEAST, HALF = 1e-16, 0.5
"""Of the share of a chart."""


def family_tables(density: Density, release: Array, supported: Supported) -> CellTables | None:
    """Tabulate a log density, or say by None that this cannot be done.

    Parameters
    ----------
    density : callable
    release : (n_cells, n_columns) array
    supported : callable
        Whether the likelihood has such a parameter.
    """
    with np.errstate(all="ignore"):
        found = _chart(density, len(release), supported)
        if found is None:
            return None
        chart, left = found

        def evaluate(rows: Array, u: Array) -> Array:
            at = parameter_at(chart, rows % 2 == 1, u)
            return _evaluated(density, np.repeat(rows // 2, u.shape[1]), at.ravel()).reshape(u.shape)

        count = len(release)
        try:
            panels = tabulate(evaluate, np.tile(np.sqrt(left), count), np.full(2 * count, np.sqrt(HALF)))
        except ArithmeticError:
            return None
    return CellTables(release=release, chart=chart, panels=panels)


def parameter_at(chart: Chart, second: Array, u: Array) -> Array:
    """Return parameters whose share is u²: the inverse of `panel_kernels.share`."""
    s, second = u**2, second[:, None]
    if chart.kind == Chart.REAL:
        distance = chart.width * (0.5 / s - 1)
        return chart.centre + np.where(second, distance, -distance)
    if chart.kind == Chart.POSITIVE:
        return chart.centre * np.where(second, (1 - s) / s, s / (1 - s))
    found: Array = np.where(second, 1 - s, s)
    return found


def _evaluated(density: Density, cells: Array, parameters: Array) -> Array:
    parts = range(0, len(cells), AT_ONCE)
    return np.concatenate([density(cells[i : i + AT_ONCE], parameters[i : i + AT_ONCE]) for i in parts])


def _chart(density: Density, count: int, supported: Supported) -> tuple[Chart, Array] | None:
    """Choose a chart, and the least share on either sheet."""
    low = -LARGEST if supported(-1.0) else 0.0 if supported(0.0) else float(np.nextafter(0.0, 1.0))
    if not supported(2.0):
        high = 1.0 if supported(1.0) else float(np.nextafter(1.0, 0.0))
        return (Chart(kind=Chart.PROBABILITY, low=low, high=high), np.full(2, LEAST)) if supported(0.5) else None
    grid = SIZES if low >= 0 else np.concatenate([-SIZES[::-1], [0.0], SIZES])
    cells = np.unique(np.linspace(0, count - 1, min(count, SAMPLED)).astype(int))
    at = np.tile(grid, len(cells))
    values = _evaluated(density, np.repeat(cells, len(grid)), at).reshape(len(cells), -1)
    first, last = _finite_part(values)
    grid, values = grid[first:last], values[:, first:last]
    if len(grid) < 3 or (low < 0 and not _settled(values)):
        return None
    centre = float(np.median(grid[values.argmax(axis=1)]))
    if low < 0:
        width = _width(grid - centre, values)
        ends = np.array([centre - grid[0], grid[-1] - centre])
        return Chart(kind=Chart.REAL, centre=centre, width=width, low=low, high=LARGEST), _least(0.5 / (1 + ends / width))
    ends = np.array([grid[0] / (grid[0] + centre), centre / (grid[-1] + centre)])
    return Chart(kind=Chart.POSITIVE, centre=centre, low=low, high=LARGEST), _least(ends)


def _finite_part(values: Array) -> tuple[int, int]:
    """Return the ends of the points around the largest value at which all values are finite."""
    finite = np.isfinite(values).all(axis=0)
    if not finite.any():
        return 0, 0
    top = np.where(finite, values, -np.inf).sum(axis=0).argmax()
    bad = np.flatnonzero(~finite)
    return int(max(bad[bad < top], default=-1)) + 1, int(min(bad[bad > top], default=len(finite)))


def _settled(values: Array) -> bool:
    """Whether values no longer change at either end: those of an angle do."""
    ends = np.abs(values[:, [1, -1]] - values[:, [0, -2]])
    return bool((ends < FLAT).all())


def _width(distances: Array, values: Array) -> float:
    """Least distance at which values have fallen."""
    fallen = (values.max(axis=1, keepdims=True) - values > 1).all(axis=0) & (distances != 0)
    return float(np.abs(distances[fallen]).min()) if fallen.any() else 1.0


def _least(shares: Array) -> Array:
    found: Array = np.clip(shares, LEAST, HALF / 2)
    return found


__all__ = ["family_tables", "parameter_at"]
