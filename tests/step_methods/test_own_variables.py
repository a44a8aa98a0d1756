"""Which variables a step moves, and which no row tells anything about."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.step_methods.own_variables import reached_by_rows
from tests.step_methods.turns import ROWS


def hierarchy():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        theta = pm.Normal("theta", mu, tau, shape=3)
        pm.Bernoulli("y", logit_p=theta[np.array([0, 1, 2, 1])], observed=np.array([0, 1, 1, 0]))
    return model


def not_centred():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        theta = pm.Deterministic("theta", mu + tau * pm.Normal("z", shape=3))
        pm.Bernoulli("y", logit_p=theta[np.array([0, 1, 2, 1])], observed=np.array([0, 1, 1, 0]))
    return model


def bounds_that_move():
    """At one unconstrained value theta is another number for another tau: rows tell about tau at once."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        theta = pm.Uniform("theta", 0, tau)
        pm.Normal("y", theta, 1 + pm.HalfNormal("s", pm.math.exp(mu)), observed=np.array([0.0, 1.0]))
    return model


@pytest.mark.parametrize(
    ("make", "reached"),
    [(hierarchy, {"theta"}), (not_centred, {"mu", "tau", "z"}), (bounds_that_move, {"theta", "s", "tau"})],
)
def test_what_rows_tell_about_is_read_off_the_graph(make, reached):
    assert reached_by_rows(make()) == reached


def test_a_density_written_by_hand_hides_nothing():
    """A scale that is no argument of it reaches the density alone."""
    with pm.Model() as model:
        mean, scale = pm.Normal("mean"), pm.HalfNormal("scale")
        pm.CustomDist("y", mean, logp=lambda value, mean: pm.logp(pm.Normal.dist(mean, scale), value), observed=ROWS)
    assert reached_by_rows(model) == {"mean", "scale"}
