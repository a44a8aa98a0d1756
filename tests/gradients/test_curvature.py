"""A noised curvature matrix made positive: what is resolved is kept, the rest shares what is left of the trace."""

import numpy as np
import pytest

from pymc_dp.gradients.curvature import estimated, shrunk


def noised(true, deviation, rng):
    noise = np.triu(rng.normal(size=true.shape) * deviation, 1)
    return true + noise + noise.T + np.diag(rng.normal(size=len(true)) * deviation * np.sqrt(2))


def rotated(values, rng):
    vectors, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return (vectors * values) @ vectors.T


def test_noise_alone_has_no_direction_that_is_resolved_and_is_positive():
    rng = np.random.default_rng(2)
    for _ in range(20):
        found = shrunk(noised(np.zeros((12, 12)), 3.0, rng), 3.0)
        assert found.unresolved >= 11 and np.linalg.eigvalsh(found.matrix).min() > 0


def test_the_edge_is_that_of_the_directions_that_are_not_resolved():
    """Eleven directions of a well-separated table, and one of a tenth: with the edge of all twelve it is lost."""
    rng, values = np.random.default_rng(3), np.r_[94.0, np.linspace(400, 2000, 11)]
    found = [shrunk(noised(rotated(values, rng), 20.0, rng), 20.0) for _ in range(50)]
    least = np.array([np.linalg.eigvalsh(one.matrix)[0] for one in found])
    assert 60 < np.median(least) < 130
    assert 2 * 20 * np.sqrt(12) > 94, "which the edge of all would have been above"
    assert np.mean([one.unresolved for one in found]) < 0.5


def test_noise_between_blocks_is_left_out(rng):
    """What no row relates stays 0, and a lone scale is resolved at its own noise."""
    blocks = (np.arange(4), np.array([4]))
    curvature = np.diag([50.0, 50, 50, 50, 8])
    noise = rng.normal(size=(5, 5))
    noised = curvature + (noise + noise.T) / np.sqrt(2)
    found = estimated(noised, 1.0, None, blocks)
    np.testing.assert_array_equal(found.matrix[:4, 4], 0)
    assert found.unresolved == 0 and found.matrix[4, 4] == pytest.approx(8, abs=4)
    for inside in blocks:
        alone = estimated(noised[np.ix_(inside, inside)], 1.0, None).matrix
        np.testing.assert_allclose(found.matrix[np.ix_(inside, inside)], alone)
