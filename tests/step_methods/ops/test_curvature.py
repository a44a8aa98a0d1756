"""The mode and the curvature there."""

import numpy as np
import pytest

from pymc_dp.step_methods.ops.curvature import mode, units


@pytest.fixture
def normal():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4)) * [1.0, 1e-3, 30.0, 1.0]
    precision, mean = root.T @ root, np.array([1.0, -2.0, 0.5, 3.0])
    return precision, mean, lambda w: (-0.5 * (w - mean) @ precision @ (w - mean), -precision @ (w - mean))


def test_in_units_of_its_curvature_a_normal_density_is_standard_normal(normal):
    precision, mean, slope = normal
    found = units(slope, mean)
    np.testing.assert_allclose(found.T @ precision @ found, np.eye(4), atol=1e-4)


def test_a_mode_is_found_and_a_gradient_that_is_no_number_ends_the_search():
    slope = lambda w: (-0.5 * ((w - 2.0) ** 2).sum(), 2.0 - w)  # noqa: E731
    np.testing.assert_allclose(mode(slope, np.zeros(3)), 2.0, atol=1e-4)
    assert np.isfinite(mode(lambda w: (np.nan, np.full(3, np.nan)), np.zeros(3))).all()


def test_flat_and_convex_directions_have_finite_units():
    bent = np.diag([-1.0, 4.0, 0.0])
    found = units(lambda w: (0.0, -bent @ w), np.zeros(3))
    sizes = np.sort(1 / np.linalg.svd(found)[1] ** 2)
    assert np.isfinite(found).all() and sizes[1:] == pytest.approx([1.0, 4.0], rel=1e-3)
    np.testing.assert_array_equal(units(lambda w: (np.nan, np.full(2, np.nan)), np.zeros(2)), np.eye(2))
