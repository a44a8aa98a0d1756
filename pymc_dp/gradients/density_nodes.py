"""Values of a continuous response and their weights from its log-density alone, row by row."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from scipy.special import ndtr

from pymc_dp.inspection.rows import Array

WITHIN, BEYOND, ADDED = 48, 16, 24
"""Points where the density is first looked at, within the bounds and on either side, and how many a round adds."""
POWERS = 0.1, 0.3, 1.0
"""Points are added in rounds, in proportion to these powers of the density: far from its peak first."""
CELLS, FARTHEST = 24, 4.5
"""Cells between the quantiles at equidistant points of a standard normal, and the outermost of these points."""
WIDTHS, UNBOUNDED = 1e4, 1e6
"""How far out a density is looked at: in half widths of the bounds; without bounds, as a number."""
STEEPEST = 30.0
"""Most that the logarithm of a density is taken to change within a cell."""
SPARED = 0.02
"""Share of the points that is spread over all cells, wherever the density seems to be."""
LEAST, FLAT, SMALLEST = -700.0, 1e-6, 1e-3
"""Logarithm of a density that counts as none; change that counts as none; mass that a peak has."""
BESIDE = np.array([-0.03, -5e-3, -1e-4, 1e-4, 5e-3, 0.03])
"""Levels of the edges beside a place between two peaks, less its own."""
GAUSS = 0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)
"""Places of the two values in each cell."""
Density = Callable[[Array], Array]


def count_of(breaks: int, atoms: int, valleys: int) -> int:
    """Return how many values `nodes_of` gives."""
    return len(GAUSS) * (CELLS + 1 + breaks + valleys * len(BESIDE)) + atoms


def nodes_of(
    density: Density, bounds: tuple[float, float] | None, breaks: Array, atoms: int, valleys: int
) -> tuple[Array, Array, Array]:
    """Return values and weights that add up to 1, (n_rows, n_nodes), and the logarithm of the whole mass, (n_rows,).

    Parameters
    ----------
    density : callable
        From values (n_rows, n) to their log-densities.
    bounds : (low, high) or None
        Of the column: where to look first. Values are not limited to them.
    breaks : (n_rows, n_breaks) array
        Where the density may jump: values are in cells between these.
    atoms : int
        How many of the breaks, the first ones, are single values of positive probability, which the density gives.
    valleys : int
        Places between two peaks that are looked for.

    Notes
    -----
    The density is looked at on a grid, even within the bounds and ever wider beyond them; each round adds points where
    it is large. Cells lie between quantiles of the density that is interpolated log-linearly, and each has the
    two values of Gauss and Legendre, whose weights are those of the density itself: wrong cells cost accuracy alone.

    The number of steps is the same for every row, whatever its density is; NaN counts as a density of 0. A peak far
    narrower than a hundred-thousandth of the bounds may be missed, and so may a second one a hundredth as wide.
    """
    start = _start(bounds)
    points = np.broadcast_to(start, (len(breaks), len(start))).copy()
    logs = density(points)
    for power in POWERS:
        new = _quantiles(points, power * logs, (np.arange(ADDED) + 0.5) / ADDED, wide=True)
        points, logs = _merged(points, logs, new, density(new))
    levels = ndtr(np.linspace(-FARTHEST, FARTHEST, CELLS + 1))
    edges = _quantiles(points, logs, levels)
    low = _valleys(points, logs, np.empty((len(points), valleys)))
    beside = _quantiles(points, logs, np.clip(low[:, :, None] + BESIDE, levels[0], levels[-1]).reshape(len(low), -1))
    for more in (*breaks.T, *beside.T, _peak(points, logs, np.empty(len(points)))):
        edges = _with_edge(edges, more)
    width = np.diff(edges, axis=1)
    values = np.concatenate([*(edges[:, :-1] + place * width for place in GAUSS), breaks[:, :atoms]], axis=1)
    sizes = np.concatenate([width / 2, width / 2, np.ones((len(width), atoms))], axis=1)
    logs = density(values)
    logs = np.where((sizes > 0) & ~np.isnan(logs), logs, -np.inf)
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top) * sizes
    total = weights.sum(axis=1, keepdims=True)
    return values, weights / total, (top + np.log(total))[:, 0]


def _quantiles(points: Array, logs: Array, levels: Array, *, wide: bool = False) -> Array:
    """Return quantiles of the interpolated density at levels, (n_levels,) or (n_rows, n_levels)."""
    each = np.sort(np.broadcast_to(levels, (len(points), levels.shape[-1])), axis=1)
    return np.asarray(_at_levels(points, logs, each, wide, np.empty(each.shape)))


def _start(bounds: tuple[float, float] | None) -> Array:
    """Return points that grow apart by a constant ratio outside of the bounds, or of -1 and 1."""
    middle, half, farthest = 0.0, 1.0, UNBOUNDED
    if bounds is not None:
        middle, half, farthest = bounds[0] / 2 + bounds[1] / 2, max(bounds[1] / 2 - bounds[0] / 2, 1e-300), WIDTHS
    beyond = np.geomspace(1, farthest, BEYOND + 1)[1:]
    inside = (2 * np.arange(WITHIN) + 1) / WITHIN - 1
    return np.asarray(middle + half * np.concatenate([-beyond[::-1], inside, beyond]))


def _with_edge(edges: Array, more: Array) -> Array:
    """Put one more edge where it belongs; one that is no number lies on the first."""
    one = np.where(np.isfinite(more), more, edges[:, 0])[:, None]
    before = np.concatenate([np.full_like(one, -np.inf), edges], axis=1)
    after = np.concatenate([edges, np.full_like(one, np.inf)], axis=1)
    return np.asarray(np.maximum(before, np.minimum(one, after)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _masses(points, logs, wide, masses, slopes):  # type: ignore[no-untyped-def]
    """Write the masses of cells, of which the largest density is 1, and how it changes in each; return their sum.

    Between points it is log-linear; wide: as large as at the end where it is larger.
    """
    count = len(points)
    top = -np.inf
    for k in range(count):
        top = logs[k] if logs[k] > top else top
    total = 0.0
    for k in range(count - 1):
        low, high = logs[k] - top, logs[k + 1] - top
        low = low if low > LEAST else LEAST
        high = high if high > LEAST else LEAST
        slope = 0.0 if wide else high - low
        slope = slope if slope < STEEPEST else STEEPEST
        slope = slope if slope > -STEEPEST else -STEEPEST
        steep = abs(slope)
        share = -np.expm1(-steep) / steep if steep > FLAT else 1.0
        masses[k] = np.exp(low if low > high else high) * share * (points[k + 1] - points[k])
        slopes[k] = slope
        total += masses[k]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_levels(points, logs, levels, wide, found):  # type: ignore[no-untyped-def]
    """Write quantiles of the interpolated density at sorted levels."""
    n_rows, count = points.shape
    masses, slopes = np.zeros(count), np.zeros(count)
    for row in range(n_rows):
        total = _masses(points[row], logs[row], wide, masses, slopes)
        if wide:
            for k in range(count - 1):
                masses[k] += SPARED * total / (count - 1)
            total *= 1 + SPARED
        cell, place, before = 0, 0, 0.0
        for _ in range(count + levels.shape[1]):
            if place < levels.shape[1]:
                goal = levels[row, place] * total - before
                if goal > masses[cell] and cell < count - 2:
                    before += masses[cell]
                    cell += 1
                else:
                    part = goal / masses[cell]
                    part = part if part > 0.0 else 0.0
                    part = part if part < 1.0 else 1.0
                    if abs(slopes[cell]) > FLAT:
                        part = np.log1p(part * np.expm1(slopes[cell])) / slopes[cell]
                    found[row, place] = points[row, cell] + part * (points[row, cell + 1] - points[row, cell])
                    place += 1
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _valleys(points, logs, levels):  # type: ignore[no-untyped-def]
    """Write the levels of the first places where the density is least between two peaks; 0 for the rest."""
    n_rows, count = points.shape
    masses, slopes = np.zeros(count), np.zeros(count)
    for row in range(n_rows):
        total = _masses(points[row], logs[row], False, masses, slopes)
        place, before = 0, 0.0
        for k in range(levels.shape[1]):
            levels[row, k] = 0.0
        for k in range(1, count - 1):
            before += masses[k - 1]
            here = before / total
            least = logs[row, k] < logs[row, k - 1] and logs[row, k] <= logs[row, k + 1]
            if least and here > SMALLEST and here < 1 - SMALLEST and place < levels.shape[1]:
                levels[row, place] = here
                place += 1
    return levels


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _peak(points, logs, found):  # type: ignore[no-untyped-def]
    """Write where lines on either side of the largest density meet: the kink of that of a Laplace."""
    n_rows, count = points.shape
    for row in range(n_rows):
        best = 2
        for k in range(2, count - 2):
            best = k if logs[row, k] > logs[row, best] else best
        one, other = best - 1, best + 1
        rise = (logs[row, one] - logs[row, one - 1]) / (points[row, one] - points[row, one - 1])
        fall = (logs[row, other + 1] - logs[row, other]) / (points[row, other + 1] - points[row, other])
        gap = logs[row, other] - logs[row, one] - fall * (points[row, other] - points[row, one])
        where = points[row, one] + gap / (rise - fall)
        inside = where > points[row, one] and where < points[row, other]
        found[row] = where if inside else points[row, best]
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _merged(points, logs, more, more_logs):  # type: ignore[no-untyped-def]
    """Return two sorted lists of each row as one."""
    n_rows, count = points.shape
    extra = more.shape[1]
    where, what = np.empty((n_rows, count + extra)), np.empty((n_rows, count + extra))
    for row in range(n_rows):
        one, other = 0, 0
        for k in range(count + extra):
            if other == extra or (one < count and points[row, one] <= more[row, other]):
                where[row, k], what[row, k] = points[row, one], logs[row, one]
                one += 1
            else:
                where[row, k], what[row, k] = more[row, other], more_logs[row, other]
                other += 1
    return where, what


__all__ = ["Density", "count_of", "nodes_of"]
