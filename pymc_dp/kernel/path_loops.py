"""Compiled draws of Markov states by forward filtering and backward sampling; imported at first use."""

from __future__ import annotations

import numba
import numpy as np

from pymc_dp.kernel.limits import FLAGS


@numba.njit(**FLAGS)
def choose_weighted(rng, weights):  # type: ignore[no-untyped-def]
    """Index drawn with probability proportional to its weight."""
    left = rng.random() * weights.sum()
    for k in range(weights.size - 1):
        left -= weights[k]
        if left < 0.0:
            return k
    k = weights.size - 1
    while k > 0 and weights[k] == 0.0:  # the sum was rounded up
        k -= 1
    return k


@numba.njit(**FLAGS)
def choose_log(rng, scores, weights):  # type: ignore[no-untyped-def]
    """Index drawn with probability proportional to the exponential of its score; `weights` is written."""
    top = scores.max()
    for k in range(scores.size):
        weights[k] = np.exp(scores[k] - top)
    return choose_weighted(rng, weights)


@numba.njit(**FLAGS)
def _log_sum(scores):  # type: ignore[no-untyped-def]
    """Logarithm of the sum of exponentials; minus infinity where all are 0."""
    top, total = scores.max(), 0.0
    if top == -np.inf:
        return top
    for k in range(scores.size):
        total += np.exp(scores[k] - top)
    return top + np.log(total)


@numba.njit(**FLAGS)
def sample_paths(rng, start, transition, evidence, states):  # type: ignore[no-untyped-def]
    """Draw the states of every chain jointly given start, moves and the log-likelihood of each step in each state.

    Forward filtering, backward sampling, in logarithms: a state that looks impossible at one step may be the only one
    that later steps allow, so its probability must not underflow to 0.

    Parameters
    ----------
    start : (n_states,) array
    transition : (n_states, n_states) array
    evidence : (n_chains, n_steps, n_states) array
    states : (n_chains, n_steps) int64 array
        Written.
    """
    n_chains, n_steps, n_states = evidence.shape
    log_start, log_moves = np.log(start), np.log(transition)
    alpha, weights, spare = np.empty((n_steps, n_states)), np.empty(n_states), np.empty(n_states)
    for r in range(n_chains):
        for t in range(n_steps):
            for k in range(n_states):
                if t == 0:
                    arriving = log_start[k]
                else:
                    for j in range(n_states):
                        weights[j] = alpha[t - 1, j] + log_moves[j, k]
                    arriving = _log_sum(weights)
                alpha[t, k] = arriving + evidence[r, t, k]
            alpha[t] -= alpha[t].max()
        states[r, n_steps - 1] = choose_log(rng, alpha[n_steps - 1], spare)
        for t in range(n_steps - 2, -1, -1):
            for k in range(n_states):
                weights[k] = alpha[t, k] + log_moves[k, states[r, t + 1]]
            states[r, t] = choose_log(rng, weights, spare)


__all__ = ["choose_log", "choose_weighted", "sample_paths"]
