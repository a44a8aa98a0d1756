"""The least noise and the least threshold of a budget, and which levels are kept."""

import pytest

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon
from pymc_dp.kernel.account import covers
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.labels import label_event
from pymc_dp.kernel.noise import tail
from pymc_dp.release.level_threshold import LevelThreshold, largest


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (3.0, 0.3), (20.0, 1e-3), (1.0, 5e-324), (1e-3, 0.4), (1e7, 1e-6)]
)
def test_a_level_of_one_row_is_released_with_probability_delta_at_most(neighbours, epsilon, delta):
    threshold = LevelThreshold.calibrated(dp.Budget(epsilon, delta), neighbours)
    assert tail(threshold.scale, threshold.least - 1) <= decimal(delta)
    assert threshold.least == 2 or tail(threshold.scale, threshold.least - 2) > decimal(delta)
    assert covers(threshold.event, label_event(threshold.scale, threshold.least, neighbours))
    assert total_epsilon(threshold.event, delta).epsilon <= epsilon


def test_the_largest_are_kept_by_their_noised_counts_alone():
    seen = {"b": 5, "a": 5, "c": 9, "d": 1}
    assert largest(seen, 2) == {"c": 9, "a": 5}
    assert largest(dict(reversed(seen.items())), 2) == {"c": 9, "a": 5}
