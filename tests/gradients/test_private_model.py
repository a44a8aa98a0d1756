"""The private model: priors as they are, and a normal that stands for the rows."""

import numpy as np
import pytest

from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic, unsure
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.walk import Found


def quadratic(shares=None, scale=(1.0, 0.5, 4.0)):
    curvature = np.array([[30.0, 5.0, 1.0], [5.0, 60.0, 0.0], [1.0, 0.0, 20.0]])
    found = Found(
        slope=np.array([3.0, -2.0, 1.0]),
        curvature=curvature,
        noise=7.0 * np.eye(3),
        end=np.zeros(3),
        limits=Limits(scale=np.array(scale), clip_norm=1.0, clip_curvature=1.0),
        unresolved=0,
        chi_squared=1.0,
        degrees=1,
        path=(),
        rows=1.0,
    )
    return Quadratic.of(found, np.array(scale), shares)


def unsure_of(deviation, away=0.0):
    """A posterior where what was released of the curvature is noised, of gradients that were taken elsewhere."""
    curvature = np.array([[30.0, 5.0, 1.0], [5.0, 60.0, 0.0], [1.0, 0.0, 20.0]])
    limits = Limits(scale=np.ones(3), clip_norm=1.0, clip_curvature=1.0, basis=np.diag([1.0, 0.5, 2.0]))
    at = away * np.ones(3)
    found = Found(
        slope=curvature @ np.zeros(3), curvature=curvature, noise=7.0 * np.eye(3), end=np.zeros(3), limits=limits,
        unresolved=0, chi_squared=1.0, degrees=1, path=((1.0, at, curvature @ -at),), rows=1.0, deviation=deviation,
    )  # fmt: skip
    prior = Prior(mean=np.zeros(3), precision=0.01 * np.eye(3))
    quadratic = Quadratic.of(found, limits.scale)
    return found, quadratic, unsure(found, quadratic, prior), prior


def test_a_curvature_without_noise_leaves_a_posterior_as_it_is():
    _, quadratic, same, _ = unsure_of(0.0)
    assert same is quadratic


@pytest.mark.parametrize("away", [0.0, 0.5])
def test_noise_of_a_curvature_is_in_the_posterior(away, rng):
    """By simulation: what E does to the slope at a draw, with E of the deviation that is said."""
    found, quadratic, wider, prior = unsure_of(0.8, away)
    extra = wider.covariance - quadratic.covariance
    assert np.linalg.eigvalsh(extra).min() > 0
    mean, covariance = wider.posterior(prior.mean, prior.precision)
    basis = np.diag(found.limits.basis)
    draws = rng.multivariate_normal(mean, covariance, 40_000) - away
    noise = np.triu(rng.normal(size=(40_000, 3, 3)), 1)
    noise = noise + noise.transpose(0, 2, 1) + np.sqrt(2) * np.eye(3) * rng.normal(size=(40_000, 3, 1))
    off = np.einsum("nij,nj->ni", 0.8 * noise, draws / basis) / basis
    np.testing.assert_allclose(np.cov(off, rowvar=False, bias=True), extra, atol=0.06 * np.diag(extra).max())
