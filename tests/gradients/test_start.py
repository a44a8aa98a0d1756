"""A walk starts within the bounds of the responses, also where the prior hardly knows of them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.private_model import path_prior
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.start import start_of
from pymc_dp.rows.gate import opened_gate


def started(width):
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        x = pm.Data("x", rng.uniform(60, 150, 32))
        b, sigma = pm.Normal("b", 0, width, shape=2), pm.HalfCauchy("sigma", 2.5)
        pm.Normal("y", b[0] + b[1] * x, sigma, observed=rng.normal(87, 20, 32))
    interface = interface_of(model, dp.Domain(bounds={"x": (60, 150), "y": (0, 200)}))
    made = Simulated.of(RowScores.of(interface, mode="FAST_COMPILE"), {}, rng)
    return made, start_of(made, path_prior(interface))


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)


def test_under_a_vague_prior_it_starts_where_responses_are_within_their_bounds(few):
    made, start = started(100)
    (intercept, slope, log_sigma) = start
    assert 70 < intercept + 105 * slope < 130, "the middle of the bounds"
    assert 40 < np.exp(log_sigma) < 80, "as spread evenly over them"
    assert np.isfinite(made.scaled(start).scale).all()
    assert made.scaled(start).scale[0] > 5 * made.scale[0], "scores of draws far outside are not those on the way"


def two_ways():
    rng = np.random.default_rng(6)
    g, h = rng.integers(0, 3, 300), rng.integers(0, 4, 300)
    with pm.Model() as model:
        at_g, at_h = pm.Data("g", g), pm.Data("h", h)
        a, b = pm.Normal("a", 0, 10, shape=3), pm.Normal("b", 0, 10, shape=4)
        pm.Normal("y", a[at_g] + b[at_h], 1, observed=rng.normal(size=300))
    return model, dp.Domain(bounds={"y": (-9, 9)}, levels={"g": range(3), "h": range(4)})


def test_a_direction_along_which_no_row_changes_is_found(few):
    made = Simulated.of(RowScores.of(interface_of(*two_ways()), mode="FAST_COMPILE"), {}, np.random.default_rng(1))
    (direction,) = (made.unidentified(np.zeros(7)) * made.scale[:, None]).T
    assert direction / direction[0] == pytest.approx([1, 1, 1, -1, -1, -1, -1])
    assert started(0.5)[0].unidentified(np.zeros(3)).shape == (3, 0)


@pytest.mark.slow
def test_rows_say_nothing_along_it():
    plan = Planned.of(dp.Gradients(), interface_of(*two_ways()), Budget(10, 1e-5))
    prior = np.zeros(7), np.eye(7) / 100
    with opened_gate():
        _, covariance = plan.quadratic(plan.walk(plan.read())).posterior(*prior)
    along = np.array([1, 1, 1, -1, -1, -1, -1]) / np.sqrt(7)
    assert along @ covariance @ along == pytest.approx(100, rel=0.02), "that of the prior; noise made it 34 to 88"
    total = np.eye(7)[0] + np.eye(7)[3]
    assert total @ covariance @ total < 1, "a sum of both is known"
