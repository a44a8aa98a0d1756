"""Compiled loops over the rows of persons: what they add up to, clipped about what the model expects."""

from __future__ import annotations

import numba
import numpy as np

from pymc_dp.gradients.clipping import TINY, UNLIMITED, at_least, factor

NEAR = 1e-5
"""How far the search for a centre moves in its last round at most, over C."""
SINGULAR = 1e-12
"""Share of a variance that is rounding where the others explain it."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_multiples(values, factors, found):  # type: ignore[no-untyped-def]
    """Add multiples of a row's values, one after the other: a product of matrices may round by how many rows it has."""
    for row in range(len(values)):
        for place in range(len(factors)):
            found[row] += values[row, place] * factors[place]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_up(  # type: ignore[no-untyped-def]
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
    weighing,
    own,
    factors,
    roots,
):
    """Write what persons add, one after the other: none of it is a function of two of them."""
    n_nodes, count, size = scores.shape[1], scores.shape[2], jacobian.shape[2]
    most = orders.shape[1]  # no more outcomes than there is room for in `factors`
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
            shift = np.int64(levels[row] * most) % most
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
        weight = clip_curvature / at_least(curved, clip_curvature)
        norm = 0.0
        for j in range(wide):
            seen[j] -= centre[j]
            norm += seen[j] * seen[j]
        part = (weight if weighing else 1.0) * clip_norm / at_least(np.sqrt(norm), clip_norm)
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
            return left / at_least(whole, TINY)
        moved = 0.0
        for j in range(wide):
            found = total[j] / at_least(mass, TINY)
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
        part = np.sqrt(most / at_least(np.sqrt(square), most))
        lower = np.zeros((wide, wide))
        factor(matrix, lower, SINGULAR)
        for column in range(wide):
            for row in range(column, wide):
                factors[column, used[row]] = part * lower[row, column]
        return
    for k in range(outcomes):
        root = np.sqrt(weight * chances[k] * kept[k] ** power)
        for j in range(wide):
            factors[k, used[j]] = root * sums[k, j]


__all__ = ["add_multiples", "add_up"]
