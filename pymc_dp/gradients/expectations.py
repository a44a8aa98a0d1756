"""What the model says about the responses of some rows: their values, weights and scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from pymc_dp.gradients.clipping import Responses
from pymc_dp.gradients.density_nodes import nodes_of
from pymc_dp.gradients.joint import joined
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.inspection.rows import Array


def responses_at(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Take expectations over the responses of rows.

    Parameters
    ----------
    rows : RowScores
    predictors : (n_rows, q) array
    columns : sequence of (n_rows, ...) arrays
        The values of responses do not matter.
    """
    return _some(rows, predictors, columns) if rows.separate else _all(rows, predictors, columns)


def _all(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values that the responses of each row may have together, the last one fastest."""
    responses, n_rows = rows.interface.responses, len(predictors)
    at, held = predictors, _needed(rows, columns)
    masses, weights = list[Array](), list[Array | None]()
    for place, one in enumerate(responses):
        masses.append(_below(rows, place, at, held))
        values, known = _values(rows, place, at, held)
        at, held = _repeated(at, held, one.count)
        held[one.place] = one.column.clamped(values.reshape(-1))
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


def _some(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Take some values of responses that are independent given the predictors, and of all their entries."""
    held, weights, scores = _needed(rows, columns), list[Array](), list[Array]()
    for place, one in enumerate(rows.interface.responses):
        values, known = _values(rows, place, predictors, held)
        at, many = _repeated(predictors, held, one.count)
        many[one.place] = _column(one.column.clamped(values), rows, place)
        own, logps = rows.separate[place](at, *many)
        if known is None:
            mass = _below(rows, place, predictors, held)
            along = logps.reshape(len(predictors), one.count, one.entries).transpose(0, 2, 1)
            known = one.weighted(along, mass).transpose(0, 2, 1)
        own = own.reshape(len(predictors), one.count, one.entries, rows.count)
        scores += [own[:, :, entry] for entry in range(one.entries)]
        weights += [known.reshape(*own.shape[:3])[:, :, entry] for entry in range(one.entries)]
    found, total = joined(weights, scores, predictors)
    return Responses(weights=found, scores=total)


def _needed(rows: RowScores, columns: Sequence[Array]) -> list[Array]:
    """Return columns without their rows where no function needs these."""
    calls = (rows.scored, *rows.quantiles, *rows.breaks, *rows.densities, *rows.separate)
    needed = set().union(*(call.places for call in calls if call is not None))
    return [column if place + 1 in needed else column[:0] for place, column in enumerate(columns)]


def _values(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> tuple[Array, Array | None]:
    """Return values of a response, (n_rows, n_values, entries), and their weights unless these follow from scores."""
    one = rows.interface.responses[place]
    shape = (len(at), one.count, one.entries)
    quantile, density = rows.quantiles[place], rows.densities[place]
    if density is not None:
        return _by_density(rows, place, at, held)
    if quantile is None:
        assert one.values is not None
        return np.broadcast_to(one.values[:, None], shape), None
    assert one.levels is not None and one.weights is not None
    many, columns = _repeated(at, held, one.count)
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
        many, columns = _repeated(at, held, count)
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


def _repeated(at: Array, held: Sequence[Array], count: int) -> tuple[Array, list[Array]]:
    return np.repeat(at, count, axis=0), [np.repeat(column, count, axis=0) for column in held]


def _below(rows: RowScores, place: int, at: Array, held: Sequence[Array]) -> Array:
    """Return the probability of values that a response is clamped from, up to its least, for every row and entry."""
    one = rows.interface.responses[place]
    count = len(one.below)
    shape = (len(at), one.entries)
    if not count:
        return np.zeros(shape)
    more, columns = _repeated(at, held, count)
    columns[one.place] = _column(np.broadcast_to(one.below[:, None], (len(at), count, one.entries)), rows, place)
    logp = rows.separate[place](more, *columns)[1] if rows.separate else rows.scored(more, *columns)[1 + place]
    return np.asarray(np.exp(logp).reshape(len(at), count, one.entries).sum(axis=1))


__all__ = ["responses_at"]
