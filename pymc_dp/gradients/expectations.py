"""What the model says about the responses of some rows: their values, weights and scores.

Values of a continuous response and their weights from its log-density alone, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numba
import numpy as np
from scipy.special import ndtr

from pymc_dp.gradients.clipping import Responses
from pymc_dp.gradients.function import Function
from pymc_dp.gradients.joint import joined, levels_at
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.vector_values import vectors_of
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


def responses_at(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Take expectations over the responses of rows.

    Parameters
    ----------
    rows : RowScores
    predictors : (n_rows, q) array
    columns : sequence of (n_rows, ...) arrays
        The values of responses do not matter.

    Notes
    -----
    Where some values stand for those around them, the mean of the scores is made 0, as that of a density is.
    """
    if rows.by_values is not None:
        found = _of_values(rows, rows.by_values, predictors, columns)
    else:
        found = _some(rows, predictors, columns) if rows.separate else _all(rows, predictors, columns)
    if all(one.widths is None for one in rows.interface.responses):
        return found
    means = np.einsum("nk,nkq->nq", found.weights, found.scores)
    return Responses(weights=found.weights, scores=found.scores - means[:, None])


def _all(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values that the responses of each row may have together, the last one fastest."""
    responses, n_rows = rows.interface.responses, len(predictors)
    at, held = predictors, needed(rows, columns)
    masses, weights = list[Array](), list[Array | None]()
    for place, one in enumerate(responses):
        masses.append(below_of(rows, place, at, held))
        values, known = values_of(rows, place, at, held)
        at, held = repeated(at, held, one.count)
        held[one.place] = one.clamped(values, known).reshape(-1)
        weights.append(known)
    scores, *logps = rows.scored(at, *held)
    shape = (n_rows, *(one.count for one in responses))
    own = list[Array]()
    for axis, (one, logp, mass, known) in enumerate(zip(responses, logps, masses, weights, strict=True), start=1):
        lengths = (*shape[:axis], *(1 for _ in shape[axis + 1 :]))
        if known is not None:
            own.append(known.reshape(*shape[: axis + 1], *lengths[axis:]))
        else:
            along = np.moveaxis(logp.reshape(shape), axis, -1)
            own.append(np.moveaxis(one.weighted(along, mass.reshape(lengths)), -1, axis))
    found = np.broadcast_to(reduce(np.multiply, own), shape)
    return Responses(weights=found.reshape(n_rows, -1), scores=scores.reshape(n_rows, -1, rows.count))


def _of_values(rows: RowScores, call: Function, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values of a single discrete response."""
    (one,), held = rows.interface.responses, needed(rows, columns)
    assert one.values is not None
    scores, logps = call(predictors, *held, one.values)
    shape = (len(predictors), one.count)
    weights = one.weighted(np.broadcast_to(logps, shape), below_of(rows, 0, predictors, held)[:, 0])
    return Responses(weights=weights, scores=np.broadcast_to(scores, (*shape, rows.count)))


def _some(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Take some values of responses that are independent given the predictors, and of all their entries."""
    held, weights, scores = needed(rows, columns), list[Array](), list[Array]()
    for place, one in enumerate(rows.interface.responses):
        values, known = values_of(rows, place, predictors, held)
        at, many = repeated(predictors, held, one.count)
        many[one.place] = _column(one.clamped(values, known), rows, place)
        own, logps = rows.separate[place](at, *many)
        if known is None:
            mass = below_of(rows, place, predictors, held)
            along = logps.reshape(len(predictors), one.count, one.entries).transpose(0, 2, 1)
            known = one.weighted(along, mass).transpose(0, 2, 1)
        own = own.reshape(len(predictors), one.count, one.entries, rows.count)
        scores += [own[:, :, entry] for entry in range(one.entries)]
        weights += [known.reshape(*own.shape[:3])[:, :, entry] for entry in range(one.entries)]
    found, total = joined(weights, scores, apart(rows, predictors, held))
    return Responses(weights=found, scores=total)


def needed(rows: RowScores, columns: Sequence[Array]) -> list[Array]:
    """Return columns without their rows where no function needs these."""
    calls = (rows.scored, *rows.quantiles, *rows.breaks, *rows.densities, *rows.separate, *rows.given, *rows.shares)
    places = set().union(*(call.places for call in calls if call is not None))
    return [column if place + 1 in places else column[:0] for place, column in enumerate(columns)]


def apart(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Array:
    """Return the numbers, (n_rows, n), in which rows differ but for their responses; columns as `needed` returns them.

    What parameters meet is the same for all rows where a covariate enters elsewhere, in the mean of a latent say.
    """
    own = {one.place for one in rows.interface.responses}
    more = [column for place, column in enumerate(columns) if place not in own and len(column)]
    return np.concatenate([predictors, *(column.reshape(len(predictors), -1) for column in more)], axis=1)


def values_of(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> tuple[Array, Array | None]:
    """Return values of a response, (n_rows, n_values, entries), and their weights unless these follow from scores."""
    one = rows.interface.responses[place]
    shape = (len(at), one.count, one.entries)
    quantile, density = rows.quantiles[place], rows.densities[place]
    if density is not None:
        return _by_density(rows, place, at, held)
    if one.together:
        levels = levels_at(apart(rows, at, held), 1 + one.entries).reshape(-1, 1 + one.entries)
        values, counts = vectors_of(rows, place, *repeated(at, held, one.count), levels)
        weights = counts.reshape(len(at), -1, 1)
        return values.reshape(shape), np.broadcast_to(weights / weights.sum(axis=1, keepdims=True), shape)
    if quantile is None:
        assert one.values is not None
        return np.broadcast_to(one.values[:, None], shape), None
    assert one.levels is not None and one.weights is not None
    many, columns = repeated(at, held, one.count)
    levels = np.broadcast_to(one.levels[:, None].astype(one.column.leaf.type.dtype), shape)
    columns[one.place] = _column(levels, rows, place)
    (values,) = quantile(many, *columns)
    return values.reshape(shape), np.broadcast_to(one.weights[:, None], shape)


def _by_density(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> tuple[Array, Array]:
    one, density, jumps = rows.interface.responses[place], rows.densities[place], rows.breaks[place]
    assert density is not None
    n_rows, entries = len(at), one.entries

    def logs(values: Array) -> Array:
        count = values.shape[1]
        many, columns = repeated(at, held, count)
        columns[one.place] = _column(values.reshape(n_rows, entries, count).transpose(0, 2, 1), rows, place)
        (found,) = density(many, *columns)
        return np.asarray(found.reshape(n_rows, count, entries).transpose(0, 2, 1).reshape(-1, count))

    breaks = np.broadcast_to(one.limits, (n_rows * entries, len(one.limits)))
    if jumps is not None:
        (own,) = jumps(at, *held)
        breaks = np.concatenate([own.reshape(n_rows * entries, -1), breaks], axis=1)
    with np.errstate(all="ignore"):
        values, weights, _ = nodes_of(logs, one.column.bounds, breaks, one.atoms, one.valleys)
    shape = (n_rows, entries, one.count)
    return values.reshape(shape).transpose(0, 2, 1), weights.reshape(shape).transpose(0, 2, 1)


def _column(values: Array, rows: RowScores, place: int) -> Array:
    """Return (n_rows, n_values, entries) values as those of a column of that many rows."""
    one = rows.interface.responses[place]
    shape = (-1, one.entries) if one.column.leaf.type.ndim == 2 else (-1,)
    return np.ascontiguousarray(values.reshape(shape))


def repeated(at: Array, held: Sequence[Array], count: int) -> tuple[Array, list[Array]]:
    """Return predictors and columns with every row repeated."""
    return np.repeat(at, count, axis=0), [np.repeat(column, count, axis=0) for column in held]


def below_of(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> Array:
    """Return the probability of values that a response is clamped from, up to its least, for every row and entry."""
    one = rows.interface.responses[place]
    count = len(one.below)
    shape = (len(at), one.entries)
    if not count:
        return np.zeros(shape)
    if rows.by_values is not None:
        logps = np.broadcast_to(rows.by_values(at, *held, one.below)[1], (len(at), count))
        return np.asarray(np.exp(logps).sum(axis=1, keepdims=True))
    more, columns = repeated(at, held, count)
    columns[one.place] = _column(np.broadcast_to(one.below[:, None], (len(at), count, one.entries)), rows, place)
    logp = rows.separate[place](more, *columns)[1] if rows.separate else rows.scored(more, *columns)[1 + place]
    return np.asarray(np.exp(logp).reshape(len(at), count, one.entries).sum(axis=1))


__all__ = ["apart", "below_of", "count_of", "needed", "nodes_of", "repeated", "responses_at", "values_of"]
