import math

import numpy as np
import pytest
from scipy.stats import binom

import pymc_dp as dp
from pymc_dp.audit import Audit
from pymc_dp.kernel.noise import LAPLACE


@pytest.fixture
def laplace(rng):
    """A function of a scale that returns the mechanism: the rows are the sums themselves."""
    return lambda scale: lambda rows, n: np.asarray(rows) + rng.laplace(scale=scale, size=(n, len(rows)))


def quiet(*arguments, **options) -> Audit:
    return dp.audit(*arguments, **{"vectorised": True, "progressbar": False, "epsilon": 1.0} | options)


def test_finds_noise_that_is_20_percent_short(laplace):
    found = quiet(laplace(0.8), [0], [1])
    assert not found.passed
    assert 1 < found.epsilon_lower <= 1.25
    assert found.runs == 20_000 and found.tested_runs == 10_000
    assert found.report().startswith("claim disproved: ε = 1 was claimed")
    assert "output[0]" in found.event


def test_a_right_mechanism_passes_and_says_that_this_is_no_proof(laplace):
    found = quiet(laplace(1.0), [0], [1])
    assert found.passed and 0.8 < found.epsilon_lower <= 1
    assert found.delta_lower == 0
    assert str(found).startswith("no violation found")
    assert "This is not a proof" in found.report() and "no proof" in repr(found)


def test_false_alarms_are_no_more_frequent_than_claimed(rng):
    def response(bit, n):  # randomised response: every event is tight
        return np.where(rng.random(n) < 1 / (1 + math.exp(-1)), bit, 1 - bit)

    def counts(bit, n):
        return bit + LAPLACE.simulated(rng, 1.0, (n,))

    audits = 100
    alarms = [
        not quiet(mechanism, 0, 1, runs=200, confidence=0.9).passed
        for mechanism in (response, counts)
        for _ in range(audits // 2)
    ]
    assert sum(alarms) <= binom.ppf(0.999, audits, 0.1)


def test_finds_loss_spread_over_coordinates(laplace):
    """Each count alone looks private; both together lose twice as much."""
    found = quiet(laplace(1.0), [0, 1, 5, 6], [1, 0, 5, 6])
    assert found.epsilon_lower > 1.4
    assert "summed" in found.event or "discriminant" in found.event
    assert quiet(laplace(2.0), [0, 1, 5, 6], [1, 0, 5, 6]).passed


def test_finds_noise_that_was_used_twice(rng):
    def reused(rows, n):
        return np.asarray(rows) + rng.laplace(scale=2, size=(n, 1)) * [1, 2.5]

    assert quiet(reused, [0, 1], [1, 1]).epsilon_lower > 5


def test_violations_in_either_direction_are_found(rng):
    def rare(bit, n):
        return np.where(rng.random(n) < (0.0 if bit else 0.02), "seen", "nothing")

    for pair, side in (((1, 0), "neighbour"), ((0, 1), "data")):
        found = quiet(rare, *pair)
        assert not found.passed and found.frequent_in == side
        assert found.event == "output is 'seen'"


def test_delta_is_forgiven_and_measured(rng):
    def rare(bit, n):
        return np.where(rng.random(n) < 0.02 * bit, 1.0, 0.0)

    assert quiet(rare, 0, 1, delta=0.03).passed
    found = quiet(rare, 0, 1, delta=0.01)
    assert not found.passed
    assert 0.01 < found.delta_lower < 0.02


def test_an_exception_is_an_output(rng):
    def fails(bit):
        if rng.random() < 0.05 * bit:
            raise ValueError("the value was bad")
        return float(rng.laplace())

    found = quiet(fails, 0, 1, vectorised=False, runs=4000)
    assert not found.passed
    assert "ValueError" in found.event or "exception" in found.event or "the value was bad" in found.event


def test_a_mechanism_that_always_fails_is_an_error_not_a_pass():
    def broken(rows):
        raise KeyError("typo")

    with pytest.raises(dp.errors.ArgumentError, match="every run .KeyError"):
        quiet(broken, 0, 1, vectorised=False, runs=100)
