"""What is assumed public is listed, so that users can object."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect

ROWS = np.arange(7.0)
SHIFT = 0.123


def custom(mu, **kwargs):
    shifted = {
        "logcdf": lambda x, mu: pm.logcdf(pm.Normal.dist(mu + SHIFT, 1), x),
        "logp": lambda x, mu: -((x - mu) ** 2),
    }
    return pm.CustomDist("y", mu, **shifted, **kwargs)


WRITTEN = {
    "density": custom,
    "draws": lambda mu, **kwargs: pm.CustomDist(
        "y", mu, dist=lambda mu, size: pm.Normal.dist(mu + SHIFT, 1, size=size), **kwargs
    ),
    "a part": lambda mu, **kwargs: pm.Censored(
        "y", pm.CustomDist.dist(mu, dist=lambda mu, size: pm.Normal.dist(mu + SHIFT, 1, size=size)), -5, 5, **kwargs
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_functions_written_by_hand_are_listed_since_numbers_may_hide_in_them(name):
    with pm.Model() as model:
        WRITTEN[name](pm.Normal("mu", 0, 1), observed=ROWS)
    found = inspect(model, dp.Domain(bounds={"y": (-9, 9)}))
    assert not found.problems
    assert [line for line in found.assumptions if "functions" in line] == [
        "the functions that y is written with, and numbers in them"
    ]


def test_distributions_of_pymc_hold_no_other_numbers_than_are_listed():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Censored("y", pm.StudentT.dist(4, mu=mu, sigma=SHIFT), -5, 5, observed=ROWS)
    found = inspect(model, dp.Domain(bounds={"y": (-9, 9)})).assumptions
    assert "numbers in the likelihood of y: 4, 0.123, -5, 5" in found
    assert not any("functions" in line for line in found)
