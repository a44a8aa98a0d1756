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
LEAST, FLAT, STRAIGHT, SMALLEST = -700.0, 1e-6, 1e-3, 1e-3
"""Logarithm of a density that counts as none; change that counts as none, or as small; mass that a peak has."""
SPREADING = (np.arange(ADDED) + 0.5) / ADDED
LEVELS = ndtr(np.linspace(-FARTHEST, FARTHEST, CELLS + 1))
"""Levels of the points that a round adds, and of the edges of cells."""
BESIDE = np.array([-0.03, -5e-3, -1e-4, 1e-4, 5e-3, 0.03])
"""Levels of the edges beside a place between two peaks, less its own."""
GAUSS = 0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)
"""Places of the two values in each cell."""
Density = Callable[[Array], Array]


def count_of(breaks: int, atoms: int, valleys: int) -> int:
    """Return how many values `nodes_of` gives."""
    return len(GAUSS) * (CELLS + 1 + breaks + valleys * len(BESIDE)) + atoms


def nodes_of(
    density: Density,
    bounds: tuple[float, float] | None,
    breaks: Array,
    atoms: int,
    valleys: int,
    *,
    by_hand: bool = False,
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
    by_hand : bool
        Whether the density may grow without end beyond the bounds, as ``-rate * x`` does where nobody wrote that x > 0.
        Rows for which it does have none beyond that bound.

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
    if by_hand and bounds is not None:
        ends = _ends(bounds, logs)
        density, logs = _ending(density, ends), _cut(points, logs, ends)
    for power in POWERS:
        new = np.empty((len(points), ADDED))
        _spread(points, logs, power, SPREADING, new)
        points, logs = _merged(points, logs, new, density(new))
    edges = np.empty((len(points), CELLS + 2 + breaks.shape[1] + valleys * len(BESIDE)))
    _edges(points, logs, np.ascontiguousarray(breaks, dtype=np.float64), valleys, LEVELS, BESIDE, edges)
    width = np.diff(edges, axis=1)
    values = np.concatenate([*(edges[:, :-1] + place * width for place in GAUSS), breaks[:, :atoms]], axis=1)
    sizes = np.concatenate([width / 2, width / 2, np.ones((len(width), atoms))], axis=1)
    logs = density(values)
    logs = np.where((sizes > 0) & ~np.isnan(logs), logs, -np.inf)
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top) * sizes
    total = weights.sum(axis=1, keepdims=True)
    return values, weights / total, (top + np.log(total))[:, 0]


def _ends(bounds: tuple[float, float], logs: Array) -> tuple[Array, Array]:
    """Return the bound beyond which a density is largest at the outermost point, (n_rows, 1) each; infinite else."""
    peaks = np.nan_to_num(logs, nan=-np.inf).argmax(axis=1)[:, None]
    return np.where(peaks == 0, bounds[0], -np.inf), np.where(peaks == logs.shape[1] - 1, bounds[1], np.inf)


def _ending(density: Density, ends: tuple[Array, Array]) -> Density:
    return lambda values: _cut(values, density(values), ends)


def _cut(values: Array, logs: Array, ends: tuple[Array, Array]) -> Array:
    """Return log-densities that are those of 0 beyond the ends."""
    return np.where((values < ends[0]) | (values > ends[1]), -np.inf, logs)


