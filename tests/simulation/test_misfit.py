"""Rows that a model does not expect: what is special about them, by moments."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.simulation.misfit import HEAVIER, OVERDISPERSED, drawn_as

N = 20_000
OTHERS = [{"a": np.float64(place)} for place in (-1.0, -0.5, 0.0, 2.0, 2.5, 3.0)]


def rows_of(kind, likelihood, bounds, **declared):
    with pm.Model() as model:
        at = pm.Normal("a", 1, 1) + 0.0 * pm.Data("x", np.zeros(50))
        likelihood(at)
    rows = inspect(model, dp.Domain(bounds={"x": (-1, 3), **bounds}, **declared)).rows
    drawn, held = drawn_as(kind, OTHERS)(rows, {"a": np.float64(1.0)}, {}, n_rows=N, rng=np.random.default_rng(1))
    names = [column.name for column in rows.columns]
    return dict(zip(names, drawn, strict=True)), dict(zip(names, held, strict=True)), rows


def counts(at):
    pm.Poisson("y", pm.math.exp(at), observed=np.zeros(50, dtype=int))


def reals(at):
    pm.Normal("y", at, 1.0, observed=np.zeros(50))


def test_overdispersed_counts_vary_more_than_their_mean():
    _, held, _ = rows_of(OVERDISPERSED, counts, {"y": (0, 200)})
    y = held["y"].astype(float)
    assert y.var() > 1.25 * y.mean() and held["y"].dtype.kind == "i"


def test_one_row_in_twenty_is_four_times_as_far():
    """Their variance is 1 + 2 * 16."""
    drawn, held, _ = rows_of(HEAVIER, reals, {"y": (-9, 9)})
    beyond = np.mean(np.abs(drawn["y"] - 1) > 4)
    assert beyond == pytest.approx(0.05 * 2 * 0.243, abs=0.005)
    assert np.abs(held["y"]).max() == 9, "as real rows they are clamped"
