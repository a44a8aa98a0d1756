"""Where rows and parameters meet at two places: no row is outside of what is said, and some come near."""

import itertools
import operator

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.one_row import of_one_row, placeholder
from pymc_dp.inspection.rows import shape_of
from pymc_dp.intervals.expression import Symbol, leaf
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.meeting_points import Meeting
from pymc_dp.proofs.meeting_ranges import Disc, Enclosed, Met
from pymc_dp.proofs.row_likelihood import symbol_of


def meeting(written, shape, **domain):
    """Return the meeting of a model in which a column x and parameters b of a shape meet as is written."""
    with pm.Model() as model:
        b = pm.Normal("b", shape=shape)
        x = pm.Data("x", np.full((3, 4), 5.0))
        g = pm.Data("g", np.zeros(3, dtype=int))
        pm.Normal("y", written(x, g, b), 1.0, observed=np.zeros((3, 2) if shape == (4, 2) else 3))
    inspection = inspect(model, Domain(**domain)).rows
    inspection.require()
    known = {stand_in: leaf(free(shape)) for stand_in in inspection.stand_ins}
    one = {column.leaf: placeholder(column.leaf, shape_of(column.leaf)[1:]) for column in inspection.columns}
    known |= {one[column.leaf]: leaf(symbol_of(column)) for column in inspection.columns}
    symbols = lowered(of_one_row(inspection.terms[0], one, {}), known).symbols
    (found,) = (item for item in symbols if isinstance(item, Meeting))
    return found


def free(shape):
    return Symbol(name="b", low=np.full(shape, -np.inf), high=np.full(shape, np.inf))


def places(one, two):
    """A parameter at two places, as the side of a meeting."""
    value = Interval.of(np.minimum(one, two)[None], np.maximum(one, two)[None])
    return Enclosed(value, Interval.point(two[None]) - Interval.point(one[None]))


def rows(rng, norm, count=2000):
    found = rng.normal(size=(count, 4))
    found *= norm / np.linalg.norm(found, axis=1, keepdims=True)
    return found * np.where(rng.random((count, 1)) < 0.5, 1.0, rng.random((count, 1)))


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_predictors_of_rows_within_a_norm(shape, rng):
    met = Met(meeting(lambda x, g, b: x @ b, shape, norms={"x": 1.5}))
    one, two = rng.normal(size=shape), rng.normal(size=shape)
    found, x = met([places(one, two)]), rows(rng, 1.5)
    for predicted in (x @ one, x @ two):
        assert (found.value.low.ravel() <= predicted.reshape(len(x), -1)).all()
        assert (predicted.reshape(len(x), -1) <= found.value.high.ravel()).all()
    moved = (x @ (two - one)).reshape(len(x), -1)
    assert (np.abs(moved) <= found.change.high.ravel()).all()
    assert np.abs(moved).max() > 0.8 * found.change.high.max()


def test_predictors_of_rows_in_a_box_are_bounded_entry_by_entry(rng):
    met = Met(meeting(lambda x, g, b: x @ b, (4,), bounds={"x": (0.0, 1.0)}))
    one, two = rng.normal(size=4), rng.normal(size=4)
    found = met([places(one, two)])
    assert found.change.high.item() == pytest.approx(np.maximum(two - one, 0).sum())
    assert found.change.low.item() == pytest.approx(np.minimum(two - one, 0).sum())


def test_the_change_of_a_predictor_where_its_mean_is_known(rng):
    """No row of the ball is outside of the disc's bound, and in each part some row is near it."""
    met = Met(meeting(lambda x, g, b: x @ b, (4,), norms={"x": 1.5}))
    one, across = np.array([1.0, -0.5, 0.3, 0.0]), np.array([0.5, 1.0, 0.0, 0.2])
    two = one + 0.05 * across + 0.01 * one
    disc = met([places(one, two)]).disc
    assert disc is not None
    x = rows(rng, 1.5, 40_000)
    mean, change = x @ (one + two) / 2, x @ (two - one)
    edges = np.linspace(-1.5, 1.5, 13) * np.linalg.norm((one + two) / 2)
    bound = disc.change(edges[:-1], edges[1:])
    for place, (least, most) in enumerate(itertools.pairwise(edges)):
        there = change[(least <= mean) & (mean <= most)]
        assert there.min() >= bound.low[place] - 1e-12 and there.max() <= bound.high[place] + 1e-12
        assert np.ptp(there) > 0.6 * (bound.high[place] - bound.low[place])
    whole = 1.5 * np.linalg.norm(two - one)
    assert np.abs(bound.high[[0, -1]]).max() < 0.9 * whole < bound.high.max() <= 1.1 * whole


def test_a_disc_needs_parameters_off_0():
    around = Interval.of(np.full((1, 4), -1.0), np.full((1, 4), 1.0))
    assert Disc.of(around, around, 1.0) is None


def test_an_element_chosen_is_any_of_them(rng):
    met = Met(meeting(lambda x, g, b: b[g], (5,)))
    one, two = rng.normal(size=5), rng.normal(size=5)
    found = met([places(one, two)])
    assert met.choices == 5 and found.elements is not None
    np.testing.assert_allclose(found.elements.change.low.ravel(), two - one)
    assert found.value.low.item() == min(one.min(), two.min())
    assert found.change.high.item() == pytest.approx((two - one).max())


@pytest.mark.parametrize("combined", [operator.add, operator.sub])
def test_sums_of_public_predictors_and_chosen_elements_hang_on_all_of_them(combined, rng):
    met = Met(meeting(lambda x, g, b: combined(x @ b, b[g]), (4,), public=["x", "g"]))
    one, two = rng.normal(size=4), rng.normal(size=4)
    found = met([places(one, two)] * 2)
    x, g = np.full((4, 4), 5.0), np.arange(4)
    first, second = (combined(x @ b, b[g]) for b in (one, two))
    assert met.choices == 0 and found.elements is None
    for predicted in (first, second):
        assert (found.value.low <= predicted).all() and (predicted <= found.value.high).all()
    assert (found.change.low <= second - first).all() and (second - first <= found.change.high).all()
