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


def test_masses_are_integrals(rng):
    curvature, strong, metric = forms(rng, 2)
    gradient = np.array([0.3, -0.2]) * np.sqrt(strong)
    envelope = shells_by_length(gradient, curvature, strong, metric)
    for precision, offset, log_mass in zip(envelope.precisions, envelope.offsets, envelope.log_masses, strict=True):
        mean = np.linalg.solve(precision, gradient)
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        grid = np.stack(np.meshgrid(NODES * 9, NODES * 9, indexing="ij"), axis=-1) @ root.T + mean
        values = grid @ gradient - np.einsum("abi,ij,abj->ab", grid, precision, grid) / 2 + offset
        integral = 81 * np.linalg.det(root) * (np.exp(values - log_mass) * WEIGHTS * WEIGHTS[:, None]).sum()
        assert integral == pytest.approx(2 * np.pi, rel=1e-6)


def test_proposals_follow_the_envelope(rng):
    """Their shares of the shells, and their means there, are those of the envelope by quadrature."""
    curvature, strong, metric = np.diag([30.0, 2.0]), np.ones(2), 2.25 * np.eye(2)
    gradient = np.array([1.0, -2.0])
    envelope = shells_by_length(gradient, curvature, strong, metric)
    axis = np.linspace(-12, 12, 1601)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    place = np.einsum("ki,ij,kj->k", grid, metric, grid)
    piece = np.searchsorted(envelope.edges, place, side="right") - 1
    weights = np.exp(envelope.height(piece, grid))
    found, v = envelope.propose(rng, 40_000)
    total = np.exp(envelope.log_mass) * 2 * np.pi / (axis[1] - axis[0]) ** 2
    for i in range(envelope.offsets.size):
        share = weights[piece == i].sum() / total
        count = (found == i).sum()
        assert abs(count - 40_000 * share) < 4.5 * np.sqrt(40_000 * share) + 1 + 0.02 * 40_000 * share
        if count > 400:
            mean = np.average(grid[piece == i], axis=0, weights=weights[piece == i])
            error = v[found == i].std(axis=0) / np.sqrt(count)
            assert (np.abs(v[found == i].mean(axis=0) - mean) < 4.5 * error + 0.01).all()
