"""The mean of released information and the axes that follow from it: plain NumPy."""

import numpy as np
import pytest

from pymc_dp.step_methods.langevin.information import learn, nothing_known, positive, views


def symmetric(rng, size):
    half = rng.normal(size=(size, size))
    return half + half.T


def seen(memory, size, releases, **settings):
    """Learn from releases as a chain does, when it is due."""
    settings = {"weight": 3.0, "ahead": 2.0, "each_positive": False, **settings}
    for release in releases:
        known = views(memory, size)
        known.sum_of[:] += release
        known.steps[1] += 1
        if known.due == 0:
            learn(known, **settings)




@pytest.mark.parametrize("ahead", [0.0, 2.0])
def test_the_mean_weights_steps_by_a_power_of_their_number(rng, ahead):
    releases = rng.normal(size=(400, 1, 1))
    memory = nothing_known(np.zeros((1, 1)))
    seen(memory, 1, releases, ahead=ahead)
    known = views(memory, 1)
    done = int(known.steps[0])
    exact = np.arange(done + 1.0) ** (1 + ahead)
    first, weights = 50, np.diff(exact) / exact[-1]
    assert 390 < done <= 400
    # Single steps at first, then groups of steps which share what they have together.
    assert known.mean[0, 0] == pytest.approx(weights @ releases[:done, 0, 0], abs=0.01)
    exact_start = nothing_known(np.zeros((1, 1)))
    seen(exact_start, 1, releases[:first], ahead=ahead)
    share = np.diff(np.arange(first + 1.0) ** (1 + ahead)) / first ** (1 + ahead)
    assert views(exact_start, 1).mean[0, 0] == pytest.approx(share @ releases[:first, 0, 0], rel=1e-12)






def test_axes_are_those_of_the_weighted_information_and_the_prior(rng):
    memory, precision = nothing_known(np.diag([1.0, 2.0, 3.0])), np.diag([1.0, 2.0, 3.0])
    information = symmetric(rng, 3)
    seen(memory, 3, [information] * 7)
    known = views(memory, 3)
    np.testing.assert_allclose(known.mean, information, rtol=1e-12)
    whole = known.axes @ np.diag(known.bends) @ known.axes.T
    np.testing.assert_allclose(whole, 3 * positive(information) + precision, atol=1e-10)




