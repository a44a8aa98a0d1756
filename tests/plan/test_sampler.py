"""Plans for stochastic-gradient samplers: nothing of the rows is in them, and what they advise is right."""

import logging

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import ArgumentError
from pymc_dp.plan import sampler
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import base
from pymc_dp.step_methods.langevin.base import StochasticGradient


@pytest.fixture
def _uncompiled(monkeypatch):
    """Chains and posteriors of nothing, under more noise than is needed: what is asked for, drawn and told is true."""
    monkeypatch.setattr(base, "noise_multiplier", lambda epsilon, *_, **__: 100 / epsilon)
    monkeypatch.setattr(cost, "some_of", lambda steps: [])
    monkeypatch.setattr(StochasticGradient, "_compile", lambda self: None)
    monkeypatch.setattr(StochasticGradient, "row_norms", lambda self, position, held: np.linalg.norm(held[0], axis=1))
    monkeypatch.setattr(sampler, "slope", lambda step, held: lambda position: held[0].mean() - position)

    def run(cell, table, start):
        return np.random.default_rng(table.seed).normal(table.rows[0].mean(), cell.clip_norm, (50, 2))

    monkeypatch.setattr(sampler, "run", run)


def model_of(values):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 1, shape=2), 1.0, observed=pm.Data("held", values))
    return model


def plan(model, epsilon=1.0, step=None, **options):
    step = step or dp.SGLD(batch_size=10)
    return dp.plan(model, epsilon, delta=1e-5, step=step, **{"random_seed": 1, "progressbar": False} | options)


@pytest.mark.usefixtures("_uncompiled")
def test_rows_are_not_read(monkeypatch, caplog):
    """Tables of the same schema give the same plan; what is in them is nowhere in it."""
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    pages = set()
    for seed in (1, 2):
        column = plant(np.random.default_rng(seed).normal(size=200), low=-3, high=3)
        model = model_of(np.reshape(column.values, (100, 2)))
        with caplog.at_level(logging.DEBUG, logger="pymc_dp"):
            found = plan(model)
        assert contains_canary([found, str(found), caplog.records], column.canaries) == []
        pages.add((str(found), found.to_frame().to_json()))
    assert len(pages) == 1


@pytest.mark.usefixtures("_uncompiled")
def test_the_call_that_is_recommended_can_be_made():
    step = dp.SGNHT(batch_size=20, clip_norm=dp.schedules.EstimatedNorm(share=0.3), steps_per_draw=2)
    found = plan(model_of(np.zeros((100, 2))), [1.0], step=step, repeats=2)
    said = eval(found.best().call, {"dp": _Said})
    assert said["tune"] == 500 and said["epsilon"] == 1.0 and said["delta"] == 1e-5
    assert type(said["step"]) is type(step)
    expected = {**step.settings, "clip_norm": found.best().clip_norm, "step_size": found.best().step_size}
    assert said["step"].settings == expected
    inspection = step.inspect(model_of(np.zeros((100, 2))), None)
    bound, _ = said["step"].bound(inspection, dp.Budget(1.0, 1e-5), chains=1, steps=1000 * step.steps_per_draw)
    assert bound.step_size == found.best().step_size


class _Said:
    SGLD, SGNHT = dp.SGLD, dp.SGNHT

    @staticmethod
    def sample(draws, **options):
        return options


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"width": 0.3}, "width means nothing to a plan for a stochastic-gradient sampler"),
        ({"noise": "laplace"}, "noise means nothing"),
        ({"repeats": 0}, "repeats must be >= 1"),
        ({"n_rows": 10}, "made for the public number of rows, 100"),
        ({"epsilon": []}, "at least one budget"),
    ],
)
@pytest.mark.usefixtures("_uncompiled")
def test_arguments_without_a_meaning_are_refused(options, match):
    with pytest.raises(ArgumentError, match=match):
        plan(model_of(np.zeros((100, 2))), **options)


@pytest.mark.slow
def test_advice_is_good_on_data_like_the_simulated():
    """A chain with the recommended settings meets the posterior of other rows; a clip norm far below does not."""
    n_rows, rng = 2000, np.random.default_rng(3)
    x = rng.normal(size=(n_rows, 2))

    def regression(y):
        with pm.Model() as model:
            slopes = pm.Normal("slopes", 0, 1, shape=2)
            pm.Normal("y", pm.Data("x", x) @ slopes, 1.0, observed=y)
        return model

    step = dp.SGLD(batch_size=200, clip_norm=0.02)
    found = plan(regression(np.zeros(n_rows)), 8.0, step=step, covariates={"x": pm.Normal.dist(0, 1, shape=2)})
    best = found.best()
    frame = found.to_frame()
    assert best.distance < 1.0 and best.clip_norm > 0.02
    assert frame[frame["clip_norm"] == 0.02]["distance"].min() > 2 * best.distance
    assert frame["clipped"].is_monotonic_decreasing and frame["clipped"].iloc[0] > 0.9
    truth = np.array([0.7, -0.4])
    real = regression(x @ truth + rng.normal(size=n_rows))
    given = dp.SGLD(batch_size=200, clip_norm=best.clip_norm, step_size=best.step_size)
    tree = dp.sample(500, tune=500, epsilon=8.0, delta=1e-5, step=given, model=real, progressbar=False)
    draws = tree["posterior"]["slopes"].values[0]
    assert np.abs(draws.mean(axis=0) - truth).max() < 4 / np.sqrt(n_rows) * (1 + best.distance)
