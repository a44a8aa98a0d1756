"""Polynomials on panels follow smooth functions and their slopes, of any steepness."""

import numpy as np
import pytest

from pymc_dp.transforms.cell_tables import tabulate
from pymc_dp.transforms.level_kernels import look_up

LEFT, RIGHT = 1e-8, np.sqrt(0.5)
NUMBERS = np.array([0.0, 3.0, 100.0, 1e4, 1e7])
SHARE = 0.3


def log_likelihood(rows, u):
    """Of as many Bernoulli rows, less a normalising constant, in the root of their probability."""
    n = NUMBERS[rows, None]
    return n * (SHARE * np.log(u**2 / SHARE) + (1 - SHARE) * np.log1p(-(u**2)))


@pytest.fixture(scope="module")
def panels():
    return tabulate(log_likelihood, np.full(len(NUMBERS), LEFT), np.full(len(NUMBERS), RIGHT))


def found(panels, row, points):
    return np.array([look_up(row, u, panels.starts, panels.ends, panels.numbers) for u in points]).T


@pytest.mark.parametrize("row", range(len(NUMBERS)))
def test_values_and_slopes_are_those_of_the_function(panels, row):
    n = NUMBERS[row]
    near = np.minimum(np.sqrt(SHARE) + np.linspace(-5, 5, 101) * 0.5 / np.sqrt(max(n, 100)), RIGHT)
    for points, most in ((near, 1.0), (np.geomspace(LEFT, RIGHT, 200), np.inf)):
        expected = log_likelihood(np.full(len(points), row), points[:, None])[:, 0]
        slope = n * (SHARE - (1 - SHARE) * points**2 / (1 - points**2))
        values, slopes, _ = found(panels, row, points)
        allowed = np.minimum(np.maximum(1, -expected / 10), most)
        assert (np.abs(values - expected) < 1e-7 * allowed + 4e-16 * np.abs(expected)).all()
        assert (np.abs(slopes - slope) < 2e-6 * np.maximum(allowed, np.abs(slope))).all()


def test_below_the_least_point_its_value_is_returned_and_the_point(panels):
    value, _, at = found(panels, 3, [LEFT / 100])
    assert at == pytest.approx(LEFT) and value == pytest.approx(found(panels, 3, [LEFT])[0])
