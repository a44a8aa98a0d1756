"""Shells of normal densities lie above what they were made for, and their masses are what they say."""

import numpy as np
import pytest

from pymc_dp.draws.log_concave_shells import (
    decay,
    decay_slope,
    shells_by_fourth_moment,
    shells_by_length,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
S = np.concatenate([[0.0], np.geomspace(1e-9, 30, 300), [0.999999, 1.0, 1.000001]])


@pytest.mark.parametrize("function", [decay, decay_slope])
def test_decay_is_its_integral(function):
    t, weights = (NODES + 1) / 2, WEIGHTS / 2
    inner = (1 - t) * np.exp(-S[:, None] * t) * (1 if function is decay else -t)
    np.testing.assert_allclose(function(S), inner @ weights, rtol=1e-13)


def forms(rng, d):
    """Random curvature of the rank that a regression on few rows has, precisions of the prior and a metric."""
    root = rng.standard_normal((d, rng.integers(1, 2 * d))) * 10 ** rng.uniform(-1, 1.5)
    other = rng.standard_normal((d, d))
    return root @ root.T, 10 ** rng.uniform(-2, 2, d), other @ other.T + 0.1 * np.eye(d)


def directions(rng, d):
    """Vectors of all lengths in all directions, along the axes too."""
    v = rng.standard_normal((4000, d)) * 10 ** rng.uniform(-4, 3, (4000, 1))
    axes = np.eye(d)[rng.integers(0, d, 500)] * 10 ** rng.uniform(-4, 3, (500, 1))
    return np.concatenate([v, axes])


def heights(envelope, v):
    place = np.einsum("ki,ij,kj->k", v, envelope.metric, v)
    piece = np.searchsorted(envelope.edges, place, side="right") - 1
    return envelope.height(np.minimum(piece, envelope.offsets.size - 1), v)


@pytest.mark.parametrize("shells", [shells_by_length, shells_by_fourth_moment])
def test_shells_lie_above_what_they_bound(rng, shells):
    for d in (2, 3, 8):
        for _ in range(6):
            curvature, strong, metric = forms(rng, d)
            gradient = rng.standard_normal(d)
            envelope = shells(gradient, curvature, strong, metric)
            v = directions(rng, d)
            q, b = (np.einsum("ki,ij,kj->k", v, form, v) for form in (curvature, metric))
            s = np.sqrt(b) if shells is shells_by_length else b / np.sqrt(q)
            bounded = v @ gradient - q * decay(s) - v**2 @ strong / 2
            assert (heights(envelope, v) - bounded >= -1e-9 * (1 + np.abs(bounded))).all()
            assert envelope.edges[0] == 0
            assert envelope.edges[-1] == np.inf
