import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.annealing.price import path_of


def test_a_number_of_temperatures_makes_a_power_path_that_ends_at_one():
    path = path_of(20)
    np.testing.assert_allclose(path, (np.arange(1, 21) / 20) ** 4)
    assert path[-1] == 1 and path_of(1) == (1.0,) and path_of(2, power=1) == (0.5, 1.0)


def test_only_ratios_of_a_given_path_count():
    """ε_j and β_j are proportional, so that either says the same."""
    np.testing.assert_allclose(path_of([0.05, 0.1, 0.4]), path_of([1, 2, 8]))


@pytest.mark.parametrize(
    "wrong", [[0.2, 0.1], [0.0, 1.0], [-1.0, 1.0], [0.5, 0.5], [], [1.0, np.nan], 0, True, 1.5, "3"]
)
def test_paths_that_turn_back_or_are_none_are_refused(wrong):
    with pytest.raises(ArgumentError, match="temperatures"):
        path_of(wrong)


def test_power_must_be_positive_and_is_for_numbers_of_temperatures():
    with pytest.raises(ArgumentError, match="power must be > 0"):
        path_of(3, power=0)
    with pytest.raises(ArgumentError, match="Leave it out"):
        path_of([1, 2], power=2)
    with pytest.raises(ArgumentError, match="increase"):
        path_of(10, power=1e4)  # the first of them are 0 as floats
