import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import DiscreteLaplaceEvent
from pymc_dp.step_methods.annealing.particles import log_evidence, noised_weights

NOISE = DiscreteLaplaceEvent(scale=2.0**36, sensitivity=2**38)


def test_noise_on_weights_is_discrete_laplace_of_its_scale(seed):
    """Before the projection: the weight of one particle among two is a half plus half of a difference of noises."""
    with dp.testing.insecure_randomness(seed):
        found = np.array([noised_weights(np.zeros(2), NOISE)[0] for _ in range(4000)]) - 0.5
    # Of two Laplace variables of scale s, half of the difference has variance s^2.
    assert found.std() == pytest.approx(2.0**-4, rel=0.06)
    assert abs(found.mean()) < 5 * 2.0**-4 / np.sqrt(4000)


def test_the_log_evidence_is_that_of_the_mean_weight_in_whole_units():
    logs = np.log([1.0, 3.0]) - 5000
    with dp.testing.without_noise():
        found = log_evidence(logs, 7.0, NOISE, 2.0**-20)
    assert found == pytest.approx(np.log(2) - 4993, abs=2.0**-20)
    assert (found * 2.0**20).is_integer()


def test_the_log_evidence_moves_by_no_more_than_its_largest_weight(rng):
    with dp.testing.without_noise():
        for _ in range(100):
            logs, moves = rng.normal(0, 5, 6), rng.uniform(-1, 1, 6)
            pair = [log_evidence(item, 0.0, NOISE, 2.0**-30) for item in (logs, logs + moves)]
            assert abs(pair[0] - pair[1]) <= np.abs(moves).max() + 2.0**-29
