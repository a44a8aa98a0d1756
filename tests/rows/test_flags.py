"""Indicators of missing values are read off the column itself, before it is clamped, in any table."""

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.flags import flagged
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.passes import Passes, columns_of, with_stored
from pymc_dp.rows.stored import Arrays

X = np.array([0.5, np.nan, np.inf, -3.0, np.nan, 0.0])
Y = np.array([0, 1, 1, 0, 1, 1])
DOMAIN = dp.Domain(bounds={"x": (-1, 1)})


def model():
    with pm.Model() as made:
        pm.Bernoulli("y", logit_p=pm.Normal("b") * pm.Data("x", [0.0, 0.1]), observed=[0, 1])
    return dp.fill(made, {"x": 0.0})


def read(table):
    """Columns as the release reads them, two rows at a time."""
    found = with_stored(inspect(model(), DOMAIN).rows, Arrays(table))
    assert not found.problems, found.problems
    passes = Passes.of(found, Arrays(table))
    with opened_gate():
        parts = [chunk() for chunk in passes.chunks(2)]
    return {
        column.name: np.concatenate(one) for column, one in zip(passes.columns, zip(*parts, strict=True), strict=True)
    }


def test_an_indicator_is_whether_there_is_no_number():
    held = read({"x": X, "y": Y})
    np.testing.assert_array_equal(held["x_missing"], [0, 1, 0, 0, 1, 0])
    np.testing.assert_array_equal(held["x"], [0.5, 0.0, 1.0, -1.0, 0.0, 0.0])


def test_layouts_are_the_same_whatever_is_missing():
    shown = [
        str(flagged(Arrays({"x": x, "y": Y}), columns_of(inspect(model(), DOMAIN).rows)).layouts())
        for x in (X, np.zeros(6), np.full(6, np.nan))
    ]
    assert len(set(shown)) == 1 and "bool" in shown[0]
