"""A table of one row is read as one of two."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect


def overdispersed_of(m):
    with pm.Model() as model:
        excess = pm.Normal("excess", 0, pm.HalfNormal("spread"), shape=m)
        pm.Poisson("y", pt.exp(pm.Normal("rate") + excess), observed=np.zeros(m, dtype=int))
    return dp.integrate(model, "excess", nodes=5)


def mixture_of(m):
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), pm.Normal("mu", shape=2), 1.0, observed=np.zeros(m))
    return model


def censored_of(m):
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1.0), lower=None, upper=2.0, observed=np.zeros(m))
    return model


@pytest.mark.parametrize("build", [overdispersed_of, mixture_of, censored_of])
def test_a_table_of_one_row_is_read_as_one_of_two(build):
    """Numbers of one element that PyMC writes a density with counted as columns: one row was refused, and two not."""
    domain = dp.Domain(bounds={"y": (0, 9)}, neighbours="add_remove", n_max=9)
    one, two = (inspect(build(m), domain).rows for m in (1, 2))
    assert one.problems == two.problems == ()
    assert [column.name for column in one.columns] == [column.name for column in two.columns] == ["y"]
    assert one.assumptions == two.assumptions


@pytest.mark.parametrize("held", ["density", "distribution"])
def test_the_only_row_within_a_function_is_a_column_still(held):
    """A function in Python holds it, and the graph of the variable does not show it."""

    def columns(x):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            if held == "density":
                written = {"logp": lambda value, mean: -((value - mean - x) ** 2)}
            else:
                written = {"dist": lambda mean, size: pm.Normal.dist(mean + pt.constant(x) * 2, 1.0, size=size)}
            pm.CustomDist("y", mu, **written, observed=np.zeros(len(x)))
        found = inspect(model, dp.Domain(bounds={"y": (-5, 5)}, neighbours="add_remove", n_max=9)).rows
        assert not found.problems
        return [float(np.ravel(column.leaf.data)[0]) for column in found.columns]

    for x in (np.array([0.3]), np.array([0.3, 0.4])):
        assert set(columns(x)) & {0.3, 0.6}
