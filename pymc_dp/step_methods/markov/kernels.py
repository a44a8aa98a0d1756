"""Compiled loops over the states and the counts of a hidden Markov model; imported at first use.

States are numbered along chains: place p is step ``p % n_steps`` of chain ``p // n_steps``. An item is one field in one
cell; its counts are those of the levels of the field. Sizes of items may be fixed, or free with a bound.
"""

from __future__ import annotations

from math import lgamma, log1p

import numpy as np

from pymc_dp.kernel.path_loops import choose_log, choose_weighted
from pymc_dp.transforms.count_kernels import log_noise
from pymc_dp.transforms.jit import kernel

# --- noise ------------------------------------------------------------------------------------------------------------


@kernel
def _gain(proposed, held, n_levels, released, scales, gaussian):  # type: ignore[no-untyped-def]
    """Log ratio of the noise's probabilities, of other counts of an item over those held."""
    gain = 0.0
    for j in range(n_levels):
        gain += log_noise(released[j] - proposed[j], gaussian, scales[j])
        gain -= log_noise(released[j] - held[j], gaussian, scales[j])
    return gain


# --- states, one by one, with the probabilities of moves summed out ---------------------------------------------------


@kernel
def _count_in(p, step, states, n_steps, moves, firsts, totals):  # type: ignore[no-untyped-def]
    """Add the moves into and out of one state to the counts of moves, or take them out."""
    t, state = p % n_steps, states[p]
    if t == 0:
        firsts[state] += step
    else:
        moves[states[p - 1], state] += step
        totals[states[p - 1]] += step
    if t + 1 < n_steps:
        moves[state, states[p + 1]] += step
        totals[state] += step


@kernel
def _given_others(p, states, n_steps, moves, firsts, totals, alpha, alpha_start, summed, out):  # type: ignore[no-untyped-def]
    """Probability of each value of one state given the other states, up to a factor; its own moves are not counted.

    With start and moves summed out, they are products of ratios of counts and sums; the move out of the state meets one
    more move in its row if the state before has that value too [Foulds et al. 2016, equation 48].
    """
    t, following = p % n_steps, p % n_steps + 1 < n_steps
    for k in range(out.size):
        same = 0.0
        if t == 0:
            out[k] = alpha_start[k] + firsts[k] * summed[0]
        else:
            before = states[p - 1]
            out[k] = alpha[before, k] + moves[before, k] * summed[1]
            same = summed[1] * (before == k)
        if following:
            after = states[p + 1]
            into = alpha[k, after] + moves[k, after] * summed[1] + same * (k == after)
            out[k] *= into / (totals[k] + same) if summed[1] else into


@kernel
def _evidence(p, first, order, field, counts, log_profiles, levels, scores):  # type: ignore[no-untyped-def]
    """Add the log-likelihood of the counts of a place in each state."""
    for place in range(first[p], first[p + 1]):
        i = order[place]
        f = field[i]
        for j in range(levels[f]):
            if counts[i, j] != 0:
                for k in range(scores.size):
                    scores[k] += counts[i, j] * log_profiles[f, k, j]


@kernel
def update_states(  # type: ignore[no-untyped-def]
    rng,
    states,
    n_steps,
    moves,
    firsts,
    totals,
    alpha,
    alpha_start,
    summed,
    first,
    order,
    field,
    levels,
    counts,
    profiles,
    log_profiles,
    released,
    scales,
    gaussian,
    noised,
):
    """Update every state once given the counts, and once more together with the counts of its cells.

    The second is a Metropolis move: state from its conditional given the other states, counts from the likelihood,
    accepted with the ratio of the noise's probabilities.
    """
    n_states = alpha.shape[0]
    weights, scores, spare = np.empty(n_states), np.empty(n_states), np.empty(n_states)
    most = 1
    for p in range(states.size):
        most = max(most, first[p + 1] - first[p])
    proposed = np.empty((most, counts.shape[1]))
    for p in range(states.size):
        _count_in(p, -1.0, states, n_steps, moves, firsts, totals)
        _given_others(p, states, n_steps, moves, firsts, totals, alpha, alpha_start, summed, weights)
        for k in range(n_states):
            scores[k] = np.log(weights[k])
        _evidence(p, first, order, field, counts, log_profiles, levels, scores)
        states[p] = choose_log(rng, scores, spare)
        if noised:
            state, gain = choose_weighted(rng, weights), 0.0
            for place in range(first[p], first[p + 1]):
                i = order[place]
                f, row = field[i], place - first[p]
                _multinomial(rng, counts[i].sum(), profiles[f, state], levels[f], proposed[row])
                gain += _gain(proposed[row], counts[i], levels[f], released[i], scales[f], gaussian)
            if gain > -rng.standard_exponential():
                states[p] = state
                for place in range(first[p], first[p + 1]):
                    counts[order[place]] = proposed[place - first[p]]
        _count_in(p, 1.0, states, n_steps, moves, firsts, totals)


