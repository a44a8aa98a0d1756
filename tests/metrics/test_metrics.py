"""Distances between rows: metrics indeed, bounded by their diameters, written the same way however they are made."""

import itertools
import pickle

import numpy as np
import pytest

from pymc_dp.accounting import Ledger, PureEvent
from pymc_dp.errors import ArgumentError, DomainError
from pymc_dp.metrics import L1, L2, Extent, Geographic, Hamming, Sum

EXTENTS = {
    "x": Extent(low=-1.0, high=3.0),
    "y": Extent(low=0.0, high=0.5),
    "v": Extent(low=-1.0, high=1.0, size=3),
    "g": Extent(low=0.0, high=4.0),
    "lat": Extent(low=-20.0, high=55.0),
    "lon": Extent(low=-30.0, high=40.0),
}
METRICS = {
    "L1": L1("x"),
    "weighted L1": L1({"x": 0.5, "y": 3.0, "v": 2.0}),
    "L2": L2(["x", "y", "v"]),
    "weighted L2": L2({"x": 0.5, "y": 3.0}),
    "Hamming": Hamming({"g": 2.0, "x": 0.5}),
    "whole rows": Hamming(),
    "geographic": Geographic("lat", "lon", 0.1),
    "sum": L1("x") + Hamming({"g": 2.0}) + Geographic("lat", "lon"),
}
every = pytest.mark.parametrize("name", METRICS)


def rows(rng, count, share=0.3):
    """Random rows, many of them at corners, and some of them equal in a column."""
    found = {}
    for name, extent in EXTENTS.items():
        values = rng.uniform(extent.low, extent.high, size=(count, extent.size))
        values = np.where(rng.random(values.shape) < share, rng.choice([extent.low, extent.high], values.shape), values)
        found[name] = np.rint(values) if name == "g" else values
    return {name: item[:, 0] if EXTENTS[name].size == 1 else item for name, item in found.items()}


@every
def test_distances_are_symmetric_and_keep_the_triangle_inequality(name, rng):
    metric = METRICS[name]
    a, b, c = (rows(rng, 500) for _ in range(3))
    assert (metric.distance(a, b) >= 0).all()
    assert np.allclose(metric.distance(a, a), 0)
    assert np.allclose(metric.distance(a, b), metric.distance(b, a))
    assert (metric.distance(a, c) <= metric.distance(a, b) + metric.distance(b, c) + 1e-9).all()


@every
def test_no_two_rows_are_further_apart_than_the_diameter(name, rng):
    metric = METRICS[name]
    one, two = rows(rng, 20_000, 0.8), rows(rng, 20_000, 0.8)
    furthest = metric.distance(one, two).max()
    assert furthest <= metric.diameter(EXTENTS) * (1 + 1e-12)
    assert furthest >= 0.75 * metric.diameter(EXTENTS)


def test_diameters_of_decimal_bounds_are_exact():
    assert L1("x").diameter({"x": Extent(low=-3.0, high=3.0)}) == 6.0
    assert L1({"x": 0.1}).diameter({"x": Extent(low=0.0, high=0.3)}) == 0.03
    assert L2("x").diameter({"x": Extent(low=0.1, high=0.7)}) == 0.6
    assert Hamming({"a": 0.1, "b": 0.2}).diameter({}) == 0.3
    assert (Hamming({"a": 0.1}) + Hamming({"b": 0.2})).diameter({}) == 0.3


def test_a_norm_bounds_distances_where_it_is_less():
    long = Extent(low=-1.0, high=1.0, size=4, norm=0.5)
    assert L2("x").diameter({"x": long}) == 1.0
    assert L1("x").diameter({"x": long}) == pytest.approx(2.0)


@every
def test_metrics_survive_pickling_and_are_equal_if_they_measure_the_same(name):
    metric = METRICS[name]
    copy = pickle.loads(pickle.dumps(metric))
    assert copy == metric and hash(copy) == hash(metric) and copy.relation == metric.relation
    assert eval(repr(metric), {"L1": L1, "L2": L2, "Hamming": Hamming, "Geographic": Geographic}) == metric


def test_relations_tell_metrics_apart_and_do_not_hang_on_order():
    relations = [metric.relation for metric in METRICS.values()]
    assert len(set(relations)) == len(relations)
    assert all(relation.startswith("metric: ") for relation in relations)
    assert L1({"x": 1, "y": 2}) == L1({"y": 2.0, "x": 1.0})
    for order in itertools.permutations((L1("x"), Hamming("g"), L2("y"))):
        assert sum(order[1:], order[0]) == L1("x") + Hamming("g") + L2("y")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Hamming(["a", "b"]), Hamming("a ≠] + [b")),
        (Hamming(), Hamming("row")),
        (L1(["a", "b"]), L1("a| + |Δb")),
        (L2(["a", "b"]), L2("a² + Δb")),
        (L2({"a": 0.5}), L2("(0.5 Δa)")),
        (Geographic("a", "b"), Geographic("a, b", "c")),
        (Geographic("a", "b, c"), Geographic("a, b", "c")),
        (L1("a"), L1("'a'")),
    ],
    ids=repr,
)
def test_no_name_of_a_column_makes_one_metric_look_like_another(one, other):
    """A ledger knows metrics by their texts."""
    assert one != other and one.relation != other.relation
    with pytest.raises(ArgumentError, match="per unit of something else"):
        Ledger(1.0, metric=one).spend(PureEvent(epsilon=0.1), label="a", neighbours=other.relation)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: L1([]), "one column or more"),
        (lambda: L1({}), "one column or more"),
        (lambda: L1({3: 1.0}), "by name"),
        (lambda: L2({"x": 0.0}), "public"),
        (lambda: L1({"x": -1.0}), "> 0"),
        (lambda: L1({"x": float("nan")}), "finite"),
        (lambda: L1({"x": True}), "number"),
        (lambda: Hamming({"x": float("inf")}), "finite"),
        (lambda: Geographic("lat", "lat"), "two columns"),
        (lambda: Geographic("lat", ""), "longitude must be a name"),
        (lambda: Geographic("lat", "lon", 0), "> 0"),
        (lambda: L1("x") + L2(["y", "x"]), "['x'] occur twice"),
        (lambda: L1("x") + Hamming(), "whole rows"),
        (lambda: Sum(parts=(L1("x"), L1("x"))), "occur twice"),
    ],
)
def test_metrics_that_are_none_are_refused(make, text):
    with pytest.raises((DomainError, ArgumentError)) as caught:
        make()
    assert text in str(caught.value)
