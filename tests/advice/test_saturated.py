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


def test_no_row_is_looked_at():
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=500)
    assert said(slopes, domain) == said(slopes, domain, values=1) != []
