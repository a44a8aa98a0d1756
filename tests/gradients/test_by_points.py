"""Scores of rows with latents that are integrated out: each value at all points, as the whole log-likelihood says."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.by_points import ByPoints
from pymc_dp.gradients.in_turn import expected_responses
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.rows.gate import read

N = 40
pytestmark = pytest.mark.usefixtures("paid")


def counts():
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        rate, slope, spread = pm.Normal("rate"), pm.Normal("slope"), pm.HalfNormal("spread")
        excess = pm.Normal("excess", 0, spread, shape=N)
        x = pm.Data("x", rng.uniform(-1, 1, N))
        pm.Poisson("y", pm.math.exp(rate + slope * x + excess), observed=rng.poisson(3, N))
    return dp.integrate(model, "excess"), dp.Domain(bounds={"y": (0, 60), "x": (-1, 1)})


def sheets():
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        theta, b = pm.Normal("theta", shape=N), pm.Normal("b", shape=4)
        pm.Bernoulli("y", logit_p=theta[:, None] - b, observed=rng.integers(0, 2, (N, 4)))
    return dp.integrate(model, "theta"), None


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [counts, sheets])
@pytest.mark.parametrize("entries", [1, 2**18])
def test_expected_scores_are_those_of_rows_that_hold_each_value(build, entries, rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.by_points.ENTRIES", entries)  # one row at a time, or all
    rows = RowScores.of(interface_of(*build()), mode="FAST_COMPILE")
    (one,) = rows.interface.responses
    columns = [read(column)[:8] for column in rows.interface.inspection.columns]
    predictors, _ = rows.predicted(rng.normal(0, 0.3, rows.interface.size), *columns)
    assert isinstance(rows.by_points, ByPoints) and (rows.by_values is rows.by_points) == (build is counts)
    found = expected_responses(rows, predictors, columns)
    every = np.stack(np.meshgrid(*[one.values] * one.entries, indexing="ij"), axis=-1).reshape(-1, one.entries)
    held = [np.repeat(column, len(every), axis=0) for column in columns]
    held[one.place] = np.tile(every, (8, 1)).reshape(len(held[0]), *columns[one.place].shape[1:])
    scores, logps = rows.scored(np.repeat(predictors, len(every), axis=0), *held)
    shape, weights = found.weights.shape, np.exp(logps).reshape(found.weights.shape)
    np.testing.assert_allclose(found.scores, scores.reshape(*shape, rows.count), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.weights[:, :-1], weights[:, :-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-12)
