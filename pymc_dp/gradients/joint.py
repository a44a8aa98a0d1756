"""Values of several responses of a row together: all of them, or some that are spread evenly."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

from pymc_dp.inspection.rows import Array

TAKEN = 256
"""Values of all responses together that are taken where there are more."""
OWN = 64
"""Such values where rows differ, so that each takes values of its own, and errors cancel over rows."""
MANY = 4096
"""Such values of continuous entries that depend on each other, where they are the same ones for all rows."""
SPREAD = 1e3
"""How far two rows' values are shifted against each other, per unit of the difference between these rows."""


def count_of(counts: Sequence[int]) -> int:
    """Return how many values `joined` gives, given how many each response has."""
    return min(math.prod(counts), TAKEN)


def joined(weights: Sequence[Array], scores: Sequence[Array], apart: Array) -> tuple[Array, Array]:
    """Return weights (n_rows, n_nodes) and scores (n_rows, n_nodes, q) of responses together.

    Parameters
    ----------
    weights : sequence of (n_rows, n_values) arrays
        Of the values of each response, in order; they add up to 1.
    scores : sequence of (n_rows, n_values, q) arrays
        What each adds to the score of the row.
    apart : (n_rows, n) array
        Numbers in which rows differ. They shift the values of rows against each other, so that errors cancel over rows.

    Notes
    -----
    Given the predictors responses are independent. Where not all values are gone through, those taken are quantiles at
    the points of a lattice, folded, which has equally many in every interval of each response. Scores are moved such
    that their mean is that of all values: without clipping the centre is exact, and with it off by what the lattice is
    off in what is clipped. Nothing is drawn.

    References
    ----------
    Dick, Kuo, Sloan (2013), doi 10.1017/S0962492913000044 (lattice rules).
    """
    counts = [one.shape[1] for one in weights]
    if math.prod(counts) <= TAKEN:
        return _all(weights, scores)
    total = np.zeros((len(apart), TAKEN, scores[0].shape[2]))
    mean = np.zeros((len(apart), scores[0].shape[2]))
    for place, (weight, score) in enumerate(zip(weights, scores, strict=True)):
        own = _shift(apart, place)
        _take(np.ascontiguousarray(weight), np.ascontiguousarray(score), _lattice(place), own, total)
        mean += np.einsum("nb,nbq->nq", weight, score)
    total += (mean - total.mean(axis=1))[:, None]
    return np.full(total.shape[:2], 1 / TAKEN), total


def _all(weights: Sequence[Array], scores: Sequence[Array]) -> tuple[Array, Array]:
    weight, score = weights[0], scores[0]
    for more, own in zip(weights[1:], scores[1:], strict=True):
        n_rows, q = len(weight), score.shape[2]
        weight = (weight[:, :, None] * more[:, None]).reshape(n_rows, -1)
        score = (score[:, :, None] + own[:, None]).reshape(n_rows, -1, q)
    return weight, score


def levels_at(apart: Array, coordinates: int, count: int = TAKEN) -> Array:
    """Return the points that are taken, (n_rows, count, coordinates): levels between 0 and 1.

    `MANY` are those of Sobol', the same ones for all rows, moved to the middles of the intervals of which each
    coordinate has a point in every one; fewer are those of a lattice, which is shifted for each row.
    """
    if count == MANY:
        from scipy.stats.qmc import Sobol

        points = Sobol(coordinates, scramble=False).random_base2(MANY.bit_length() - 1) + 0.5 / MANY
        return np.broadcast_to(points, (len(apart), *points.shape))
    shifted = [_lattice(place, count) + _shift(apart, place)[:, None] for place in range(coordinates)]
    return np.stack([1 - np.abs(2 * (one - np.floor(one)) - 1) for one in shifted], axis=-1)


def _shift(apart: Array, place: int) -> Array:
    return _fraction(apart.sum(axis=1) * SPREAD * np.sqrt(2 + place))


def _fraction(values: Array) -> Array:
    found = values - np.floor(values)
    return np.where(np.isfinite(found), found, 0.5)


def _lattice(place: int, count: int = TAKEN) -> Array:
    """Return one coordinate of a lattice (Korobov): every residue of the count, a power of two, once."""
    return np.asarray(np.arange(count) * pow(GENERATOR, place, count) % count / count)


GENERATOR = 75
"""Odd, so that all of its powers are units modulo powers of two."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def sum_up(weights, sums):  # type: ignore[no-untyped-def]
    """Write the sums of weights up to each, without the last one."""
    before = 0.0
    for value in range(len(weights) - 1):
        before += weights[value]
        sums[value] = before


@numba.njit(cache=True, nogil=True, error_model="numpy")
def place_of(sums, count, level):  # type: ignore[no-untyped-def]
    """Return how many of the first sums, which never fall, are up to a level. Steps are as many whatever they hold."""
    place = 0
    while count > 1:
        half = count // 2
        place += half if level >= sums[place + half - 1] else 0
        count -= half
    if count == 1:
        place += 1 if level >= sums[place] else 0
    return place


def picked(weights: Array, levels: Array) -> Array:
    """Return the places of the values that hold some levels: (n_rows, n_values) and (n_rows, m) to (n_rows, m)."""
    found = np.zeros(levels.shape, dtype=np.int64)
    _pick(np.ascontiguousarray(weights), np.ascontiguousarray(levels), found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _take(weights, scores, lattice, shift, total):  # type: ignore[no-untyped-def]
    """Add the scores of the values whose probabilities up to them hold the points of a shifted, folded lattice."""
    n_rows, n_values, count = scores.shape
    sums = np.zeros(n_values)
    for row in range(n_rows):
        sum_up(weights[row], sums)
        for node in range(len(lattice)):
            level = lattice[node] + shift[row]
            level -= np.floor(level)
            level = 1 - abs(2 * level - 1)
            chosen = place_of(sums, n_values - 1, level)
            for i in range(count):
                total[row, node, i] += scores[row, chosen, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pick(weights, levels, found):  # type: ignore[no-untyped-def]
    n_values = weights.shape[1]
    sums = np.zeros(n_values)
    for row in range(levels.shape[0]):
        sum_up(weights[row], sums)
        for k in range(levels.shape[1]):
            found[row, k] = place_of(sums, n_values - 1, levels[row, k])


__all__ = [
    "MANY",
    "OWN",
    "TAKEN",
    "count_of",
    "joined",
    "levels_at",
    "picked",
    "place_of",
    "sum_up",
]
