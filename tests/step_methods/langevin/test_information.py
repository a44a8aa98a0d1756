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


def test_a_chain_that_knows_nothing_does_not_move():
    known = views(nothing_known(np.eye(3)), 3)
    assert np.isinf(known.bends).all() and known.due == 1
    assert (known.precision == np.eye(3)).all() and (known.mean == 0).all()


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


def test_a_start_far_away_is_forgotten():
    far, near = np.full((100, 1, 1), 1e3), np.ones((900, 1, 1))
    memory = nothing_known(np.zeros((1, 1)))
    seen(memory, 1, np.concatenate([far, near]))
    assert views(memory, 1).mean[0, 0] == pytest.approx(2, rel=0.1)  # 1 + 1e3 / 10³


def test_when_axes_are_found_depends_on_the_number_of_steps_alone(rng):
    times = []
    for scale in (0.0, 1.0, 1e9):
        memory, times_of = nothing_known(np.eye(2)), []
        for _ in range(300):
            known = views(memory, 2)
            before = known.steps[0]
            seen(memory, 2, [scale * symmetric(rng, 2)])
            times_of.append(known.steps[0] != before)
        times.append(times_of)
    assert times[0] == times[1] == times[2]
    assert all(times[0][:100]) and sum(times[0][100:]) == 64  # of 200: every second, then every third, ...


def test_axes_are_those_of_the_weighted_information_and_the_prior(rng):
    memory, precision = nothing_known(np.diag([1.0, 2.0, 3.0])), np.diag([1.0, 2.0, 3.0])
    information = symmetric(rng, 3)
    seen(memory, 3, [information] * 7)
    known = views(memory, 3)
    np.testing.assert_allclose(known.mean, information, rtol=1e-12)
    whole = known.axes @ np.diag(known.bends) @ known.axes.T
    np.testing.assert_allclose(whole, 3 * positive(information) + precision, atol=1e-10)


def test_the_nearest_positive_matrix_is_nearest(rng):
    matrix = symmetric(rng, 4)
    found = positive(matrix)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    best = np.linalg.norm(found - matrix)
    for _ in range(200):
        root = np.linalg.cholesky(found + 1e-9 * np.eye(4)) + 0.05 * rng.normal(size=(4, 4))
        assert np.linalg.norm(root @ root.T - matrix) >= best


def test_the_papers_form_makes_each_release_positive(rng):
    releases = rng.normal(size=(40, 1, 1))
    memory = nothing_known(np.zeros((1, 1)))
    seen(memory, 1, releases, ahead=0.0, each_positive=True)
    assert views(memory, 1).mean[0, 0] == pytest.approx(np.maximum(releases, 0).mean())
