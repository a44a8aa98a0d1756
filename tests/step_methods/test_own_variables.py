"""Which variables a step moves, and which no row tells anything about."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
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


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [hierarchy, not_centred, bounds_that_move])
def test_no_row_is_in_the_conditional_of_what_is_left_over(make, rng):
    """Two tables, and points that differ in one variable alone: the rows add the same to both."""
    model = make()
    fit = model.compile_logp(vars=model.observed_RVs, jacobian=False)
    reached = reached_by_rows(model)
    for rv in model.free_RVs:
        value = str(model.rvs_to_values[rv].name)
        here = {name: rng.normal(size=np.shape(at)) for name, at in model.initial_point().items()}
        there = {**here, value: here[value] + 0.3}
        assert (fit(here) == pytest.approx(fit(there), abs=1e-12)) == (rv.name not in reached), rv.name


@pytest.mark.parametrize("wrong", [[], ["mean", "mean"], [1], 3.5, [None]])
def test_names_are_checked(wrong):
    with pytest.raises(ArgumentError, match="vars must name"):
        dp.TemperedGibbs(wrong)


def test_a_density_written_by_hand_hides_nothing():
    """A scale that is no argument of it reaches the density alone."""
    with pm.Model() as model:
        mean, scale = pm.Normal("mean"), pm.HalfNormal("scale")
        pm.CustomDist("y", mean, logp=lambda value, mean: pm.logp(pm.Normal.dist(mean, scale), value), observed=ROWS)
    assert reached_by_rows(model) == {"mean", "scale"}
