"""Responses of a row that depend on each other, taken one after the other: by latents, or given those before.

So are the counts of levels that add up to a total.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from pymc_dp.gradients.by_points import weighed
from pymc_dp.gradients.clipping import Responses
from pymc_dp.gradients.counted_levels import taken_counts
from pymc_dp.gradients.expectations import apart, below_of, needed, repeated, responses_at, values_of
from pymc_dp.gradients.joint import levels_at, picked, place_of, sum_up
from pymc_dp.gradients.responses import in_turn
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.vector_values import vectors_of
from pymc_dp.inspection.rows import Array


def expected_responses(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Take expectations over the responses of rows; parameters as for `responses_at`.

    Notes
    -----
    All values of one response with latents are gone through where there are few (`RowScores.all_patterns`). Elsewhere
    each coordinate of a lattice, or of a net where continuous rows are alike, is a level at which a value is taken,
    given those before: first of the points of the quadrature, then of each entry given this point. Entries of
    continuous values are functions of independent levels. Nothing is drawn, and no step depends on a value of a row.
    The mean of the scores is made 0, as that of a density is: what the lattice is off by would bias all rows alike.
    """
    if not in_turn(rows.interface.responses):
        return responses_at(rows, predictors, columns)
    held = needed(rows, columns)
    return _all(rows, predictors, held) if rows.all_patterns else _taken(rows, predictors, held)


def _all(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    """Go through all values of the entries of one response."""
    (one,), call = rows.interface.responses, rows.by_points
    assert one.values is not None and call is not None
    logs, log_weights = _logs_at_points(rows, 0, predictors, columns, one.values)
    places = np.stack(np.meshgrid(*[range(one.count)] * one.entries, indexing="ij"), axis=-1).reshape(-1, one.entries)
    whole = np.repeat(log_weights[:, None], len(places), axis=1)
    _add_entries(logs, places, whole)
    shares, logps = weighed(whole)
    (scores,) = call.slopes(predictors, *columns, one.column.clamped(one.values[places]), shares)
    weights = np.exp(logps)
    return Responses(weights=weights / weights.sum(axis=1, keepdims=True), scores=scores)


def _taken(rows: RowScores, predictors: Array, columns: Sequence[Array]) -> Responses:
    count = rows.nodes
    at, held = repeated(predictors, columns, count)
    responses = rows.interface.responses
    ends = np.cumsum([0, *(1 + one.entries for one in responses)])
    points = levels_at(apart(rows, predictors, columns), ends[-1], count)
    weights = np.ones(points.shape[:2])
    for place, one in enumerate(responses):
        levels = points[:, :, ends[place] : ends[place + 1]]
        counted = rows.shares[place]
        if counted is not None:
            assert one.column.bounds is not None
            (found,) = counted(at, *held)
            chosen = taken_counts(found, levels.reshape(len(at), -1), int(one.column.bounds[1]), one.varied)
        elif one.together:
            chosen, counts = vectors_of(rows, place, at, held, levels.reshape(len(at), -1))
            weights *= counts.reshape(weights.shape)
        elif one.given is None:
            values, known = values_of(rows, place, at, held)
            if known is None:
                many, more = repeated(at, held, one.count)
                more[one.place] = one.column.clamped(values.reshape(-1))
                logps = rows.scored(many, *more)[1 + place].reshape(len(at), 1, one.count)
                known = one.weighted(logps, below_of(rows, place, at, held)).transpose(0, 2, 1)
            chosen = values[np.arange(len(at)), picked(known[:, :, 0], levels[..., :1].reshape(-1, 1))[:, 0]]
        else:
            alone = not one.before
            shares, masses = _at_points(rows, place, *((predictors, columns) if alone else (at, held)))
            assert one.values is not None
            chosen = one.values[picked_entries(shares, masses, levels if alone else levels.reshape(len(at), 1, -1))]
        held[one.place] = one.column.clamped(chosen.reshape(len(at), *held[one.place].shape[1:]))
    scores = rows.scored(at, *held)[0].reshape(len(predictors), count, rows.count)
    weights /= weights.sum(axis=1, keepdims=True)
    return Responses(weights=weights, scores=scores - np.einsum("nk,nkq->nq", weights, scores)[:, None])


def _at_points(rows: RowScores, place: int, at: Array, columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return shares of values, (n_rows, n_points, entries, n_values), and masses of points, (n_rows, n_points)."""
    one = rows.interface.responses[place]
    assert one.values is not None
    logs, log_weights = _logs_at_points(rows, place, at, columns, np.concatenate([one.below, one.values]))
    mass, masses = np.exp(logs[..., : len(one.below)]).sum(axis=-1), np.exp(log_weights)
    return one.weighted(logs[..., len(one.below) :], mass), masses / masses.sum(axis=1, keepdims=True)


def _logs_at_points(
    rows: RowScores, place: int, at: Array, columns: Sequence[Array], values: Array
) -> tuple[Array, Array]:
    """Return log-likelihoods of values, (n_rows, n_points, entries, n_values), and log weights, (n_rows, n_points)."""
    one, call = rows.interface.responses[place], rows.given[place]
    assert call is not None
    many, held = repeated(at, columns, len(values))
    held[one.place] = np.repeat(np.tile(values, len(at))[:, None], one.entries, axis=1)
    logs, log_weights = call(many, *held)
    logs = logs.reshape(len(at), len(values), -1, one.entries).transpose(0, 2, 3, 1)
    return logs, log_weights.reshape(len(at), len(values), -1)[:, 0]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_entries(logs, places, whole):  # type: ignore[no-untyped-def]
    """Add the log-likelihoods of the entries of patterns to the weights of points."""
    for row in range(len(logs)):
        for pattern in range(len(places)):
            for entry in range(places.shape[1]):
                for point in range(logs.shape[1]):
                    whole[row, pattern, point] += logs[row, point, entry, places[pattern, entry]]


def picked_entries(shares: Array, masses: Array, levels: Array) -> Array:
    """Return places of values, (n_rows, m, entries), at levels (n_rows, m, 1 + entries): of the point, of each entry.

    `shares` and `masses` are what `_at_points` returns.
    """
    found = np.zeros((*levels.shape[:2], shares.shape[2]), dtype=np.int64)
    _pick_entries(np.ascontiguousarray(shares), np.ascontiguousarray(masses), np.ascontiguousarray(levels), found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pick_entries(shares, masses, levels, found):  # type: ignore[no-untyped-def]
    n_points, n_entries, n_values = shares.shape[1:]
    many = levels.shape[1] > n_points
    sums, points = np.zeros((n_points, n_entries, n_values)), np.zeros(n_points)
    for row in range(levels.shape[0]):
        sum_up(masses[row], points)
        for point in range(n_points if many else 0):
            for entry in range(n_entries):
                sum_up(shares[row, point, entry], sums[point, entry])
        for k in range(levels.shape[1]):
            point = place_of(points, n_points - 1, levels[row, k, 0])
            for entry in range(n_entries):
                if not many:
                    sum_up(shares[row, point, entry], sums[point, entry])
                found[row, k, entry] = place_of(sums[point, entry], n_values - 1, levels[row, k, 1 + entry])


__all__ = ["expected_responses", "picked_entries"]
