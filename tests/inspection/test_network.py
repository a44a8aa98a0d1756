import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.network import Network, find_network

N = 30


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(3)
    return {"a": rng.integers(2, size=N), "c": rng.integers(3, size=N), "b": rng.integers(2, size=N)}


def by_variables(columns):
    a = pm.Bernoulli("a", pm.Beta("pa", 1, 1), observed=columns["a"])
    c = pm.Categorical("c", p=pm.Dirichlet("pc", np.ones((2, 3)))[a], observed=columns["c"])
    pm.Bernoulli("b", pm.Beta("pb", 1, 1, shape=(2, 3))[a, c], observed=columns["b"])


def by_an_expression(columns):
    a = pm.Bernoulli("a", pm.Beta("pa", 1, 1), observed=columns["a"])
    q = pm.Dirichlet("pc", np.ones((2, 3)))
    c = pm.Categorical("c", p=pm.math.switch(a[:, None], q[1], q[0]), observed=columns["c"])
    pm.Bernoulli("b", logit_p=pm.Normal("b0") + pm.Normal("b1") * a + pm.Normal("b2") * c, observed=columns["b"])


def found_in(write, columns, **domain):
    with pm.Model() as model:
        write(columns)
    inspection = inspect(model, dp.Domain(**domain)).sums
    assert not inspection.problems, inspection.problems
    return find_network(inspection)


@pytest.mark.parametrize("write", [by_variables, by_an_expression])
def test_every_way_of_writing_an_edge_is_one(write, columns):
    network = found_in(write, columns)
    assert isinstance(network, Network)
    parents = {node.name: {network.names[place] for place in node.parents} for node in network.nodes}
    assert parents == {"a": set(), "c": {"a"}, "b": {"a", "c"}}
    assert {node.name: node.n_levels for node in network.nodes} == {"a": 2, "c": 3, "b": 2}
    assert all(parent < place for place, node in enumerate(network.nodes) for parent in node.parents)


def in_a_circle(columns):
    a, b = pm.Data("a_rows", columns["a"]), pm.Data("b_rows", columns["b"])
    pm.Bernoulli("a", pm.Beta("pa", 1, 1, shape=2)[b], observed=a)
    pm.Bernoulli("b", pm.Beta("pb", 1, 1, shape=2)[a], observed=b)


def by_an_array(columns):
    pm.Bernoulli("a", pm.Beta("pa", 1, 1), observed=columns["a"])
    pm.Bernoulli("b", pm.Beta("pb", 1, 1, shape=2)[columns["a"]], observed=columns["b"])


def on_a_long_axis(columns):
    a = pm.Bernoulli("a", pm.Beta("pa", 1, 1), observed=columns["a"])
    pm.Bernoulli("b", pm.Beta("pb", 1, 1, shape=4)[a], observed=columns["b"])


def twice(columns):
    a = pm.Data("a_rows", columns["a"])
    for name in ("a", "again"):
        pm.Bernoulli(name, pm.Beta(f"p_{name}", 1, 1), observed=a)


def beside_a_normal(columns):
    by_variables(columns)
    pm.Normal("x", pm.Normal("m"), 1, observed=columns["a"] * 1.0)


@pytest.mark.parametrize(
    ("write", "where", "text"),
    [
        (in_a_circle, "model", "circle"),
        (by_an_array, "b", "no likelihood of the model observes"),
        (on_a_long_axis, "b", "an axis of length 4, but has 2 levels"),
        (twice, "again", "the same column as 'a'"),
        (beside_a_normal, "x", "it is Normal, and nodes are Bernoulli or Categorical"),
    ],
)
def test_what_is_no_network_says_why_and_what_to_do(write, where, text, columns):
    problems = found_in(write, columns, bounds={"x": (0, 1)} if write is beside_a_normal else {})
    assert isinstance(problems, tuple)
    assert [problem for problem in problems if problem.where == where and text in problem.what and problem.remedy]
