"""Interval bounds hold for random points of the box, and every entry knows the element that feeds it."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.errors import PrivacyError
from pymc_dp.step_methods.gibbs.boxes import MANY, NONE, Box, UnknownOperationError, boxes_of, check_bounds

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
}
FREE = {
    "a": Box(low=np.array([-1.0, 0.5, -2.0]), high=np.array([2.0, 1.0, -1.0]), feeds={"a": np.arange(3)}),
    "b": Box(low=np.array(-0.7), high=np.array(1.3), feeds={"b": np.array(0)}),
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
def test_what_a_type_would_round_or_wrap_is_refused(make):
    a = pt.vector("a", shape=(3,))
    with pytest.raises(UnknownOperationError):
        boxes_of([make(a)], {a: FREE["a"]})


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
    table = Box(low=np.zeros((2, 2)), high=np.ones((2, 2)), feeds={"t": np.arange(4).reshape(2, 2)})
    level = Box(low=np.array(0), high=np.array(1), feeds={"z": np.array(0)})
    with pytest.raises(UnknownOperationError):
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
    with pytest.raises(UnknownOperationError, match="(?i)erf"):
        boxes_of([pt.erf(a)], {a: FREE["a"]})
    with pytest.raises(UnknownOperationError):
        boxes_of([pt.cumsum(a)], {a: FREE["a"]})
