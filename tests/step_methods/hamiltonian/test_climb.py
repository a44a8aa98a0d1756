"""Noised gradients lead from far away to the mode, in moves of bounded length."""

from types import SimpleNamespace

import numpy as np
import pytest

from pymc_dp.step_methods.hamiltonian.gradient import FARTHEST, Climb

UNITS, ROWS, CLIP = np.array([0.5, 2.0]), 400, 3.0
MODE = np.array([4.0, -30.0])


def prior(precision):
    return SimpleNamespace(of_prior=lambda values: -precision * UNITS * values)


def climbing(precision=0.01):
    return Climb(prior(precision), np.zeros(2), UNITS, clip_norm=CLIP, population=ROWS)


def slope(values):
    """Of rows with gradients of norm 1 at the distance of one unit."""
    return -ROWS * (values - MODE) / UNITS


def test_the_mode_is_reached_and_every_slope_is_asked_for_once():
    asked = []

    def counted(values):
        asked.append(values)
        return slope(values)

    start = np.zeros(2)
    position, force = climbing()(start, slope(start), counted, 120)
    assert len(asked) == 120 and asked[-1] is position
    np.testing.assert_allclose(position, MODE, rtol=1e-3)
    np.testing.assert_array_equal(force, slope(position))


def test_moves_are_bounded_whatever_the_slope():
    for force in (np.array([1e150, -1e150]), np.array([1e9, 1.0]), np.zeros(2)):
        position, _ = climbing()(np.zeros(2), force, slope, 1)
        assert np.linalg.norm(position / UNITS) <= FARTHEST / CLIP * (1 + 1e-12)


def test_slopes_that_turn_make_moves_short_and_are_forgotten_by_the_next_chain():
    """Signs alone, as where every row is clipped: a fixed size would go to and fro for ever."""
    climb = climbing()
    first = climb.size

    def signs(values):
        return np.array([1e3 * np.sign(MODE[0] - values[0]), 0.0])

    position, _ = climb(np.zeros(2), signs(np.zeros(2)), signs, 150)
    assert first / 100 <= climb.size < first / 50 and abs(position[0] - MODE[0]) < 0.01
    climb.restart()
    assert climb.size == first


@pytest.mark.parametrize("precision", [1.0, 1e6])
def test_a_narrow_prior_is_not_overshot(precision):
    climb = Climb(prior(precision), np.ones(2), UNITS, clip_norm=0.01, population=1)
    position, _ = climb(np.ones(2), prior(precision).of_prior(np.ones(2)), prior(precision).of_prior, 200)
    assert (np.abs(position) <= 1).all() and abs(position[1]) < 1e-3
