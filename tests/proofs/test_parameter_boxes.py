"""Interval bounds hold for random points of the box, and every entry knows the element that feeds it."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.errors import PrivacyError
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.intervals.feeds import MANY, NONE
from pymc_dp.proofs.parameter_boxes import Box, boxes_of, check_bounds, somewhere

INDEX = np.array([2, 0, 0, 1])
GRAPHS = {
    "selection": lambda a, b: a[INDEX],
    "sum": lambda a, b: a[INDEX] + b - 2.0,
    "product": lambda a, b: a * b * -1.5,
    "quotient": lambda a, b: b / (a + 5.0),
    "sigmoid": lambda a, b: pm.math.sigmoid(a[INDEX] + 0.5 * b),
    "invlogit of a product": lambda a, b: pm.math.invlogit(a * b),
    "exp": lambda a, b: pt.exp(-a) - pt.expm1(b),
    "logs": lambda a, b: pt.log(a + 5) + pt.log1p(b**2) + pt.sqrt(pt.abs(a)),
    "powers": lambda a, b: a**2 + (b + 5) ** 1.5 + 1 / (b + 5),
    "softplus": lambda a, b: pt.softplus(a) + pt.tanh(b),
    "switch": lambda a, b: pt.switch(a > b, a, b + 1),
    "extremes": lambda a, b: pt.maximum(a, b) - pt.minimum(a, 0.5),
    "stack": lambda a, b: pt.stack([a[0], b, a[1] * b]),
    "join": lambda a, b: pt.concatenate([a, [b, 0.5]]),
    "total": lambda a, b: a.sum() + b,
    "table": lambda a, b: (a[:, None] * np.array([1.0, -2.0])).sum(axis=1) + b,
    "softmax": lambda a, b: pm.math.softmax(a * b),
    "whole part": lambda a, b: pt.cast(a * 3, "int64") + b,
    "computed index": lambda a, b: a[pt.cast(b > 0, "int64")],
    "index of several": lambda a, b: a[pt.cast(pt.stack([a[0] > 0, b > 0]), "int64")],
    "truth": lambda a, b: pt.cast(pt.cast(a - 0.7, "bool"), "float64") * b,
    "clip": lambda a, b: pt.clip(a, b - 0.1, b + 0.1),
    "error functions": lambda a, b: pt.erf(a) + pt.erfc(b),
    "matrix product": lambda a, b: np.array([[1.0, 2.0, 0.0], [0.0, 0.0, -1.0]]) @ a + b,
    "product over an axis": lambda a, b: a.prod() * b,
    "least and greatest": lambda a, b: a.max() - pt.minimum(b, a.min()),
    "axes made one": lambda a, b: pt.join_dims(a[:, None] * np.array([1.0, 2.0])) + b,
    "one axis made two": lambda a, b: pt.split_dims(pt.concatenate([a, [b]]), shape=(2, 2)),
}
FREE = {
    "a": Box(low=np.array([-1.0, 0.5, -2.0]), high=np.array([2.0, 1.0, -1.0])),
    "b": Box(low=np.array(-0.7), high=np.array(1.3)),
}


def graph(name):
    a, b = pt.vector("a", shape=(3,)), pt.scalar("b")
    return a, b, GRAPHS[name](a, b)


@pytest.mark.parametrize("name", GRAPHS)
def test_no_point_leaves_the_bounds(name, rng):
    a, b, out = graph(name)
    (box,) = boxes_of([out], {a: FREE["a"], b: FREE["b"]})
    function = pytensor.function([a, b], out, mode="FAST_COMPILE", on_unused_input="ignore")
    seen = []
    for corner in range(200):
        draw = rng.integers(0, 2, 4) if corner < 60 else rng.random(4)
        at_a = FREE["a"].low + draw[:3] * (FREE["a"].high - FREE["a"].low)
        at_b = FREE["b"].low + draw[3] * (FREE["b"].high - FREE["b"].low)
        seen.append(function(at_a, at_b))
    assert (np.array(seen) >= box.low).all() and (np.array(seen) <= box.high).all()
    assert np.isfinite(box.low).all() and np.isfinite(box.high).all()


@pytest.mark.parametrize("name", GRAPHS)
def test_entries_move_with_no_other_element_than_the_named_one(name, rng):
    a, b, out = graph(name)
    (box,) = boxes_of([out], {a: FREE["a"], b: FREE["b"]})
    function = pytensor.function([a, b], out, mode="FAST_COMPILE", on_unused_input="ignore")
    for _ in range(30):
        at_a = rng.uniform(FREE["a"].low, FREE["a"].high)
        at_b = rng.uniform(FREE["b"].low, FREE["b"].high)
        before = function(at_a, at_b)
        for element in range(3):
            moved = at_a.copy()
            moved[element] = rng.uniform(FREE["a"].low[element], FREE["a"].high[element])
            owner = box.owner("a")
            assert (function(moved, at_b) == before)[(owner != element) & (owner != MANY)].all()
        assert (function(at_a, rng.uniform(-0.7, 1.3)) == before)[box.owner("b") == NONE].all()


def test_owners_are_told_apart():
    a, b, out = graph("sum")
    (box,) = boxes_of([out], {a: FREE["a"], b: FREE["b"]})
    assert box.owner("a").tolist() == [2, 0, 0, 1] and box.owner("b").tolist() == [0] * 4
    a, b, out = graph("total")
    (box,) = boxes_of([out], {a: FREE["a"], b: FREE["b"]})
    assert box.owner("a") == MANY and box.owner("other") == NONE


def test_selections_are_exact():
    a, _, out = graph("selection")
    (box,) = boxes_of([out], {a: FREE["a"]})
    assert box.low.tolist() == [-2.0, -1.0, -1.0, 0.5] and box.high.tolist() == [-1.0, 2.0, 2.0, 1.0]


def test_what_takes_no_part_feeds_nothing():
    a, b = pt.vector("a", shape=(3,)), pt.scalar("b")
    free = {a: FREE["a"], b: FREE["b"]}
    chosen = (a * np.eye(3)[INDEX]).sum(axis=1)
    decided = pt.switch(a > b - 2, a, b), pt.maximum(a, b + 4)
    boxes = boxes_of([chosen, *decided], free)
    assert boxes[0].owner("a").tolist() == INDEX.tolist()
    assert boxes[1].owner("a").tolist() == [0, 1, 2] and boxes[1].owner("b").tolist() == [0, NONE, 0]
    assert boxes[2].owner("a").tolist() == [NONE] * 3 and boxes[2].owner("b").tolist() == [0] * 3


def test_what_no_variable_enters_is_one_number():
    a = pt.vector("a", shape=(3,))
    known, moving = boxes_of([pt.sqrt(pt.as_tensor(np.array([2.0, 3.0]))), a], {a: FREE["a"]})
    assert known.low.tolist() == known.high.tolist() == np.sqrt([2.0, 3.0]).tolist() and not known.feeds
    assert moving.owner("a").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda a: pt.cast(a, "float32") * 2,
        lambda a: pt.cast(a * 100, "int8"),
        lambda a: pt.cast(a, "uint8"),
        lambda a: pt.cast(a, "int8") * np.array(64, dtype="int8"),
        lambda a: pt.cast(a, "int64") // 2,
    ],
)
def test_what_a_type_rounds_or_wraps_lies_within_the_bounds(make, rng):
    a = pt.vector("a", shape=(3,))
    (box,) = boxes_of([make(a)], {a: FREE["a"]})
    function = pytensor.function([a], make(a), mode="FAST_COMPILE")
    for _ in range(30):
        found = function(rng.uniform(FREE["a"].low, FREE["a"].high)).astype(float)
        assert ((found >= box.low) & (found <= box.high)).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda t, z: t[:, z],
        lambda t, z: t[:, pt.stack([z, z])],
        lambda t, z: t[:z],
        lambda t, z: t[z:],
        lambda t, z: t[:: 2 * z - 1],
        lambda t, z: t[pt.eq(pt.stack([z, 1 - z]), 1)],
        lambda t, z: t[z + 1],
        lambda t, z: t[z, z],
    ],
)
def test_a_free_variable_may_only_be_an_index_along_the_first_axis(make):
    t, z = pt.matrix("t", shape=(2, 2)), pt.lscalar("z")
    table, level = Box(low=np.zeros((2, 2)), high=np.ones((2, 2))), Box(low=np.array(0), high=np.array(1))
    with pytest.raises(UnknownOperation):
        boxes_of([make(t, z)], {t: table, z: level})
    (box,) = boxes_of([t[z]], {t: table, z: level})
    check_bounds([t[z]], {t: table, z: level}, [box])


def test_wrong_bounds_are_caught():
    a, b, out = graph("sum")
    free = {a: FREE["a"], b: FREE["b"]}
    (box,) = boxes_of([out], free)
    check_bounds([out], free, [box])
    narrow = Box(low=box.low, high=box.low, feeds=box.feeds)
    blind = Box(low=box.low, high=box.high, feeds={"a": box.owner("a")})
    for wrong in (narrow, blind):
        with pytest.raises(PrivacyError, match="error of pymc_dp"):
            check_bounds([out], free, [wrong])


def test_unknown_operations_are_named():
    a = pt.vector("a", shape=(3,))
    with pytest.raises(UnknownOperation, match="J0"):
        boxes_of([pt.j0(a)], {a: FREE["a"]})
    with pytest.raises(UnknownOperation, match="Cum"):
        boxes_of([pt.cumsum(a)], {a: FREE["a"]})


def test_values_are_drawn_within_bounds_of_any_kind(rng):
    x = pt.vector("x", shape=(4,))
    box = Box(low=np.array([-np.inf, -np.inf, 5.0, -np.inf]), high=np.array([-5.0, np.inf, np.inf, 7.0]))
    for _ in range(20):
        found = somewhere(rng, x, box)
        assert ((found >= box.low) & (found <= box.high)).all()
