"""Refusals name what is in the way, and their remedies, taken literally, make a proof."""

import ast
import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError

N = 7
REAL, COUNT = np.zeros(N), np.zeros(N, dtype=int)
U = pm.Uniform


def regression():
    x, b = pm.Data("x", np.zeros((N, 2))), pm.Normal("b", shape=2)
    pm.Normal("y", x @ b, pm.HalfNormal("sigma"), observed=REAL)


def groups():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=4)[pm.Data("g", COUNT)], observed=COUNT)


def two_variables():
    p, rate = pm.Beta("p", 1, 1), pm.Gamma("rate", 2, 1)
    pm.Bernoulli("y", p, observed=COUNT, dims="row")
    pm.Poisson("z", rate, observed=COUNT, dims="row")


# Likelihood, bounds given, names that the text must hold.
REFUSED = {
    "probabilities to 0 and 1": (lambda: pm.Bernoulli("y", U("p", 0, 1), observed=COUNT), {}, ["'p'"]),
    "probabilities to 0": (lambda: pm.Bernoulli("y", U("p", 0, 0.5), observed=COUNT), {}, ["'p'"]),
    "probabilities to 1": (lambda: pm.Bernoulli("y", U("p", 0.5, 1), observed=COUNT), {}, ["'p'"]),
    "a beta prior": (lambda: pm.Bernoulli("y", pm.Beta("p", 2, 2), observed=COUNT), {}, ["'p'"]),
    "log odds of any size": (
        lambda: pm.Bernoulli("y", logit_p=pm.StudentT("eta", nu=3), observed=COUNT),
        {},
        ["'eta'"],
    ),
    "values from 0 to 1": (
        lambda: pm.Beta("y", U("a", 0.5, 4), U("b", 0.5, 4), observed=REAL),
        {"y": (0, 1)},
        ["'y'"],
    ),
    "values from 0": (lambda: pm.Gamma("y", U("a", 0.5, 4), U("b", 0.5, 4), observed=REAL), {"y": (0, 5)}, ["'y'"]),
    "shares without bounds": (lambda: pm.Beta("y", U("a", 0.5, 4), U("b", 0.5, 4), observed=REAL), {}, ["'y'"]),
    "durations without bounds": (lambda: pm.Gamma("y", U("a", 0.5, 4), U("b", 0.5, 4), observed=REAL), {}, ["'y'"]),
    "reals without bounds": (lambda: pm.Normal("y", U("mu", -1, 1), 1, observed=REAL), {}, ["'y' has no bounds"]),
    "counts without bounds": (lambda: pm.Poisson("y", U("mu", 1, 5), observed=COUNT), {}, ["'y' has no bounds"]),
    "a rate from 0": (lambda: pm.Poisson("y", U("mu", 0, 5), observed=COUNT), {"y": (0, 10)}, ["'mu'"]),
    "a rate without bounds": (
        lambda: pm.Poisson("y", pm.Gamma("mu", 2, 1), observed=COUNT),
        {"y": (0, 10)},
        ["'mu' has no bounds"],
    ),
    "a rate of waiting times": (
        lambda: pm.Exponential("y", pm.Gamma("rate", 1, 1), observed=REAL),
        {"y": (0, 5)},
        ["'rate' has no bounds"],
    ),
    "a scale without bounds": (
        lambda: pm.Normal("y", 0, pm.HalfNormal("sigma"), observed=REAL),
        {"y": (-1, 1)},
        ["'sigma' has no bounds"],
    ),
    "location and scale": (
        lambda: pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=REAL),
        {"y": (-1, 1)},
        ["'mu': (", "'sigma': ("],
    ),
    "values and a scale": (
        lambda: pm.Cauchy("y", U("mu", -1, 1), pm.HalfNormal("s"), observed=REAL),
        {},
        ["'y': (", "'s': ("],
    ),
    "everything": (
        lambda: pm.StudentT(
            "y", nu=pm.Gamma("nu", 2, 0.1), mu=pm.Normal("mu"), sigma=pm.HalfNormal("s"), observed=REAL
        ),
        {"y": (-3, 3)},
        ["'nu': (", "'mu': (", "'s': ("],
    ),
    "values from 0, and everything": (
        lambda: pm.LogNormal("y", pm.Normal("mu"), pm.HalfNormal("s"), observed=REAL),
        {"y": (0, 5)},
        ["'y': (", "'mu': (", "'s': ("],
    ),
    "a simplex to its faces": (
        lambda: pm.Categorical("y", p=pm.Dirichlet("p", np.ones(3), dims="level"), observed=COUNT),
        {},
        ["'p'"],
    ),
    "trials until success": (lambda: pm.Geometric("y", U("p", 0, 1), observed=COUNT), {"y": (1, 10)}, ["'p'"]),
    "a mixture's share": (
        lambda: pm.ZeroInflatedPoisson("y", pm.Beta("psi", 1, 1), pm.Gamma("mu", 2, 1), observed=COUNT),
        {"y": (0, 10)},
        ["'psi': (", "'mu': ("],
    ),
    "a predictor": (regression, {"y": (-1, 1), "x": (-1, 1)}, ["'sigma': ("]),
    "elements of a vector": (groups, {}, ["'p'"]),
    "two observed variables": (two_variables, {"z": (0, 9)}, ["y: ", "z: ", "'p'", "'rate'"]),
}


