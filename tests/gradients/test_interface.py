"""Where free variables meet rows: as few numbers as there can be, on scales of any real number."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.simulated import parameter_draws
from tests.gradients import models

Y, X, G = np.arange(8) % 2, np.linspace(-1, 1, 8), np.arange(8) % 3


def names(found):
    return [(part.name, part.shape, part.free) for part in found.parts]


def test_group_intercepts_are_cut_behind_their_mean_and_spread():
    found = interface_of(*models.groups())
    assert sorted(names(found)) == [("alpha", (4,), False), ("b", (3,), True)] and found.size == 7


@pytest.mark.parametrize(("build", "size"), [(models.negative_binomial, 5), (models.ordered, 6), (models.two, 8)])
def test_free_variables_that_meet_rows_themselves_are_cut_there(build, size):
    found = interface_of(*build())
    assert found.size == size and all(part.free for part in found.parts)


def test_many_coefficients_of_few_predictors_are_cut_where_they_are_few():
    """A network of public features makes three intercepts of 50 weights."""
    features = np.random.default_rng(1).normal(size=(3, 50))
    with pm.Model() as model:
        weights = pm.Normal("weights", shape=50)
        levels = pm.Deterministic("levels", pm.Data("features", features) @ weights)
        pm.Bernoulli("y", logit_p=levels[pm.Data("g", G)], observed=Y)
    found = interface_of(model, dp.Domain(public=["features"]))
    assert [(name, free) for name, _, free in names(found)] == [("levels", False)] and found.size == 3


def test_something_computed_that_is_not_any_real_number_is_cut_before():
    with pm.Model() as model:
        one, other = pm.HalfNormal("one"), pm.HalfNormal("other")
        pm.Normal("y", 0, pt.sqrt(one**2 + other**2), observed=X)
    assert names(interface_of(model, dp.Domain(bounds={"y": (-1, 1)}))) == [("one", (), True), ("other", (), True)]


@pytest.mark.slow
def test_values_are_those_of_the_model_on_their_own_scales(rng):
    model, domain = models.groups()
    found = interface_of(model, domain)
    draws = parameter_draws(found, 4000, rng)
    part = next(part for part in found.parts if part.name == "alpha")
    alpha = draws[:, part.start : part.start + part.size]
    assert np.cov(alpha.T)[0, 1] == pytest.approx(1, abs=0.15), "by the mean that all groups have in common"
    assert alpha.var() == pytest.approx(2, abs=0.3)
    sigma = parameter_draws(interface_of(*models.normal()), 4000, rng)[:, -1]
    assert sigma.mean() == pytest.approx(0, abs=0.1) and sigma.std() == pytest.approx(1, abs=0.1)
