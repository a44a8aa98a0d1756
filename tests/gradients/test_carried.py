"""A curvature at other points: what made-up rows say, within what each parameter says."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import expit

from pymc_dp.gradients.carried import HELD, carried, raised


@pytest.fixture
def rows(rng):
    """Two covariates that are nearly the same."""
    first = rng.normal(size=400)
    return np.column_stack([first, first + 0.05 * rng.normal(size=400)])


def curvature(rows):
    def at(point):
        share = expit(rows @ point)
        return (rows.T * (share * (1 - share))) @ rows

    return at


def test_no_direction_changes_by_more_than_the_parameters_do(rows):
    """Square roots from both sides change one across correlated parameters by far more."""
    bend, begun = curvature(rows), np.zeros(2)
    own = 3 * bend(begun) + np.diag([1.0, 2.0])
    point = np.array([40.0, -39.0])
    found = carried(own, begun, bend)(point)
    ratio = (1 - HELD) * np.diag(bend(point)) / np.diag(bend(begun)) + HELD
    values = eigh(found, own, eigvals_only=True)
    assert ratio.min() - 1e-9 <= values.min() and values.max() <= ratio.max() + 1e-9
    diagonal = carried(own, begun, lambda at: np.array([1.0, 1.5]) if at.any() else np.ones(2))(point)
    assert eigh(diagonal, own, eigvals_only=True).max() > 5 > 1.5


def test_a_share_of_what_was_released_stays_where_made_up_rows_have_next_to_nothing(rows):
    """Steps along a direction without curvature would be huge."""
    bend, begun = curvature(rows), np.zeros(2)
    own = 3 * bend(begun)
    found = carried(own, begun, bend)(np.array([1e4, 1e4]))
    assert HELD - 1e-9 <= eigh(found, own, eigvals_only=True).min() < 2 * HELD


def test_raised_is_as_large_as_both():
    own, other = np.diag([1.0, 4.0]), np.array([[3.0, 0.5], [0.5, 2.0]])
    found = raised(own, other)
    assert np.linalg.eigvalsh(found - own).min() > -1e-9 and np.linalg.eigvalsh(found - other).min() > -1e-9
    np.testing.assert_allclose(raised(own, own / 2), own)
