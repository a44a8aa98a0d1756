"""Which element each entry of a parameter is, or is a power of: found where it is so, and nowhere else."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.priors import priors_of
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.likelihoods import box_of
from pymc_dp.step_methods.gibbs.selected_elements import NOWHERE, placed, places_of

GROUP = np.array([2, 0, 1, 1])


@pytest.fixture(scope="module")
def prior_model():
    with pm.Model() as model:
        pm.Uniform("v", 0.2, 3.0, shape=3)
        pm.Uniform("signed", -2.0, 3.0, shape=3)
        pm.Uniform("u", 0.5, 2.0)
        pm.Categorical("z", np.full(3, 1 / 3), shape=3)
        pm.Bernoulli("flag", 0.5)
        pm.DiscreteUniform("year", 0, 1000)
        pm.Dirichlet("shares", np.ones((3, 3)), shape=(3, 3))
        pm.Dirichlet("other", np.ones(3))
    return model


@pytest.fixture(scope="module")
def find(prior_model):
    priors = {prior.name: prior for prior in priors_of(prior_model)}
    free = {prior.variable: box_of(prior) for prior in priors.values()}
    return lambda name, make: places_of(make(prior_model), priors[name], free)


FOUND = {
    "itself": ("v", lambda m: m["v"], 1.0, False),
    "product with itself": ("v", lambda m: m["v"][m["z"]] * pt.sqrt(m["v"][m["z"]]), 1.5, False),
    "classes in one place": ("v", lambda m: m["v"][m["z"]][GROUP] * m["v"][m["z"]][GROUP], 2.0, False),
    "chosen": ("v", lambda m: m["v"][GROUP], 1.0, False),
    "precision": ("v", lambda m: (pt.abs(m["v"]) ** -0.5 * pt.sign(m["v"]))[GROUP], -0.5, False),
    "deviation": ("v", lambda m: pt.sqrt(m["v"][GROUP]), 0.5, False),
    "reciprocal": ("v", lambda m: 1 / m["v"][GROUP], -1.0, True),
    "square": ("v", lambda m: m["v"] ** 2, 2.0, False),
    "product": ("v", lambda m: m["u"] * m["v"][GROUP] * np.arange(1.0, 5), 1.0, True),
    "signed": ("signed", lambda m: m["signed"][GROUP], 1.0, False),
    "of classes": ("v", lambda m: m["v"][m["z"]][GROUP], 1.0, False),
    "of classes, at once": ("v", lambda m: m["v"][m["z"][GROUP]], 1.0, False),
    "switched": ("v", lambda m: pt.switch(m["flag"] > GROUP, m["v"][0], m["v"][1]), 1.0, False),
    "stacked": ("u", lambda m: pt.stack([m["u"], m["v"][0]])[m["flag"]], 1.0, False),
    "simplexes": ("shares", lambda m: m["shares"][GROUP], 1.0, False),
    "pieces of two": ("v", lambda m: pt.concatenate([m["v"], m["u"][None]])[::-1], 1.0, False),
    "beside a constant": ("u", lambda m: pt.switch(GROUP, m["u"], 0.5), 1.0, False),
    "of many": ("u", lambda m: pt.alloc(m["u"], 2), 1.0, False),
    "simplexes, stacked": ("shares", lambda m: pt.stack([m["other"], m["shares"][1]])[GROUP[1:]], 1.0, False),
    "simplexes, switched": (
        "shares",
        lambda m: pt.switch(GROUP[:, None] > 0, m["shares"][1], m["other"]),
        1.0,
        False,
    ),
    "simplexes, entry by entry": ("other", lambda m: pt.stack([m["other"][k] for k in range(3)]), 1.0, False),
    "simplexes of classes": ("shares", lambda m: m["shares"][m["z"]][GROUP], 1.0, False),
}


@pytest.mark.parametrize("name", FOUND)
def test_selections_powers_and_products_are_found(name, find):
    variable, make, exponent, scaled = FOUND[name]
    found = find(variable, make)
    assert found is not None and found.exponent == exponent and found.scaled == scaled
    assert (found.static is None) == (
        "class" in name or name in ("product with itself", "product", "switched", "stacked")
    )


LOST = {
    "sum": ("v", lambda m: m["v"] + 1.0),
    "two elements": ("v", lambda m: m["v"] * m["v"][0]),
    "two elements that rarely part": ("v", lambda m: m["v"][pt.switch(m["year"] > 990, 1, 0)] * m["v"][0]),
    "an element over another, rarely": ("v", lambda m: m["v"][0] ** 2 / m["v"][pt.switch(m["year"] > 990, 1, 0)]),
    "two powers": ("v", lambda m: pt.switch(m["flag"], m["v"], m["v"] ** 2)),
    "condition": ("u", lambda m: pt.switch(m["u"] > 1, m["u"], 2.0)),
    "index": ("z", lambda m: m["v"][m["z"]]),
    "absolute value of what can be negative": ("signed", lambda m: pt.abs(m["signed"])),
    "square of what can be negative": ("signed", lambda m: m["signed"] ** 2),
    "exponential": ("v", lambda m: pt.exp(m["v"])),
    "float32": ("v", lambda m: pt.cast(pt.cast(m["v"], "float32"), "float64")),
    "categories turned": ("shares", lambda m: m["shares"][:, ::-1]),
    "categories turned by a class": ("shares", lambda m: m["shares"][0][(m["z"] + np.arange(3)) % 3]),
    "categories turned by a class, rarely": (
        "shares",
        lambda m: m["shares"][0][(pt.switch(m["year"] > 990, 1, 0) + np.arange(3)) % 3],
    ),
    "two elements, behind a rare switch": (
        "v",
        lambda m: pt.switch(m["year"] > 990, m["v"][0] * m["v"][1], m["v"][0] ** 2),
    ),
    "a mix of simplexes": ("shares", lambda m: pt.switch(m["flag"], m["shares"][0], m["shares"][1][::-1])),
    "sorted": ("v", lambda m: pt.sort(m["v"])),
    "sorted by itself": ("v", lambda m: m["v"][pt.argsort(m["v"])]),
    "an index of itself": ("v", lambda m: m["v"][pt.cast(m["u"] * 0 + m["v"][0], "int64")]),
    "pieces of two simplexes": ("shares", lambda m: pt.stack([m["shares"][0, 0], m["other"][1], m["other"][2]])),
    "simplexes, one of two by a class": ("shares", lambda m: pt.stack([m["shares"][0], m["other"]])[m["flag"]]),
    "a part of a simplex": ("shares", lambda m: m["shares"][:, 0]),
}


@pytest.mark.parametrize("name", LOST)
def test_anything_else_is_not(name, find):
    assert find(*LOST[name]) is None


def test_places_follow_the_values_of_other_variables(prior_model, find):
    functions = Functions(prior_model, prior_model.eval_rv_shapes())
    switched = placed(find("v", FOUND["switched"][1]), (4,), functions.function)
    assert switched({"flag": np.array(1)}).tolist() == [1, 0, 1, 1]
    assert switched({"flag": np.array(0)}).tolist() == [1, 1, 1, 1]
    stacked = placed(find("u", FOUND["stacked"][1]), (2,), functions.function)
    assert [stacked({"flag": np.array(k), "v": np.ones(3)}).tolist() for k in (0, 1)] == [[0, 0], [NOWHERE, NOWHERE]]
    simplexes = find("shares", FOUND["simplexes, stacked"][1]).static
    assert simplexes.tolist() == [[NOWHERE] * 3, [3, 4, 5], [3, 4, 5]]
    assert find("v", FOUND["pieces of two"][1]).static.tolist() == [NOWHERE, 2, 1, 0]
    classes = placed(find("v", FOUND["of classes"][1]), (4,), functions.function)
    assert classes({"z": np.array([2, 0, 1])}).tolist() == [1, 2, 0, 0]
    assert placed(find("v", FOUND["chosen"][1]), (4,), functions.function)({}).tolist() == GROUP.tolist()
