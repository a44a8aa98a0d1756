"""What a person with several rows adds to a gradient and to a curvature: one score, of all of that person's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numba
import numpy as np

from pymc_dp.gradients.clipping import TINY, UNLIMITED
from pymc_dp.gradients.row_parts import ROOM, Expected, RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.persons import Grouped

OUTCOMES = 512
"""Of all responses of a person together: all where there are at most so many, else as many that stand for them."""
ORDERS = 256
"""Rows of a person whose levels are of different coordinates of a net."""
FEW_ENTRIES = 2**21
"""Of the factors of some persons at a time."""
ROUNDS, NEAR = 60, 1e-5
"""Rounds of the search for the centre at most, and how far it moves in the last one at most, over C."""
SINGULAR = 1e-12
"""Share of a variance that is rounding where the others explain it."""
SPREAD = 1e3 * np.sqrt(2)
"""Rows with other covariates are taken at other levels."""


class Sums(NamedTuple):
    """What persons add, in the coordinates of some limits.

    Attributes
    ----------
    scores : (n_persons, d) array
        Of norm C at most.
    factors : (n_persons, k, d) array
        Curvatures are Σ v vᵀ over the k vectors of a person, of Frobenius norm C_F at most.
    roots : (n_persons, k, d) array
        The same of the variances of scores under the model.
    """

    scores: Array
    factors: Array
    roots: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonParts:
    """Scores and factors of rows that come person by person, as `RowParts` has them of rows: one of each person.

    Attributes
    ----------
    parts : RowParts

    Notes
    -----
    A person's score S is the sum of the scores of that person's rows, which are independent given the parameters, as
    the model says. It is clipped as a whole, to ψ = w c (S - a), c = min(1, C / ‖S - a‖), with a such that E ψ = 0
    given the covariates of all of the rows: responses do not always agree, so that C need not be as large as the norms
    of all rows together. Its slope is -w E c (S - a)(S - a)ᵀ, and w sees covariates only: it is min(1, C_F / size),
    with the size of the curvature without clipping times what clipping leaves of E ‖S‖².

    The expectation is over all outcomes of the responses where these are few. Elsewhere it is over a net of `OUTCOMES`
    points (Sobol', shifted by the covariates of each row), by which only what clipping takes away is estimated. The
    mean of clipped scores is then off by less than a hundredth of their deviation, either way.

    **Guarantee.** What a person gives is a function of that person's rows, the position and public constants; how long
    that takes depends on the rows. That it is within C and C_F is enforced by `integers` on whole numbers, as of
    a row.
    """

    parts: RowParts

    def scores(self, rows: Grouped, at: Array, limits: Limits) -> Array:
        """Return clipped scores of persons, (n_persons, d), in units of C: of a norm of at most 1."""
        found = added(list(self.parts.turned(rows.columns, at, limits)), rows.edges, limits)
        return found.scores * (ROOM / limits.clip_norm)

    def factors(self, rows: Grouped, at: Array, limits: Limits) -> Array:
        """Return factors of persons, (n_persons, k, d), in units of √C_F."""
        found = added(list(self.parts.turned(rows.columns, at, limits)), rows.edges, limits, curved=True)
        return found.factors * (ROOM / np.sqrt(limits.clip_curvature))

    def few(self, rows: int) -> int:
        """Return how many rows to take at a time, of so many: factors of a person may have d² entries."""
        size = self.parts.rows.interface.size
        return max(1, min(rows, FEW_ENTRIES // (size * min(size, OUTCOMES))))


def added(blocks: Sequence[Expected], edges: Array, limits: Limits, *, curved: bool = False) -> Sums:
    """Return what persons add, of blocks of their rows in the coordinates of some limits.

    Parameters
    ----------
    blocks : sequence of Expected
        Of rows one after the other.
    edges : (n_persons + 1,) array
        Rows from one of them to the next are of one person.
    limits : Limits
    curved : bool
        Whether curvatures and variances are asked for; else there are none.
    """
    parts = map(np.concatenate, zip(*map(_of_rows, blocks), strict=True))
    weights, scores, jacobian, observed, levels = _complete(*parts)
    order = np.lexsort((levels, np.repeat(np.arange(len(edges) - 1), np.diff(edges))))
    count, size = len(edges) - 1, jacobian.shape[2]
    width = min(size, OUTCOMES)
    own = np.zeros((count, size))
    factors, roots = (np.zeros((count if curved else 0, width, size)) for _ in range(2))
    given = (np.ascontiguousarray(one, dtype=np.float64) for one in (weights, scores, jacobian, observed))
    ends = float(limits.clip_norm), float(limits.clip_curvature), ROUNDS if limits.clip_norm < UNLIMITED else 1
    _add_up(*given, levels, order, np.ascontiguousarray(edges, dtype=np.int64), _net(), *ends, own, factors, roots)
    return Sums(scores=own, factors=factors, roots=roots)


def _of_rows(block: Expected) -> tuple[Array, Array, Array, Array]:
    weights, scores = block.responses.weights, block.responses.scores
    return block.of_rows(weights), block.of_rows(scores), block.of_rows(block.jacobian), block.observed


def _complete(weights: Array, *others: Array) -> tuple[Array, ...]:
    """Return all of it, and levels of rows; zeros for a row that holds something that is no number: it adds nothing."""
    missing = np.zeros(len(weights), dtype=bool)
    for one in (weights, *others):
        missing |= ~np.isfinite(one).reshape(len(one), -1).all(axis=1)
    kept = [np.where(missing.reshape(-1, *[1] * (one.ndim - 1)), 0.0, one) for one in others]
    levels = np.where(missing, LAST, _levels(kept[1]))
    return np.where(missing[:, None], 1.0, weights), *kept, levels


LAST = 2.0
"""Level of rows that add nothing: after all others of a person."""


def _levels(jacobian: Array) -> Array:
    """Return a level between 0 and 1 of each row, which depends on its covariates alone."""
    found = np.zeros(len(jacobian))
    flat = np.ascontiguousarray(jacobian.reshape(len(jacobian), int(np.prod(jacobian.shape[1:]))))
    _add_multiples(flat, np.sqrt(np.arange(2.0, 2.0 + flat.shape[1])) * SPREAD, found)
    return np.asarray(found - np.floor(found))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_multiples(values, factors, found):  # type: ignore[no-untyped-def]
    """Add multiples of a row's values, one after the other: a product of matrices may round by how many rows it has."""
    for row in range(len(values)):
        for place in range(len(factors)):
            found[row] += values[row, place] * factors[place]


@cache
def _net() -> Array:
    """Return whole numbers below `OUTCOMES`, (ORDERS, OUTCOMES): in each row every one of them once. Public."""
    from scipy.stats.qmc import Sobol

    points = Sobol(ORDERS, rng=np.random.default_rng(7)).random_base2(OUTCOMES.bit_length() - 1)
    return np.ascontiguousarray((points.T * OUTCOMES).astype(np.int64))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_up(  # type: ignore[no-untyped-def]
    weights,
    scores,
    jacobian,
    observed,
    levels,
    order,
    edges,
    orders,
    clip_norm,
    clip_curvature,
    rounds,
    own,
    factors,
    roots,
):
    """Write what persons add, one after the other: none of it is a function of two of them."""
    n_nodes, count, size = scores.shape[1], scores.shape[2], jacobian.shape[2]
    most = max(orders.shape[1], n_nodes)
    sums, chances, kept = np.zeros((most, size)), np.zeros(most), np.zeros(most)
    values, mean, seen = np.zeros((n_nodes, size)), np.zeros(size), np.zeros(size)
    centre, total, used = np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64)
    picked = np.zeros(orders.shape[1], dtype=np.int64)
    for person in range(len(edges) - 1):
        rows = order[edges[person] : edges[person + 1]]
        wide, outcomes, whole = 0, 1, True
        for place in range(size):
            met = False
            for row in rows:
                for i in range(count):
                    met |= jacobian[row, i, place] != 0.0
            if met:
                used[wide] = place
                wide += 1
        for _ in rows:
            whole = whole and outcomes * n_nodes <= most
            outcomes = outcomes * n_nodes if whole else orders.shape[1]
        for k in range(outcomes):
            chances[k] = 1.0 if whole else 1.0 / outcomes
            for j in range(wide):
                sums[k, j] = 0.0
        for j in range(wide):
            mean[j] = seen[j] = 0.0
        repeats = 1
        for turn in range(len(rows)):
            row, mass = rows[turn], 0.0
            shift = np.int64(levels[row] * OUTCOMES) % OUTCOMES
            for node in range(n_nodes):
                mass += weights[row, node]
                for j in range(wide):
                    value = 0.0
                    for i in range(count):
                        value += scores[row, node, i] * jacobian[row, i, used[j]]
                    values[node, j] = value
            for j in range(wide):
                value = 0.0
                for node in range(n_nodes):
                    value += weights[row, node] * values[node, j]
                mean[j] += value / mass
                for i in range(count):
                    seen[j] += observed[row, i] * jacobian[row, i, used[j]]
            if not whole:
                node, below = 0, weights[row, 0]
                for level in range(outcomes):
                    while node < n_nodes - 1 and below < (level + 0.5) / outcomes * mass:
                        node += 1
                        below += weights[row, node]
                    picked[level] = node
            for k in range(outcomes):
                if whole:
                    node = k // repeats % n_nodes
                    chances[k] *= weights[row, node] / mass
                else:
                    node = picked[orders[turn % orders.shape[0], k] ^ shift]
                for j in range(wide):
                    sums[k, j] += values[node, j]
            repeats = repeats * n_nodes if whole else 1
        left = _find_centre(sums, chances, mean, outcomes, wide, clip_norm, rounds, centre, total, kept)
        curved = left * _size(weights, scores, jacobian, rows, used, wide)
        weight = clip_curvature / _at_least(curved, clip_curvature)
        norm = 0.0
        for j in range(wide):
            seen[j] -= centre[j]
            norm += seen[j] * seen[j]
        part = weight * clip_norm / _at_least(np.sqrt(norm), clip_norm)
        for j in range(wide):
            own[person, used[j]] = part * seen[j]
        if len(factors):
            for k in range(outcomes):
                for j in range(wide):
                    sums[k, j] -= centre[j]
            _write(sums, chances, kept, outcomes, used, wide, 1, weight, clip_curvature, factors[person])
            _write(sums, chances, kept, outcomes, used, wide, 2, weight * weight, UNLIMITED, roots[person])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _find_centre(  # type: ignore[no-untyped-def]
    sums, chances, mean, outcomes, wide, clip_norm, rounds, centre, total, kept
):
    """Write about what sums are centred once they are clipped, and what is left of each; return that of squares."""
    whole = 1.0
    for j in range(wide):
        centre[j] = mean[j]
    for turn in range(rounds + 1):
        mass, squares, left, all_kept = 0.0, 0.0, 0.0, True
        for j in range(wide):
            total[j] = mean[j]
        for k in range(outcomes):
            norm = 0.0
            for j in range(wide):
                norm += (sums[k, j] - centre[j]) ** 2
            squares += chances[k] * norm
            if norm <= clip_norm**2:
                kept[k] = 1.0
                mass += chances[k]
                left += chances[k] * norm
                continue
            kept[k], all_kept = clip_norm / np.sqrt(norm), False
            mass += chances[k] * kept[k]
            left += chances[k] * kept[k] * norm
            lost = chances[k] * (kept[k] - 1.0)
            for j in range(wide):
                total[j] += lost * sums[k, j]
        if turn == 0:
            whole = squares
        if all_kept or turn == rounds:
            return left / _at_least(whole, TINY)
        moved = 0.0
        for j in range(wide):
            found = total[j] / _at_least(mass, TINY)
            moved += (found - centre[j]) ** 2
            centre[j] = found
        if moved < (NEAR * clip_norm) ** 2:  # one more turn, for what clipping leaves there
            rounds = min(rounds, turn + 1)
    return 1.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _size(weights, scores, jacobian, rows, used, wide):  # type: ignore[no-untyped-def]
    """Return the Frobenius norm of a person's curvature without clipping."""
    count = scores.shape[2]
    found, second, first = np.zeros((wide, wide)), np.zeros((count, count)), np.zeros(count)
    for row in rows:
        mass = 0.0
        first[:] = 0.0
        second[:] = 0.0
        for node in range(scores.shape[1]):
            share = weights[row, node]
            mass += share
            for i in range(count):
                first[i] += share * scores[row, node, i]
                for j in range(count):
                    second[i, j] += share * scores[row, node, i] * scores[row, node, j]
        for i in range(count):
            for j in range(count):
                value = second[i, j] / mass - first[i] / mass * first[j] / mass
                if value == 0.0:
                    continue
                for a in range(wide):
                    one = value * jacobian[row, i, used[a]]
                    if one == 0.0:
                        continue
                    for b in range(wide):
                        found[a, b] += one * jacobian[row, j, used[b]]
    square = 0.0
    for a in range(wide):
        for b in range(wide):
            square += found[a, b] * found[a, b]
    return np.sqrt(square)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _write(sums, chances, kept, outcomes, used, wide, power, weight, most, factors):  # type: ignore[no-untyped-def]
    """Write vectors whose outer products add up to a mean of those of sums: a triangle, or one for each outcome."""
    if wide <= len(factors):
        matrix = np.zeros((wide, wide))
        for k in range(outcomes):
            share = weight * chances[k] * kept[k] ** power
            for a in range(wide):
                for b in range(a + 1):
                    matrix[a, b] += share * sums[k, a] * sums[k, b]
        square = 0.0
        for a in range(wide):
            for b in range(a + 1):
                square += matrix[a, b] ** 2 * (1.0 if a == b else 2.0)
        part = np.sqrt(most / _at_least(np.sqrt(square), most))
        for column in range(wide):
            for row in range(column, wide):
                rest = matrix[row, column]
                for k in range(column):
                    rest -= factors[k, used[row]] * factors[k, used[column]]
                if row == column:
                    root = np.sqrt(rest) if rest > SINGULAR * matrix[row, row] else 0.0
                    factors[column, used[row]] = root
                elif root > 0.0:
                    factors[column, used[row]] = rest / root
        for column in range(wide):
            for row in range(column, wide):
                factors[column, used[row]] *= part
        return
    for k in range(outcomes):
        root = np.sqrt(weight * chances[k] * kept[k] ** power)
        for j in range(wide):
            factors[k, used[j]] = root * sums[k, j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_least(value, least):  # type: ignore[no-untyped-def]
    """Larger of two numbers; NaN stays NaN."""
    return least if value < least else value


__all__ = ["PersonParts", "Sums", "added"]
