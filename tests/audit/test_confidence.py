import numpy as np
import pytest
from scipy.stats import binom

from pymc_dp.audit.confidence import clopper_pearson, epsilon_bound


@pytest.mark.parametrize("runs", [1, 7, 40])
@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_each_bound_fails_at_most_as_often_as_it_says(runs, alpha):
    counts = np.arange(runs + 1)
    low, high = clopper_pearson(counts, runs, alpha)
    for p in np.linspace(0, 1, 201):
        chance = binom.pmf(counts, runs, p)
        assert chance[low > p + 1e-12].sum() <= alpha + 1e-12
        assert chance[high < p - 1e-12].sum() <= alpha + 1e-12


def test_bounds_touch_the_ends():
    low, high = clopper_pearson([0, 10], 10, 0.05)
    assert low[0] == 0 and high[1] == 1
    assert 0 < high[0] < low[1] < 1


def test_epsilon_bound_subtracts_delta_and_is_never_negative():
    assert epsilon_bound(0.5, 0.25, 0.25) == 0
    assert epsilon_bound(0.5, 0.125, 0.25) == pytest.approx(np.log(2))
    assert epsilon_bound(0.1, 0.4, 0.0) == 0
    assert epsilon_bound(0.1, 0.4, 0.2) == 0
