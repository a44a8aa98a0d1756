"""Compiled draws of Markov states by forward filtering and backward sampling; imported at first use."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


def jit(**options: Any) -> Any:
    """Compile with the arithmetic of IEEE."""
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False, **options)


@jit()
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


@jit()
def sample_paths(rng, start, transition, evidence, states):  # type: ignore[no-untyped-def]
    """Draw the states of every chain jointly given start, moves and the log-likelihood of each step in each state.

    Forward filtering, backward sampling, in arithmetic that is scaled at every step.

    Parameters
    ----------
    start : (n_states,) array
    transition : (n_states, n_states) array
    evidence : (n_chains, n_steps, n_states) array
    states : (n_chains, n_steps) int64 array
        Written.
    """
    n_chains, n_steps, n_states = evidence.shape
    alpha, weights = np.empty((n_steps, n_states)), np.empty(n_states)
    for r in range(n_chains):
        for t in range(n_steps):
            top = -np.inf
            for k in range(n_states):
                arriving = start[k] if t == 0 else 0.0
                if t > 0:
                    for j in range(n_states):
                        arriving += alpha[t - 1, j] * transition[j, k]
                weights[k] = np.log(arriving) + evidence[r, t, k]
                top = max(top, weights[k])
            for k in range(n_states):
                alpha[t, k] = np.exp(weights[k] - top)
            alpha[t] /= alpha[t].sum()
        states[r, n_steps - 1] = choose_weighted(rng, alpha[n_steps - 1])
        for t in range(n_steps - 2, -1, -1):
            for k in range(n_states):
                weights[k] = alpha[t, k] * transition[k, states[r, t + 1]]
            states[r, t] = choose_weighted(rng, weights)


__all__ = ["choose_weighted", "jit", "sample_paths"]
