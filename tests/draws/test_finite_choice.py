"""The choice has the probabilities of the exponential mechanism, whatever the size of the weights."""

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.draws.finite_choice import EARLY, _log_arrivals, choose


@pytest.mark.parametrize("shift", [0.0, -1e5, 1e5, 700.0])
def test_choices_are_proportional_to_weights(rng, shift):
    weights = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    found = choose(rng, np.broadcast_to(np.log(weights) + shift, (20_000, 5)))
    assert stats.chisquare(np.bincount(found, minlength=5), 20_000 * weights).pvalue > 0.001


def test_impossible_choices_are_never_made(rng):
    assert (choose(rng, np.tile([-np.inf, -1e300, -np.inf], (1000, 1))) == 1).all()


def test_an_exponential_of_zero_does_not_break_it():
    class Zero:
        def standard_exponential(self, shape):
            return np.zeros(shape)

    assert choose(Zero(), [-np.inf, 0.0]) == 1


class Early:
    """A generator whose first arrivals are given, as the steps of 2^-53 of another would have them."""

    def __init__(self, rng, first):
        self.rng, self.first = rng, [np.asarray(first, dtype=float)]

    def standard_exponential(self, shape):
        return self.first.pop() if self.first else self.rng.standard_exponential(shape)


def test_a_small_weight_does_not_win_by_an_arrival_of_zero(rng):
    """Each candidate had a chance of 2^-53, down to weights of e^-760, and none below: no bounded loss."""
    assert choose(Early(rng, [0.0, 1.0]), [-700.0, 0.0]) == 1
    assert choose(Early(rng, [0.0, 1.0]), [-10.0, 0.0]) == 0


def test_early_arrivals_are_exponential_on_a_logarithmic_scale(rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.draws.finite_choice.LONG", 0.5)  # most waits start anew, some of them often
    waits = np.log(EARLY) - _log_arrivals(Early(rng, np.zeros(5000)), (5000,))
    assert stats.kstest(waits, "expon").pvalue > 0.001 and waits.max() > 4
    plain = _log_arrivals(rng, (5000,))
    assert stats.kstest(np.exp(plain), "expon").pvalue > 0.001


@pytest.mark.parametrize(
    "weights", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf], [[0.0, 0.0], [-np.inf, -np.inf]], [], 1.0]
)
def test_what_cannot_be_weighed_is_refused(rng, weights):
    with pytest.raises(dp.errors.ArgumentError, match="log_weights"):
        choose(rng, weights)
