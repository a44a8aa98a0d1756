"""Means over a population, draw by draw: those of NumPy, in any order of labels; refused where labels differ."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.errors import ArgumentError

STATES, AGES = ["north", "south"], ["young", "middle", "old"]
RNG = np.random.default_rng(7)
P = RNG.random((2, 5, 2, 3))
PEOPLE = RNG.integers(1, 1000, (2, 3))


def trace(p=P):
    draws = xr.Dataset({"p": (("chain", "draw", "state", "age"), p)}, {"state": STATES, "age": AGES})
    return xr.DataTree.from_dict({"posterior": draws})


def cells():
    return xr.DataArray(PEOPLE, {"state": STATES, "age": AGES}, ("state", "age"))


def test_the_mean_of_all_is_weighted_by_people():
    found = dp.poststratify(trace(), cells(), var="p")
    assert found.dims == ("chain", "draw") and found.name == "p"
    np.testing.assert_allclose(found, (P * PEOPLE).sum(axis=(2, 3)) / PEOPLE.sum())


def test_parts_of_the_population_have_means_of_their_own():
    by_state = dp.poststratify(trace(), cells(), var="p", by="state")
    assert by_state.dims == ("chain", "draw", "state")
    np.testing.assert_allclose(by_state, (P * PEOPLE).sum(axis=3) / PEOPLE.sum(axis=1))
    np.testing.assert_allclose(dp.poststratify(trace(), cells(), var="p", by=["state", "age"]), P)


def test_labels_count_and_not_their_order():
    turned = cells().isel(state=[1, 0], age=[2, 0, 1]).transpose("age", "state")
    series = cells().to_series().sample(frac=1, random_state=1)
    expected = dp.poststratify(trace(), cells(), var="p", by="age")
    for other in (turned, series):
        xr.testing.assert_allclose(dp.poststratify(trace(), other, var="p", by="age"), expected)


REFUSED = {
    "a dim of its own": (lambda: cells().rename(age="ages"), {}, "Did you mean 'age'?"),
    "a label of its own": (lambda: cells().assign_coords(state=["north", "west"]), {}, "the model has 'south'"),
    "more cells": (lambda: xr.concat([cells(), cells()[:1].assign_coords(state=["west"])], "state"), {}, "'west'"),
    "negative counts": (lambda: cells() - 2000, {}, ">= 0"),
    "missing counts": (lambda: cells().where(cells() > PEOPLE.min()), {}, "finite"),
    "a state without people": (lambda: cells() * [[0], [1]], {"by": "state"}, "no people"),
    "no labels": (lambda: cells().drop_vars("age"), {}, "labels"),
    "a table of columns": (lambda: cells().to_dataframe("n"), {}, "set_index"),
    "a cell twice": (lambda: pd.concat([cells().to_series()] * 2), {}, "each cell once"),
    "another variable": (cells, {"var": "q"}, "these|known"),
    "a margin that is none": (cells, {"by": "sex"}, "by"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    made, given, text = REFUSED[case]
    with pytest.raises(ArgumentError, match=text.replace("?", r"\?")):
        dp.poststratify(trace(), made(), **{"var": "p", **given})


def test_a_trace_without_a_posterior_is_refused():
    with pytest.raises(ArgumentError, match="posterior"):
        dp.poststratify(xr.DataTree(), cells(), var="p")
