"""Priors under which nearly all rows are certain are named; made-up rows alone are looked at."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

import pymc_dp as dp
from pymc_dp.advice.saturated import saturated
from pymc_dp.inspection.inspect import inspect

ROWS = 120


def said(build, domain, values=0):
    with pm.Model() as model:
        build(np.full(ROWS, values))
    return saturated(inspect(model, domain).rows)


def intercept(sd):
    return lambda y: pm.Bernoulli("y", logit_p=pm.Normal("a", 0, sd), observed=y)


def slopes(y):
    x = pm.Data("x", np.zeros((ROWS, 2)))
    pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 10) + x @ pm.Normal("b", 0, 10, shape=2), observed=y)


def groups(y):
    b = pm.Normal("b", pm.Normal("mu"), pm.HalfNormal("spread", 30), shape=3)
    k = pm.Data("k", np.full(ROWS, 5))
    pm.Binomial("y", n=k, logit_p=b[pm.Data("g", np.zeros(ROWS, dtype=int))], observed=y)


def outcomes(y):
    pm.Categorical("y", logit_p=pm.Data("x", np.zeros((ROWS, 2))) @ pm.Normal("W", 0, 20, shape=(2, 3)), observed=y)


@pytest.mark.parametrize("sd", [1.0, 5.0, 20.0])
def test_the_share_of_saturated_rows_is_that_of_the_prior(sd):
    """With a logit of N(0, sd) it is 2 Φ(-logit(.99) / sd)."""
    share = 2 * norm.cdf(-np.log(99) / sd)
    lines = said(intercept(sd), dp.Domain())
    if share < 0.4:
        assert not lines
    else:
        assert (
            abs(int(lines[0].partition("%")[0].split()[-1]) / 100 - share) < 0.12 and "the priors of a are" in lines[0]
        )


def test_all_that_a_probability_depends_on_is_named():
    bounds = dp.Domain(bounds={"x": (-1, 1), "k": (1, 9)})
    for build, names in ((slopes, "a and b"), (groups, "mu, spread and b"), (outcomes, "W")):
        (line,) = said(build, dp.Domain(bounds={key: bounds.bounds[key] for key in ("x", "k")[build is groups :][:1]}))
        assert f"the priors of {names} are so wide" in line and "a probability of y below 0.01 or above 0.99" in line


def test_no_row_is_looked_at():
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=500)
    assert said(slopes, domain) == said(slopes, domain, values=1) != []


def test_explain_says_so_where_the_model_can_be_released():
    with pm.Model() as model:
        slopes(np.zeros(ROWS, dtype=int))
    found = dp.explain(model, dp.Domain(bounds={"x": (-1, 1)}), delta=1e-6)
    text = " ".join(str(found).replace("│", " ").split())
    assert any("the priors of a and b are so wide" in line for line in found.cautions)
    assert "beware the priors of a and b are so wide that" in text


def test_what_cannot_be_made_up_is_passed_over():
    flat = lambda y: pm.Bernoulli("y", logit_p=pm.Flat("a"), observed=y)  # noqa: E731
    assert said(flat, dp.Domain()) == [] and said(slopes, dp.Domain()) == []