def _start(bounds: tuple[float, float] | None) -> Array:
    """Return points that grow apart by a constant ratio outside of the bounds, or of -1 and 1."""
    middle, half, farthest = 0.0, 1.0, UNBOUNDED
    if bounds is not None:
        middle, half, farthest = bounds[0] / 2 + bounds[1] / 2, max(bounds[1] / 2 - bounds[0] / 2, 1e-300), WIDTHS
    beyond = np.geomspace(1, farthest, BEYOND + 1)[1:]
    inside = (2 * np.arange(WITHIN) + 1) / WITHIN - 1
    return np.asarray(middle + half * np.concatenate([-beyond[::-1], inside, beyond]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _masses(points, logs, masses, slopes):  # type: ignore[no-untyped-def]
    """Write the masses of cells, of which the largest density is 1, and how it changes in each; return their sum.

    Between points it is log-linear: a mass is that of the ends over the slope, or of a series where it hardly changes.
    """
    count = len(points)
    top = _largest(logs)
    total = 0.0
    low = _at_least(logs[0] - top)
    left = np.exp(low)
    for k in range(count - 1):
        high = _at_least(logs[k + 1] - top)
        right = np.exp(high)
        slope = high - low
        steep = abs(slope)
        mass = abs(right - left) / steep
        if steep < STRAIGHT:
            mass = (left if left > right else right) * (1 - steep / 2 * (1 - steep / 3 * (1 - steep / 4)))
        elif steep > STEEPEST:
            mass = (left if left > right else right) / STEEPEST
            slope = STEEPEST if slope > 0 else -STEEPEST
        masses[k], slopes[k] = mass * (points[k + 1] - points[k]), slope
        total += masses[k]
        low, left = high, right
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(logs):  # type: ignore[no-untyped-def]
    top = -np.inf
    for k in range(len(logs)):
        top = logs[k] if logs[k] > top else top
    return top


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_least(change):  # type: ignore[no-untyped-def]
    return change if change > LEAST else LEAST  # NaN too


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _spread(points, logs, power, levels, found):  # type: ignore[no-untyped-def]
    """Write quantiles of a power of the density, as large in each cell as at its end where it is larger."""
    n_rows, count = points.shape
    masses, slopes = np.zeros(count), np.zeros(count)
    for row in range(n_rows):
        top, total = _largest(logs[row]), 0.0
        left = np.exp(_at_least(power * (logs[row, 0] - top)))
        for k in range(count - 1):
            right = np.exp(_at_least(power * (logs[row, k + 1] - top)))
            masses[k] = (left if left > right else right) * (points[row, k + 1] - points[row, k])
            total += masses[k]
            left = right
        for k in range(count - 1):
            masses[k] += SPARED * total / (count - 1)
        _at_levels(points[row], masses, slopes, total * (1 + SPARED), levels, found[row])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_levels(points, masses, slopes, total, levels, found):  # type: ignore[no-untyped-def]
    """Write quantiles of a density at sorted levels."""
    count, cell, place, before = len(points), 0, 0, 0.0
    for _ in range(count + len(levels)):
        if place < len(levels):
            goal = levels[place] * total - before
            if goal > masses[cell] and cell < count - 2:
                before += masses[cell]
                cell += 1
            else:
                part = goal / masses[cell]
                part = part if part > 0.0 else 0.0
                part = part if part < 1.0 else 1.0
                if abs(slopes[cell]) > FLAT:
                    part = np.log1p(part * np.expm1(slopes[cell])) / slopes[cell]
                found[place] = points[cell] + part * (points[cell + 1] - points[cell])
                place += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _edges(points, logs, breaks, valleys, levels, beside, found):  # type: ignore[no-untyped-def]
    """Write sorted edges of cells: quantiles, breaks, beside places between two peaks, and the peak."""
    n_rows, count = points.shape
    masses, slopes = np.zeros(count), np.zeros(count)
    low, around, more = np.zeros(valleys), np.zeros(len(beside)), np.zeros(len(beside))
    for row in range(n_rows):
        total = _masses(points[row], logs[row], masses, slopes)
        _at_levels(points[row], masses, slopes, total, levels, found[row, : len(levels)])
        used = len(levels)
        for k in range(breaks.shape[1]):
            used = _insert(found[row], used, breaks[row, k])
        _valleys(logs[row], masses, total, low)
        for valley in range(valleys):
            for k in range(len(beside)):
                level = low[valley] + beside[k]
                level = level if level > levels[0] else levels[0]
                around[k] = level if level < levels[-1] else levels[-1]
            _at_levels(points[row], masses, slopes, total, around, more)
            for k in range(len(beside)):
                used = _insert(found[row], used, more[k])
        _insert(found[row], used, _peak(points[row], logs[row]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _insert(edges, used, more):  # type: ignore[no-untyped-def]
    """Put one more edge where it belongs, by as many steps wherever; one that is no number lies on the first."""
    carried = more if np.isfinite(more) else edges[0]
    for k in range(used):
        edge = edges[k]
        edges[k], carried = (carried, edge) if carried < edge else (edge, carried)
    edges[used] = carried
    return used + 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _valleys(logs, masses, total, levels):  # type: ignore[no-untyped-def]
    """Write the levels of the first places where the density is least between two peaks; 0 for the rest."""
    place, before = 0, 0.0
    for k in range(len(levels)):
        levels[k] = 0.0
    for k in range(1, len(logs) - 1):
        before += masses[k - 1]
        here = before / total
        least = logs[k] < logs[k - 1] and logs[k] <= logs[k + 1]
        if least and here > SMALLEST and here < 1 - SMALLEST and place < len(levels):
            levels[place] = here
            place += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _peak(points, logs):  # type: ignore[no-untyped-def]
    """Return where lines on either side of the largest density meet: the kink of that of a Laplace."""
    best = 2
    for k in range(2, len(points) - 2):
        best = k if logs[k] > logs[best] else best
    one, other = best - 1, best + 1
    rise = (logs[one] - logs[one - 1]) / (points[one] - points[one - 1])
    fall = (logs[other + 1] - logs[other]) / (points[other + 1] - points[other])
    gap = logs[other] - logs[one] - fall * (points[other] - points[one])
    where = points[one] + gap / (rise - fall)
    inside = where > points[one] and where < points[other]
    return where if inside else points[best]


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
