"""Elements of several free variables are told apart through stacks, joins and switches; what computes is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.selections import selections


@pytest.fixture(scope="module")
def prior_model():
    with pm.Model() as model:
        pm.Beta("a", 1, 1)
        pm.Beta("b", 1, 1, shape=3)
        pm.Dirichlet("v", [1.0, 1.0])
        pm.Dirichlet("w", np.ones((2, 2)))
        pm.Beta("other", 1, 1)
    return model


def found(prior_model, make):
    result = selections(make(prior_model), priors_of(prior_model)[:4], prior_model)
    return None if result is None else [item.tolist() for item in result]


LEVELS = np.array([0, 1, 1, 0])


@pytest.mark.parametrize(
    ("make", "which", "elements"),
    [
        (lambda m: m["a"], 0, 0),
        (lambda m: m["b"][LEVELS], [1] * 4, [0, 1, 1, 0]),
        (lambda m: pt.stack([m["a"], m["b"][2]])[LEVELS], [0, 1, 1, 0], [0, 2, 2, 0]),
        (lambda m: pt.switch(LEVELS, m["a"], m["b"][1]), [1, 0, 0, 1], [1, 0, 0, 1]),
        (lambda m: pt.switch(pt.eq(LEVELS, 0), m["b"][LEVELS], m["a"]), [1, 0, 0, 1], [0, 0, 0, 0]),
        (lambda m: pt.concatenate([m["b"], m["a"][None]])[::-1], [0, 1, 1, 1], [0, 2, 1, 0]),
        (lambda m: pt.stack([m["v"], m["w"][1]])[LEVELS[:2]], [[2, 2], [3, 3]], [[0, 1], [2, 3]]),
        (lambda m: pt.alloc(m["a"], 2), [0, 0], [0, 0]),
    ],
)
def test_elements_are_told_apart(prior_model, make, which, elements):
    assert found(prior_model, make) == [which, elements]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: pt.stack([m["a"], pt.constant(0.5)]),
        lambda m: pt.stack([m["a"], m["other"]]),
        lambda m: pt.stack([m["a"], 1 - m["b"][0]]),
        lambda m: LEVELS * m["a"] + (1 - LEVELS) * m["b"][0],
        lambda m: pt.switch(m["a"] > 0.5, m["b"][0], m["b"][1]),
        lambda m: pt.switch(LEVELS, m["a"], 0.5),
        lambda m: m["b"][pt.cast(m["a"], "int64")],
        lambda m: m["b"][pt.argsort(m["b"])],
        lambda m: m["b"] * m["a"],
        lambda m: pt.sort(m["b"]),
        lambda m: pt.as_tensor([0.5]),
    ],
)
def test_anything_else_is_no_selection(prior_model, make):
    assert found(prior_model, make) is None
