"""Tables of any likelihood with one unknown parameter per cell: its own log density, evaluated at many points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.cell_tables import HALF, LEAST, CellTables, Chart, Panels, tabulate

Density = Callable[[Array, Array, Array], Array]
"""From the release, (m,) numbers of cells and (m,) parameters to log densities."""
Supported = Callable[[Array], Array]
"""Whether the likelihood has such parameters."""

AT_ONCE = 4096
"""Entries that are evaluated in one call."""
SAMPLED = 5
"""Cells among which the middle of the parameter is looked for."""
SIZES = 2.0 ** np.arange(-40, 41)
GRID = np.concatenate([-SIZES[::-1], SIZES])
"""Parameters that are looked at for it; a log density is a straight line beyond."""
LEAST_POINTS = 3
FLAT = 1e-3
"""Change of a log density that has settled, and a difference that is too large."""
SMALLEST = 1e-12
LARGEST = float(np.finfo(float).max)


def family_tables(density: Density, release: Array, supported: Supported) -> CellTables | None:
    """Tabulate a log density, or say by None that this cannot be done.

    Parameters
    ----------
    density : callable
    release : (n_cells, n_columns) array
    supported : callable
    """
    with np.errstate(all="ignore"):
        scan = _scan(density, release, supported)
        if not scan.wide_enough:
            return None
        chart, left = scan.chart(*supported(np.array([0.0, 1.0, 2.0])))

        def evaluate(rows: Array, u: Array) -> Array:
            at = parameter_at(chart, rows % 2 == 1, u)
            return _evaluated(density, release, np.repeat(rows // 2, u.shape[1]), at.ravel()).reshape(u.shape)

        count = len(release)
        try:
            panels = tabulate(evaluate, np.tile(np.sqrt(left), count), np.full(2 * count, np.sqrt(HALF)))
        except ArithmeticError:
            return None
    return CellTables(release=release, chart=chart, panels=panels) if scan.agrees(chart, panels) else None


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


def _evaluated(density: Density, release: Array, cells: Array, parameters: Array) -> Array:
    parts = range(0, len(cells), AT_ONCE)
    return np.concatenate([density(release, cells[i : i + AT_ONCE], parameters[i : i + AT_ONCE]) for i in parts])


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """Log densities of some cells at parameters of all sizes: ascending ones, (n_points,), and (n_cells, n_points)."""

    cells: Array
    grid: Array
    values: Array

    @property
    def wide_enough(self) -> bool:
        """Whether there are values, which no longer change at the ends of the real line: those of an angle do."""
        if len(self.grid) < LEAST_POINTS:
            return False
        ends = np.abs(self.values[:, [1, -1]] - self.values[:, [0, -2]])
        return self.grid[0] >= 0 or bool((ends < FLAT).all())

    def chart(self, zero: bool, one: bool, two: bool) -> tuple[Chart, Array]:
        """Choose a chart, and the least share on either sheet, by whether the likelihood has these parameters."""
        first, last = self.grid[[0, -1]]
        low, high = (at if has else float(np.nextafter(at, 0.5)) for at, has in ((0.0, zero), (1.0, one)))
        if not two:
            return Chart(kind=Chart.PROBABILITY, low=low, high=high), np.full(2, LEAST)
        start, centre, stop = self._quantiles
        if first < 0:
            width = max(stop - start, float(SIZES[0]))
            ends = HALF / (1 + np.array([centre - first, last - centre]) / width)
            return Chart(kind=Chart.REAL, centre=centre, width=width, low=-LARGEST, high=LARGEST), _shares(ends)
        ends = np.array([first / (first + centre), centre / (last + centre)])
        return Chart(kind=Chart.POSITIVE, centre=centre, low=low, high=LARGEST), _shares(ends)

    @property
    def _quantiles(self) -> list[float]:
        """Parameters before which log densities have made a tenth, a half and nine tenths of their changes.

        One of more than a unit counts as one: where a density vanishes it says nothing more.
        """
        changes = np.minimum(np.abs(np.diff(self.values, axis=1)), 1.0).sum(axis=0) + SMALLEST
        shares = np.cumsum(changes) / changes.sum()
        return [float(self.grid[1:][np.searchsorted(shares, share)]) for share in (0.1, 0.5, 0.9)]

    def agrees(self, chart: Chart, panels: Panels) -> bool:
        """Whether tables have seen what there is, also between the points that they were made of."""
        from pymc_dp.transforms.level_kernels import look_up, share  # numba takes long to import

        given = (panels.starts, panels.ends, panels.numbers)
        sheets = [share(at, chart.numbers)[:2] for at in self.grid]
        rows = [[look_up(2 * cell + sheet, np.sqrt(s), *given)[0] for sheet, s in sheets] for cell in self.cells]
        allowed = FLAT * np.maximum(1.0, self.values.max(axis=1, keepdims=True) - self.values)
        return bool((np.abs(np.array(rows) - self.values) < allowed).all())


def _scan(density: Density, release: Array, supported: Supported) -> _Scan:
    cells = np.unique(np.linspace(0, len(release) - 1, min(len(release), SAMPLED)).astype(int))
    grid = GRID[supported(GRID)]
    if not len(grid):
        return _Scan(cells=cells, grid=grid, values=np.zeros((len(cells), 0)))
    values = _evaluated(density, release, np.repeat(cells, len(grid)), np.tile(grid, len(cells)))
    values = values.reshape(len(cells), -1)
    part = _finite_part(values)
    return _Scan(cells=cells, grid=grid[part], values=values[:, part])


def _finite_part(values: Array) -> slice:
    """Return the points around the largest value at which all values are finite."""
    finite = np.isfinite(values).all(axis=0)
    top = np.where(finite, values.sum(axis=0), -np.inf).argmax()
    bad = np.flatnonzero(~finite)
    return slice(max(bad[bad <= top], default=-1) + 1, min(bad[bad > top], default=len(finite)))


def _shares(ends: Array) -> Array:
    found: Array = np.clip(ends, LEAST, HALF / 2)
    return found


__all__ = ["family_tables", "parameter_at"]