def built(build):
    with pm.Model(coords={"level": range(3), "row": range(len(COUNT))}) as model:
        build()
    return model


def domain(bounds, neighbours):
    return dp.Domain(bounds=bounds, neighbours=neighbours, n_max=None if neighbours == "replace" else 100)


def refusal(model, bounds, neighbours):
    try:
        found = dp.sensitivity(model, domain(bounds, neighbours))
    except UnsupportedModelError as error:
        return "\n".join(map(str, error.problems))
    assert found.problems
    return "\n".join(map(str, found.problems))


def taken(text, call):
    """What the text proposes to give to a call: a mapping from names to ends."""
    found = re.findall(re.escape(call) + r"(\{[^}]*\})\)", text)
    return {name: ends for one in found for name, ends in ast.literal_eval(one).items()}


def declared(text):
    """What somebody who reads the text declares: ends of their own, where the text says what these have to obey."""
    with pytest.raises(ValueError, match="malformed node"):
        taken(text, "Domain(bounds=")  # names of ends, which nobody can run as they are
    found = {}
    for name in re.findall(r"'(\w+)': \(low, high\)", text):
        said = re.search(rf"'{name}' with ([^,']*)", text)
        ends = dict(re.findall(r"(low|high) [><] ([\d.]+\d|\d)", said[1] if said else ""))
        low = float(ends["low"]) + 0.02 if "low" in ends else 0
        found[name] = (low, float(ends["high"]) - 0.02 if "high" in ends else low + 7)
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("name", REFUSED)
def test_the_remedy_of_a_refusal_makes_a_proof(name, neighbours):
    build, bounds, names = REFUSED[name]
    model = built(build)
    text = refusal(model, bounds, neighbours)
    assert all(expected in text for expected in names), text
    truncated, bounded = taken(text, "dp.truncate(model, "), declared(text) if "Domain(bounds=" in text else {}
    assert (truncated or bounded) and "dp.clamp" not in text, text
    mended = dp.truncate(model, truncated) if truncated else model
    found = dp.sensitivity(mended, domain({**bounds, **bounded}, neighbours))
    assert 0 < found.range.value < np.inf and not found.problems












@pytest.mark.few(1)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_nothing_of_the_rows_is_in_a_refusal(neighbours):
    canary = np.full(N, 0.123456789)
    with pm.Model() as model:
        pm.Gamma("y", U("a", 0.5, 4), pm.HalfNormal("b"), observed=canary)
    with pm.Model() as other:
        pm.Gamma("y", U("a", 0.5, 4), pm.HalfNormal("b"), observed=canary[::-1] + 3)
    texts = [refusal(one, {"y": (0, 5)}, neighbours) for one in (model, other)]
    assert texts[0] == texts[1] and "0.123" not in texts[0]
