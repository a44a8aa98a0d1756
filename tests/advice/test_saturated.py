"""Priors under which nearly all rows are certain are named; made-up rows alone are looked at."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

import pymc_dp as dp

ROWS = 120


def said(build, domain, values=0):
    with pm.Model() as model:
        build(np.full(ROWS, values))
    return [line for line in dp.explain(model, domain, delta=1e-6).cautions if "so wide" in line]


def intercept(sd):
    return lambda y: pm.Bernoulli("y", logit_p=pm.Normal("a", 0, sd), observed=y)


def slopes(y):
    x = pm.Data("x", np.zeros((ROWS, 1)))
    pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 10) + x @ pm.Normal("b", 0, 10, shape=1), observed=y)


@pytest.mark.parametrize("sd", [1.0, 20.0])
def test_the_share_of_saturated_rows_is_that_of_the_prior(sd):
    """With a logit of N(0, sd) it is 2 Φ(-logit(.99) / sd)."""
    share, lines = 2 * norm.cdf(-np.log(99) / sd), said(intercept(sd), dp.Domain())
    assert (lines == []) == (share < 0.4)
    if lines:
        found = int(lines[0].partition("%")[0].split()[-1]) / 100
        assert abs(found - share) < 0.12 and "the priors of a are" in lines[0]


def test_all_that_a_probability_depends_on_is_named_and_no_row_is_looked_at():
    domain = dp.Domain(bounds={"x": (-1, 1)})
    (line,) = said(slopes, domain)
    assert "the priors of a and b are so wide" in line and "a probability of y below 0.01 or above 0.99" in line
    assert said(slopes, domain, values=1) == [line]
