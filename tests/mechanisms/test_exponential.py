"""The choice has the probabilities of the exponential mechanism, whatever the size of the weights."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.errors import ArgumentError
from pymc_dp.mechanisms.exponential import choose


@pytest.mark.parametrize("shift", [0.0, -1e5, 1e5, 700.0])
def test_choices_are_proportional_to_weights(rng, shift):
    weights = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    found = choose(rng, np.broadcast_to(np.log(weights) + shift, (20_000, 5)))
    assert stats.chisquare(np.bincount(found, minlength=5), 20_000 * weights).pvalue > 0.001


def test_rows_are_independent(rng):
    found = choose(rng, np.zeros((5000, 2, 2)))
    assert found.shape == (5000, 2)
    table = np.histogram2d(found[:, 0], found[:, 1], bins=2)[0]
    assert stats.chisquare(table.ravel()).pvalue > 0.001


def test_one_row_gives_one_index(rng):
    assert choose(rng, [0.0]) == 0
    assert choose(rng, [0.0]).shape == ()


def test_impossible_choices_are_never_made(rng):
    assert (choose(rng, np.tile([-np.inf, -1e300, -np.inf], (1000, 1))) == 1).all()


def test_an_exponential_of_zero_does_not_break_it():
    class Zero:
        def standard_exponential(self, shape):
            return np.zeros(shape)

    assert choose(Zero(), [-np.inf, 0.0]) == 1


@pytest.mark.parametrize(
    "weights", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf], [[0.0, 0.0], [-np.inf, -np.inf]], [], 1.0]
)
def test_what_cannot_be_weighed_is_refused(rng, weights):
    with pytest.raises(ArgumentError, match="log_weights"):
        choose(rng, weights)
