"""Scores that bend: straight ones stay, and those of saturated coefficients are followed."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_dp.gradients import bent as module
from pymc_dp.gradients.bent import Bent, capped, followed
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.walk import Found
from tests.gradients import models

SIZE = 4
PRIOR = Prior(mean=np.zeros(SIZE), precision=np.eye(SIZE))


@pytest.fixture
def made(rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)
    monkeypatch.setattr("pymc_dp.gradients.simulated.FEW", 400)
    rows = RowScores.of(interface_of(*models.bernoulli()), mode="FAST_COMPILE")
    found = Simulated.of(rows, {}, rng)
    vars(found)["scale"] = np.ones(SIZE)
    return found


def followed_above(monkeypatch, least):
    for name in ("FOLLOWED", "FOLLOWED_IN_NOISE"):
        monkeypatch.setattr(module, name, least)


def found_of(curvature, end, path):
    limits = Limits(scale=np.ones(SIZE), clip_norm=UNLIMITED, clip_curvature=UNLIMITED, basis=np.diag([1.0, 2, 1, 0.5]))
    mean = sum(weight * (gradient + curvature @ at) for weight, at, gradient in path)
    return Found(
        slope=mean,
        curvature=curvature,
        noise=20.0 * np.eye(SIZE),
        end=end,
        limits=limits,
        unresolved=0,
        chi_squared=1.0,
        degrees=1,
        path=tuple(path),
        rows=1.0,
    )


def curvature_of(made, at, count):
    factors = made.spread(at)
    return np.einsum("nqd,nqe->de", factors, factors) * count / len(factors)


def saturated(made):
    """Rows without privacy noise on the path, and with much of it charged: the end was short of the truth."""
    true = np.array([0.0, 6.0, 0.0, 0.0])
    end = 0.7 * true
    first = found_of(curvature_of(made, end, 3000), end, [(1.0, end, np.zeros(SIZE))])
    bent = Bent.of(first, made, 3000)
    basis = first.limits.basis
    score = np.linalg.solve(basis, bent.change(np.linalg.solve(basis, true))[0])
    found = replace(first, slope=score + first.curvature @ end, path=((1.0, end, score),))
    return true, found, bent, Quadratic.of(found, np.ones(SIZE))


def test_the_prior_draws_saturated_coefficients_less_to_its_mean(made, monkeypatch):
    followed_above(monkeypatch, -1.0)
    true, found, bent, straight = saturated(made)
    means = [
        one.posterior(PRIOR.mean, PRIOR.precision)[0] for one in (straight, followed(found, straight, bent, PRIOR))
    ]
    assert means[0][1] < means[1][1] < 1.2 * true[1]
    assert np.linalg.norm(means[1] - true) < np.linalg.norm(means[0] - true)


def test_a_bent_precision_is_in_no_direction_larger_than_a_straight_one(rng):
    parts = rng.normal(size=(2, SIZE, 9))
    one, other = (part @ part.T for part in parts)
    found = capped(one, other)
    assert np.linalg.eigvalsh(other - found).min() > -1e-9 and np.linalg.eigvalsh(one - found).min() > -1e-9
    np.testing.assert_allclose(capped(0.5 * other, other), 0.5 * other, atol=1e-9)
    np.testing.assert_allclose(capped(1e3 * other, other), other, rtol=1e-9)


def test_a_bent_posterior_is_no_surer_than_the_straight_one(made, monkeypatch):
    _, found, bent, straight = saturated(made)
    followed_above(monkeypatch, -1.0)
    monkeypatch.setattr(module, "_averaged", lambda *_: iter([(1e6 * np.eye(SIZE), np.ones(SIZE))]))
    nearest = followed(found, straight, bent, PRIOR)
    assert nearest is not straight
    wide, narrow = (one.posterior(PRIOR.mean, PRIOR.precision)[1] for one in (straight, nearest))
    assert np.linalg.eigvalsh(narrow - wide).min() > -1e-9
