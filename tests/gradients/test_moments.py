"""Moments of private columns: bounded sums, and made-up rows that have them."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.row_parts import ROOM
from pymc_dp.inspection.rows import shape_of
from pymc_dp.rows.gate import read
from pymc_dp.rows.persons import Grouped

pytestmark = pytest.mark.usefixtures("paid")
ROWS = 5000
LOW, HIGH = np.array([-2.0, 0.0, 0.0]), np.array([8.0, 1.0, 30.0])


def table(rng):
    """A skewed column, a dummy of a fiftieth of the rows, and whole numbers."""
    skewed = np.minimum(-2 + rng.exponential(1.0, ROWS), 8)
    return np.column_stack([skewed, rng.random(ROWS) < 0.02, rng.poisson(3, ROWS)]).astype(float)


def inspected(x, **stated):
    with pm.Model() as model:
        eta = pm.Data("x", x) @ pm.Normal("b", shape=3) + pm.Data("age", np.zeros(ROWS)) * pm.Normal("c")
        pm.Normal("y", eta, 1.0, observed=np.zeros(ROWS))
    bounds = {"x": [(low, high) for low, high in zip(LOW, HIGH, strict=True)], "age": (0, 90), "y": (-9, 9)}
    return interface_of(model, dp.Domain(bounds=bounds, **stated)).inspection


def made(rng):
    x = table(rng)
    inspection = inspected(x)
    moments = Moments.of(inspection, {"age": None})
    return x, inspection, moments, [read(column) for column in inspection.columns]


def test_sums_are_those_of_numbers_between_their_bounds(rng):
    x, _, moments, columns = made(rng)
    rows = moments.rows(columns)
    u = (x - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2)
    np.testing.assert_allclose(
        rows * np.sqrt(moments.count) / ROOM, np.column_stack([np.ones(ROWS), u, u**2]), atol=1e-12
    )
    assert np.linalg.norm(rows, axis=1).max() <= 1
    edges = np.array([0, 1, 4, 400, *range(2000, ROWS + 1, 1000)])
    persons = moments.rows(Grouped(columns, edges))
    np.testing.assert_allclose(persons, [one.mean(axis=0) for one in np.split(rows, edges[1:-1])], atol=1e-12)
    assert moments.rows(Grouped([column[:0] for column in columns], np.array([0]))).shape == (0, moments.count)


def evenly(rng, inspection):
    found = [np.zeros((4000, *shape_of(one.leaf)[1:])) for one in inspection.columns]
    for place, one in enumerate(inspection.columns):
        if one.name == "x":
            found[place] = rng.uniform(LOW, HIGH, (4000, 3))
    return found


def test_made_up_columns_have_the_moments_that_were_released(rng):
    x, inspection, moments, columns = made(rng)
    place = moments.entries[0].place
    found, known = moments.drawn(
        evenly(rng, inspection), moments.rows(columns).sum(axis=0), 2.0, np.random.default_rng(1)
    )
    drawn = found[place]
    assert known == [place] and (drawn >= LOW).all() and (drawn <= HIGH).all()
    assert (np.abs(drawn.mean(axis=0) - x.mean(axis=0)) < 0.012 * (HIGH - LOW)).all()
    np.testing.assert_allclose(drawn.std(axis=0), x.std(axis=0), rtol=0.15)
    dummy = drawn[:, 1]
    assert 0.01 < np.mean(dummy > 0.5) < 0.03 and np.mean((dummy > 0.05) & (dummy < 0.95)) < 0.03
