"""Rows that are tried: within what is public about a column, whatever the table holds."""

import numpy as np
import pymc as pm

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.simulation.columns import ROWS, public_rows


def columns(values, public=()):
    with pm.Model() as model:
        x = pm.Data("x", values)
        pm.Bernoulli("y", logit_p=pm.Normal("b", 0, 1) * x, observed=np.zeros(len(values), dtype=int))
    return inspect(model, Domain(bounds={"x": (-2, 3)}, public=public)).rows.columns


def test_ends_come_first_and_nothing_leaves_the_bounds():
    found = {c.name: t for c, t in zip(columns(np.zeros(4)), public_rows(columns(np.zeros(4)), rng()), strict=True)}
    assert found["x"][:2].tolist() == [-2.0, 3.0] and len(found["x"]) == ROWS
    assert found["x"].min() >= -2 and found["x"].max() <= 3 and set(np.unique(found["y"])) == {0, 1}


def rng():
    return np.random.default_rng(3)