# --- counts behind noised ones ----------------------------------------------------------------------------------------


@kernel
def _multinomial(rng, n, shares, n_levels, out):  # type: ignore[no-untyped-def]
    left, rest = n, 1.0
    out[:] = 0.0
    for j in range(n_levels - 1):
        share = min(shares[j] / rest, 1.0) if rest > 0.0 else 1.0
        out[j] = rng.binomial(int(left), share) if left > 0.0 else 0.0
        left -= out[j]
        rest -= shares[j]
    out[n_levels - 1] = left


@kernel
def _log_size(n, rate):  # type: ignore[no-untyped-def]
    """Log prior of a private size, see `transforms.cell_sizes.Sizes`."""
    return -2.0 * log1p(rate * n)


@kernel
def _added(i, f, j, m, counts, released, scales, gaussian, log_share):  # type: ignore[no-untyped-def]
    """Log ratio of what depends on one count alone, after over before m is added to it."""
    c = counts[i, j]
    found = lgamma(c + 1.0) - lgamma(c + m + 1.0) + m * log_share
    found += log_noise(released[i, j] - c - m, gaussian, scales[f, j])
    return found - log_noise(released[i, j] - c, gaussian, scales[f, j])


@kernel
def update_counts(  # type: ignore[no-untyped-def]
    rng,
    states,
    place,
    field,
    levels,
    counts,
    profiles,
    log_profiles,
    released,
    scales,
    gaussian,
    bounds,
    rates,
    octaves,
    tries,
):
    """Metropolis moves of the counts of each item given its state and the noised counts.

    All levels anew from the likelihood; some rows from one level to another; and, where sizes are private, rows that
    come or go: `rates` are those of their priors, NaN of public sizes. Steps are uniform up to a random power of 2: as
    probable as the way back.
    """
    proposed = np.empty(counts.shape[1])
    for i in range(field.size):
        f, k = field[i], states[place[i]]
        _multinomial(rng, counts[i].sum(), profiles[f, k], levels[f], proposed)
        gain = _gain(proposed, counts[i], levels[f], released[i], scales[f], gaussian)
        if gain > -rng.standard_exponential():
            counts[i] = proposed
        for _ in range(tries * levels[f]):
            a = rng.integers(0, levels[f])
            m = float(rng.integers(1, 2 ** rng.integers(0, octaves[f] + 1) + 1))
            if rates[f] == rates[f] and rng.random() < 0.5:
                m = m if rng.random() < 0.5 else -m
                n = counts[i].sum()
                if counts[i, a] + m < 0.0 or n + m > bounds[i]:
                    continue
                gain = lgamma(n + m + 1.0) - lgamma(n + 1.0)
                gain += _log_size(n + m, rates[f]) - _log_size(n, rates[f])
                gain += _added(i, f, a, m, counts, released, scales, gaussian, log_profiles[f, k, a])
                if gain > -rng.standard_exponential():
                    counts[i, a] += m
                continue
            b = (a + 1 + rng.integers(0, levels[f] - 1)) % levels[f] if levels[f] > 1 else a
            if a == b or counts[i, a] < m:
                continue
            gain = _added(i, f, a, -m, counts, released, scales, gaussian, log_profiles[f, k, a])
            gain += _added(i, f, b, m, counts, released, scales, gaussian, log_profiles[f, k, b])
            if gain > -rng.standard_exponential():
                counts[i, a] -= m
                counts[i, b] += m


@kernel
def gather(states, place, field, levels, counts, totals):  # type: ignore[no-untyped-def]
    """Add up counts by field and state: into (n_fields, n_states, n_levels) zeros."""
    for i in range(field.size):
        for j in range(levels[field[i]]):
            totals[field[i], states[place[i]], j] += counts[i, j]
