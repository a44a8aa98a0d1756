"""What the model says about the responses of some rows: their values, weights and scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from pymc_dp.gradients.by_points import ByPoints
from pymc_dp.gradients.clipping import Responses
from pymc_dp.gradients.density_nodes import nodes_of
from pymc_dp.gradients.function import Function
from pymc_dp.gradients.joint import joined, levels_at
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.vector_values import vectors_of
from pymc_dp.inspection.rows import Array


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
    elif rows.by_own_values is not None:
        found = _of_own_values(rows, rows.by_own_values, predictors, columns)
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


def _of_values(rows: RowScores, call: Function | ByPoints, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values of a single discrete response."""
    (one,), held = rows.interface.responses, needed(rows, columns)
    assert one.values is not None
    scores, logps = call(predictors, *held, one.values)
    shape = (len(predictors), one.count)
    weights = one.weighted(np.broadcast_to(logps, shape), below_of(rows, 0, predictors, held)[:, 0])
    return Responses(weights=weights, scores=np.broadcast_to(scores, (*shape, rows.count)))


def _of_own_values(rows: RowScores, call: Function, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through the values of a single continuous response."""
    (one,), held = rows.interface.responses, needed(rows, columns)
    values, weights = values_of(rows, 0, predictors, held)
    assert weights is not None
    scores, _ = call(predictors, *held, one.clamped(values, weights)[:, :, 0])
    return Responses(weights=weights[:, :, 0], scores=scores)


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
        given = values.reshape(n_rows, entries, count).transpose(0, 2, 1)
        (found,) = density(at, *held, given if one.column.leaf.type.ndim == 2 else given[:, :, 0])
        return np.asarray(found.transpose(0, 2, 1).reshape(-1, count))

    breaks = np.broadcast_to(one.limits, (n_rows * entries, len(one.limits)))
    if jumps is not None:
        (own,) = jumps(at, *held)
        breaks = np.concatenate([own.reshape(n_rows * entries, -1), breaks], axis=1)
    with np.errstate(all="ignore"):
        values, weights, _ = nodes_of(logs, one.column.bounds, breaks, one.atoms, one.valleys, by_hand=one.by_hand)
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


__all__ = ["apart", "below_of", "needed", "repeated", "responses_at", "values_of"]
