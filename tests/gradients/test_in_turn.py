"""Responses that share a latent, or depend on each other: expectations are those of all their values together."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.joint import OWN, TAKEN
from pymc_dp.gradients.row_parts import expected
from pymc_dp.gradients.row_scores import RowScores

N, ITEMS = 64, 3
RNG = np.random.default_rng(sum(map(ord, "in turn")))
ANSWERS, X = RNG.integers(0, 2, (N, ITEMS)), RNG.uniform(-1, 1, N)
AT = np.array([0.2, -0.1, 0.4, -0.6, 0.3, 0.8])


def items(covariate=False):
    with pm.Model() as model:
        log_a, b = pm.Normal("log_a", shape=ITEMS), pm.Normal("b", shape=ITEMS)
        theta = pm.Normal("theta", 0.5 * pm.Data("x", X) if covariate else 0.0, 1.0, shape=N)
        pm.Bernoulli("y", logit_p=pm.math.exp(log_a) * (theta[:, None] - b), observed=ANSWERS)
    return dp.integrate(model, "theta", nodes=9)


@pytest.fixture(scope="module")
def alike():
    return RowScores.of(interface_of(items(), dp.Domain()), mode="FAST_COMPILE")


@pytest.fixture(scope="module")
def apart():
    domain = dp.Domain(bounds={"x": (-1, 1)})
    return RowScores.of(interface_of(items(covariate=True), domain), mode="FAST_COMPILE")


def columns(rows, y=ANSWERS, x=X):
    held = {"y": y, "x": x}
    return [held[column.name].astype(column.leaf.type.dtype) for column in rows.interface.inspection.columns]


def found(rows, y=ANSWERS, x=X):
    return expected(rows, columns(rows, y, x), AT, np.ones(len(AT)))


def test_expectations_are_over_all_patterns(alike):
    one = found(alike)
    np.testing.assert_allclose(one.responses.weights.sum(axis=1), 1)
    np.testing.assert_allclose(np.einsum("nb,nbq->nq", one.responses.weights, one.responses.scores), 0, atol=1e-12)
    places = [int("".join(map(str, row)), 2) for row in ANSWERS]
    np.testing.assert_allclose(one.observed, one.responses.scores[0][places], atol=1e-12)


@pytest.mark.slow
def test_a_lattice_gives_about_the_same(alike, apart, monkeypatch):
    """Of products of scores: for all rows where these are alike; else on average, for what rows are off by cancels."""
    exact = [found(rows).responses for rows in (alike, apart)]
    monkeypatch.setattr(RowScores, "all_patterns", property(lambda self: False))
    for rows, one in zip((alike, apart), exact, strict=True):
        made = found(rows)
        taken = made.responses
        assert made.of_rows(taken.weights).shape == (N, rows.nodes) and rows.nodes == (TAKEN if rows.alike else OWN)
        np.testing.assert_allclose(np.einsum("nb,nbq->nq", taken.weights, taken.scores), 0, atol=1e-12)
        scale = np.sqrt(np.einsum("nii->ni", one.moments))
        off = (taken.moments - one.moments) / (scale[:, :, None] * scale[:, None])
        mean = off.mean(axis=0)
        assert np.abs(mean).max() < (0.35 if rows.alike else 0.1) and np.sqrt((mean**2).mean()) < 0.1
