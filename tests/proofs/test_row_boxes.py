"""Boxes of rows leave no gap: every row, and every way in which it meets the parameters of two places, is in one."""

import numpy as np
import pytest

from pymc_dp.intervals.expression import Symbol
from pymc_dp.intervals.interval import Interval
from pymc_dp.proofs import meeting_ranges
from pymc_dp.proofs.meeting_ranges import Enclosed, RowBoxes


def symbol(low, high, integer=False):
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return Symbol(name="s", low=low, high=high, integer=integer, role="row")


def free(shape=(1,)):
    return symbol(np.full(shape, -np.inf), np.full(shape, np.inf))


def inside(low, high, points):
    """Whether each point lies in a box."""
    return ((low[None] <= points[:, None]) & (points[:, None] <= high[None])).all(axis=2).any(axis=1)


SYMBOLS = {
    "two reals": ([symbol([-1.0, 0.0], [2.0, 1e-3])], False),
    "few values beside a real": ([symbol(0, 1, integer=True), symbol(-3, 4)], False),
    "many values": ([symbol(0, 400, integer=True)], False),
    "values between odd ends": ([symbol(-1.5, 2.5, integer=True)], False),
    "no bounds": ([symbol(-np.inf, np.inf), symbol(0, np.inf), symbol(0, 1)], True),
    "one value": ([symbol(2, 2), symbol(0, 1)], False),
    "ten reals": ([symbol(np.zeros(10), np.ones(10))], False),
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_row_is_in_a_box(name, rng):
    symbols, loose = SYMBOLS[name]
    boxes = RowBoxes(symbols, {})
    low, high = boxes.boxes({})
    assert boxes.loose.any() == loose and len(low) <= meeting_ranges.MOST_BOXES
    ends = [np.concatenate([getattr(one, end).ravel() for one in symbols]) for end in ("low", "high")]
    reach = [np.clip(end, -1e6, 1e6) for end in ends]
    points = np.concatenate([rng.uniform(*reach, size=(300, len(ends[0]))), reach[0][None], reach[1][None]])
    whole = np.repeat([one.integer for one in symbols], [one.size for one in symbols])
    points = np.where(whole, np.clip(np.rint(points), np.ceil(ends[0]), np.floor(ends[1])), points)
    for _ in range(3):
        assert inside(low, high, points).all()
        low, high = boxes.cut(low, high)


def test_no_bounds_are_cut_where_something_is():
    low, high = RowBoxes([symbol(-np.inf, np.inf)], {}).boxes({})
    boxes = RowBoxes([symbol(-np.inf, np.inf)], {})
    for _ in range(4):
        low, high = boxes.cut(low, high)
    finite = np.isfinite(low) & np.isfinite(high)
    assert finite.sum() > 0.99 * len(low) - 2
    assert (high - low)[finite].min() < 0.01 and high[finite].max() > 50


def predictor(low, high, change):
    value = Interval.of(np.array([low]), np.array([high]))
    return Enclosed(value, Interval.of(np.array([-change]), np.array([change])))


@pytest.mark.parametrize(("low", "high"), [(-2.0, 3.0), (-np.inf, 1.0), (0.0, np.inf), (0.7, 0.7)])
def test_a_predictor_is_in_a_box_at_both_places(low, high, rng):
    """What is cut is the mean of its two values; both must be in what the box says."""
    eta = free()
    boxes = RowBoxes([eta], {eta: 0})
    met = {eta: predictor(low, high, 0.5)}
    least, most = boxes.boxes(met)
    found = boxes.enclosed(least, most, met)[eta].value
    one = np.clip(rng.uniform(-5, 5, 400), low, high)
    other = np.clip(one + rng.uniform(-0.5, 0.5, 400), low, high)
    pairs = np.stack([one, other], axis=1)
    held = (found.low[None] <= pairs[:, None]) & (pairs[:, None] <= found.high[None])
    assert held.all(axis=2).any(axis=1).all()
    assert (found.low >= low).all() and (found.high <= high).all()


@pytest.mark.parametrize("count", [1, 5, 500])
def test_elements_are_looked_at_one_by_one_unless_they_are_many(count, rng):
    element = free(())
    values = rng.normal(size=count)
    each = Enclosed(Interval.point(values), Interval.point(0.1 * values))
    ends = (np.array([part.min()]) for part in (values, 0.1 * values)), (values.max(), 0.1 * values.max())
    lows, highs = (list(end) for end in ends)
    whole = [Interval.of(low, np.array([high])) for low, high in zip(lows, highs, strict=True)]
    met = {element: Enclosed(*whole, None, each)}
    boxes = RowBoxes([element, symbol(0, 1)], {element: count})
    low, high = boxes.boxes(met)
    found = boxes.enclosed(low, high, met)[element]
    assert ((found.value.low[None] <= values[:, None]) & (values[:, None] <= found.value.high[None])).any(axis=1).all()
    alone = count <= meeting_ranges.MOST_COMBINATIONS
    assert (found.value.low == found.value.high).all() == (alone or count == 1)
    if alone:
        np.testing.assert_array_equal(found.change.low, 0.1 * found.value.low)
