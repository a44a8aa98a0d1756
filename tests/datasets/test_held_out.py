"""Held-out cells are predicted by every state they may have, given their neighbours in time."""

import numpy as np
import pytest

import pymc_dp as dp


@pytest.fixture
def draws(rng):
    n_draws, n_states = 5, 3
    return {
        "states": rng.integers(n_states, size=(n_draws, 2, 4)),
        "start": rng.dirichlet(np.ones(n_states), size=n_draws),
        "transition": rng.dirichlet(np.ones(n_states), size=(n_draws, n_states)),
        "profiles": {"a": rng.dirichlet(np.ones(2), (n_draws, 3)), "b": rng.dirichlet(np.ones(4), (n_draws, 3))},
    }


COUNTS = {"a": np.array([[3, 1], [0, 2], [5, 5]]), "b": np.array([[1, 0, 2, 0], [0, 0, 0, 3], [2, 2, 1, 0]])}
CELLS = np.array([[0, 0], [1, 2], [1, 3]])


def by_hand(draws, chain, step, place):
    total = 0.0
    for d, states in enumerate(draws["states"]):
        moves, weights = draws["transition"][d], []
        for k in range(3):
            weight = draws["start"][d, k] if step == 0 else moves[states[chain, step - 1], k]
            weights.append(weight * (moves[k, states[chain, step + 1]] if step < 3 else 1.0))
        for k in range(3):
            value = weights[k] / sum(weights)
            for name, seen in COUNTS.items():
                value *= np.prod(draws["profiles"][name][d, k] ** seen[place])
            total += value / len(draws["states"])
    return np.log(total)


def test_each_cell_is_a_mean_over_draws_of_a_sum_over_states(draws):
    states = draws["states"]
    rest = {name: draws[name] for name in ("start", "transition", "profiles")}
    found = dp.datasets.held_out_log_likelihood(states, CELLS, COUNTS, **rest)
    np.testing.assert_allclose(found, [by_hand(draws, *cell, place) for place, cell in enumerate(CELLS)])
