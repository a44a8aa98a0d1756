"""A walk starts within the bounds of the responses, also where the prior hardly knows of them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.private_model import path_prior
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.start import start_of


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
