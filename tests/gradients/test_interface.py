"""Where free variables meet rows: as few numbers as there can be, on scales of any real number."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
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


def problems(model, domain=None):
    with pytest.raises(UnsupportedModelError) as caught:
        interface_of(model, domain)
    return [(problem.where, problem.what) for problem in caught.value.problems]


def test_discrete_free_variables_are_refused():
    with pm.Model() as model:
        kind = pm.Bernoulli("kind", 0.5)
        pm.Bernoulli("y", logit_p=pm.Normal("a") * kind, observed=Y)
    assert [where for where, _ in problems(model)] == ["kind"]


def test_every_problem_is_told_at_once():
    with pm.Model() as model:
        a, rows = pm.Normal("a"), pm.Normal("rows", shape=8)
        kind = pm.Bernoulli("kind", 0.5)
        y = pm.Bernoulli("y", logit_p=a * kind + rows, observed=Y)
        pm.Potential("sum", y.sum())
    assert {"kind", "rows", "sum"} <= {where for where, _ in problems(model)}


def test_rows_that_do_not_separate_are_refused():
    with pm.Model() as model:
        x = pm.Data("x", X)
        pm.Normal("y", pm.Normal("b") * (x - x.mean()), 1, observed=X)
    assert problems(model)[0][0] == "y"


def test_bounds_that_depend_on_other_free_variables_are_refused():
    with pm.Model() as model:
        most = pm.HalfNormal("most")
        pm.Bernoulli("y", p=pm.Uniform("p", 0, most), observed=Y)
    assert problems(model) == [("p", "its bounds depend on other free variables")]


def test_a_bounded_variable_without_a_transform_is_refused():
    with pm.Model() as model:
        pm.Bernoulli("y", p=pm.Uniform("p", default_transform=None), observed=Y)
    assert problems(model)[0][0] == "p"


def test_counts_without_bounds_are_refused():
    with pm.Model() as model:
        pm.Poisson("y", pm.HalfNormal("rate"), observed=Y)
    ((where, what),) = problems(model)
    assert where == "y" and "bounds" in what


def test_values_of_a_row_that_depend_on_each_other_are_refused():
    with pm.Model() as model:
        pm.MvStudentT("y", nu=4, mu=pm.Normal("mu", shape=2), scale=np.eye(2), observed=np.stack([X, X], axis=1))
    ((where, what),) = problems(model, dp.Domain(bounds={"y": (-3, 3)}))
    assert where == "y" and "depend on each other" in what


def test_a_model_whose_rows_no_free_variable_reaches_is_refused():
    with pm.Model() as model:
        pm.Normal("a")
        pm.Bernoulli("y", p=0.3, observed=Y)
    assert problems(model)[0][1].startswith("no free variable")


def test_nothing_depends_on_what_rows_hold():
    one = interface_of(*models.normal())
    other = interface_of(*models.normal(y=np.full(models.ROWS, 1e9)))
    assert names(one) == names(other)
