"""What is read off the priors of a prior model, and which element feeds which cell."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.priors import constant_values, priors_of, selection
from pymc_dp.step_methods.values import Values


@pytest.fixture(scope="module")
def prior_model():
    with pm.Model(coords={"g": ["a", "b", "c"]}) as model:
        pm.Truncated("p", pm.Beta.dist(2.0, 3.0), 0.1, 0.9, dims="g")
        pm.TruncatedNormal("mu", 1.0, 2.0, lower=-1.0, upper=4.0)
        pm.Uniform("u", -1.0, 3.0, shape=(2, 2))
        rate = pm.Gamma("rate", 2.0, 4.0)
        pm.Normal("child", 0.0, rate)
        pm.Dirichlet("q", np.array([1.0, 2.0, 3.0]), shape=(2, 3))
        pm.HalfNormal("sd", 2.0)
        pm.Uniform("moving", 0.0, rate)
    return model


@pytest.fixture(scope="module")
def priors(prior_model):
    return {prior.name: prior for prior in priors_of(prior_model)}


def test_supports_and_constants(priors):
    p = priors["p"]
    assert (p.distribution, p.shape, p.bounded) == ("beta", (3,), True)
    assert [item.tolist() for item in p.constants] == [[2.0] * 3, [3.0] * 3]
    assert p.low.tolist() == [0.1] * 3 and p.high.tolist() == [0.9] * 3
    mu = priors["mu"]
    assert (mu.distribution, float(mu.low), float(mu.high)) == ("normal", -1.0, 4.0)
    assert [float(item) for item in mu.constants] == [1.0, 2.0]
    assert priors["u"].distribution == "uniform" and priors["u"].high.tolist() == [[3.0, 3.0]] * 2
    assert not priors["rate"].bounded and float(priors["rate"].low) == 0
    np.testing.assert_allclose([float(item) for item in priors["rate"].constants], [2.0, 0.25])
    assert not priors["q"].bounded or priors["q"].low.min() == 0
    assert float(priors["sd"].low) == 0 and np.isinf(priors["sd"].high)


def test_what_hangs_on_other_variables_is_no_constant(priors):
    assert priors["child"].constants is None
    assert priors["moving"].low is None and not priors["moving"].bounded


def test_selections_are_followed(prior_model, priors):
    p, u = prior_model["p"], prior_model["u"]
    assert selection(p[np.array([2, 0, 0, 1])], priors["p"], prior_model).tolist() == [2, 0, 0, 1]
    assert selection(p[::-1], priors["p"], prior_model).tolist() == [2, 1, 0]
    assert selection(u[np.array([0, 1]), np.array([1, 0])], priors["u"], prior_model).tolist() == [1, 2]
    assert selection(prior_model["mu"][None], priors["mu"], prior_model).tolist() == [0]
    assert selection(pt.alloc(prior_model["mu"], 3), priors["mu"], prior_model).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m["p"] ** 2,
        lambda m: 1 - m["p"],
        lambda m: m["p"] * 1.0,
        lambda m: m["p"].sum()[None],
        lambda m: m["p"][pt.argsort(m["p"])],
        lambda m: pt.stack([m["mu"], 1.0]),
        lambda m: m["p"][pt.cast(m["rate"], "int64")][None],
        lambda m: pt.as_tensor([0.5]),
    ],
)
def test_anything_else_is_no_selection(prior_model, priors, make):
    found = make(prior_model)
    for prior in priors.values():
        assert selection(found, prior, prior_model) is None


def test_constants_are_evaluated_and_random_draws_are_not(prior_model):
    assert [value.tolist() for value in constant_values([pt.exp(pt.as_tensor([0.0]))])] == [[1.0]]
    assert constant_values([pm.Normal.dist()]) is None
    assert constant_values([prior_model["mu"] + 1], prior_model.free_RVs) is None
    assert constant_values([]) == []


def test_values_go_to_the_names_and_order_of_the_point(prior_model):
    point = prior_model.initial_point()
    wanted = {
        "p": np.array([0.2, 0.5, 0.1]),
        "mu": np.array(0.0),
        "u": np.array([[0.0, 1.0], [2.0, 2.5]]),
        "rate": np.array(3.0),
        "child": np.array(-1.0),
        "q": np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]),
        "sd": np.array(0.5),
        "moving": np.array(1.0),
    }
    moved = Values(prior_model).move(point, wanted)
    assert list(moved) == list(point)
    assert all(moved[name].dtype == point[name].dtype and moved[name].shape == point[name].shape for name in point)
    names = list(wanted)
    replaced = prior_model.replace_rvs_by_values([prior_model[name] for name in names])
    back = pytensor.function(prior_model.value_vars, replaced, mode="FAST_COMPILE", on_unused_input="ignore")
    for name, value in zip(names, back(*moved.values()), strict=True):
        np.testing.assert_allclose(value, wanted[name], atol=1e-12)
    assert moved["p_interval__"][2] == -np.inf, "an edge of the support stays an edge"
