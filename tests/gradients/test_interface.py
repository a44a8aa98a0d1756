"""Where free variables meet rows: as few numbers as there can be, on scales of any real number."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from tests.gradients import models

Y, X, G = np.arange(8) % 2, np.linspace(-1, 1, 8), np.arange(8) % 3


def names(found):
    return [(part.name, part.shape, part.free) for part in found.parts]


def test_group_intercepts_are_cut_behind_their_mean_and_spread():
    found = interface_of(*models.groups())
    assert sorted(names(found)) == [("alpha", (4,), False), ("b", (3,), True)] and found.size == 7


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
