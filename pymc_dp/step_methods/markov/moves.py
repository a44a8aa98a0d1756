"""First states and moves of chains, counted."""

from __future__ import annotations

import numpy as np

from pymc_dp.inspection.hidden_markov import Chain
from pymc_dp.inspection.rows import Array


def tallies(chain: Chain, states: Array) -> tuple[Array, Array]:
    """Count first states, (n_states,), and moves from each state to each, (n_states, n_states)."""
    table = states.reshape(chain.n_chains, chain.n_steps)
    pairs = table[:, :-1] * chain.n_states + table[:, 1:]
    firsts = np.bincount(table[:, 0], minlength=chain.n_states)
    moves = np.bincount(pairs.ravel(), minlength=chain.n_states**2)
    return firsts.astype(float), moves.reshape(chain.n_states, chain.n_states).astype(float)


__all__ = ["tallies"]
