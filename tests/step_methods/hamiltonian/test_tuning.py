"""The step size follows accept bits, then stays."""

import numpy as np
import pytest

from pymc_dp.step_methods.hamiltonian.settings import WIDEST, StepSize, target_acceptance


@pytest.mark.parametrize("first", [0.01, 1.0, 30.0])
def test_a_size_is_found_at_which_the_target_is_accepted(first, rng):
    """Sizes are accepted with probability 1 / (1 + size): 0.5 at a size of 1."""
    size = StepSize(first, tune=400, target=0.5)
    for _ in range(400):
        size.learn(rng.random() < 1 / (1 + size.value))
    assert 0.5 < size.value < 2


def test_nothing_is_learnt_after_tuning():
    size = StepSize(0.3, tune=2, target=0.5)
    for accepted in (True, False):
        size.learn(accepted)
    fixed = size.value
    for _ in range(10):
        size.learn(True)
    assert size.value == fixed
    never = StepSize(0.3, tune=0, target=0.5)
    never.learn(True)
    assert never.value == 0.3


def test_it_stays_near_where_it_began_and_can_be_taken_up_again():
    size = StepSize(0.3, tune=1000, target=0.5)
    for _ in range(500):
        size.learn(False)
    assert size.value == pytest.approx(0.3 / WIDEST)
    other = StepSize(7.0, tune=3, target=0.1)
    other.restore(size.state())
    for bit in np.arange(500) % 2:
        size.learn(bool(bit))
        other.learn(bool(bit))
    assert other.value == size.value


def test_targets_are_shares():
    assert 0.3 < target_acceptance(100) < target_acceptance(1) == 0.5
