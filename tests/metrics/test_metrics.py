"""Distances between rows: metrics indeed, bounded by their diameters, written the same way however they are made."""

import itertools
import pickle

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import PureEvent

EXTENTS = {
    "x": dp.metrics.Extent(low=-1.0, high=3.0),
    "y": dp.metrics.Extent(low=0.0, high=0.5),
    "v": dp.metrics.Extent(low=-1.0, high=1.0, size=3),
    "g": dp.metrics.Extent(low=0.0, high=4.0),
    "lat": dp.metrics.Extent(low=-20.0, high=55.0),
    "lon": dp.metrics.Extent(low=-30.0, high=40.0),
}
METRICS = {
    "L1": dp.metrics.L1("x"),
    "weighted L1": dp.metrics.L1({"x": 0.5, "y": 3.0, "v": 2.0}),
    "L2": dp.metrics.L2(["x", "y", "v"]),
    "weighted L2": dp.metrics.L2({"x": 0.5, "y": 3.0}),
    "Hamming": dp.metrics.Hamming({"g": 2.0, "x": 0.5}),
    "whole rows": dp.metrics.Hamming(),
    "geographic": dp.metrics.Geographic("lat", "lon", 0.1),
    "sum": dp.metrics.L1("x") + dp.metrics.Hamming({"g": 2.0}) + dp.metrics.Geographic("lat", "lon"),
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
    assert dp.metrics.L1("x").diameter({"x": dp.metrics.Extent(low=-3.0, high=3.0)}) == 6.0
    assert dp.metrics.L1({"x": 0.1}).diameter({"x": dp.metrics.Extent(low=0.0, high=0.3)}) == 0.03
    assert dp.metrics.L2("x").diameter({"x": dp.metrics.Extent(low=0.1, high=0.7)}) == 0.6
    assert dp.metrics.Hamming({"a": 0.1, "b": 0.2}).diameter({}) == 0.3
    assert (dp.metrics.Hamming({"a": 0.1}) + dp.metrics.Hamming({"b": 0.2})).diameter({}) == 0.3


def test_a_norm_bounds_distances_where_it_is_less():
    long = dp.metrics.Extent(low=-1.0, high=1.0, size=4, norm=0.5)
    assert dp.metrics.L2("x").diameter({"x": long}) == 1.0
    assert dp.metrics.L1("x").diameter({"x": long}) == pytest.approx(2.0)


@every
def test_metrics_survive_pickling_and_are_equal_if_they_measure_the_same(name):
    metric = METRICS[name]
    copy = pickle.loads(pickle.dumps(metric))
    assert copy == metric and hash(copy) == hash(metric) and copy.relation == metric.relation
    assert (
        eval(
            repr(metric),
            {
                "L1": dp.metrics.L1,
                "L2": dp.metrics.L2,
                "Hamming": dp.metrics.Hamming,
                "Geographic": dp.metrics.Geographic,
            },
        )
        == metric
    )


def test_relations_tell_metrics_apart_and_do_not_hang_on_order():
    relations = [metric.relation for metric in METRICS.values()]
    assert len(set(relations)) == len(relations)
    assert all(relation.startswith("metric: ") for relation in relations)
    assert dp.metrics.L1({"x": 1, "y": 2}) == dp.metrics.L1({"y": 2.0, "x": 1.0})
    for order in itertools.permutations((dp.metrics.L1("x"), dp.metrics.Hamming("g"), dp.metrics.L2("y"))):
        assert sum(order[1:], order[0]) == dp.metrics.L1("x") + dp.metrics.Hamming("g") + dp.metrics.L2("y")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dp.metrics.Hamming(["a", "b"]), dp.metrics.Hamming("a ≠] + [b")),
        (dp.metrics.Hamming(), dp.metrics.Hamming("row")),
        (dp.metrics.L1(["a", "b"]), dp.metrics.L1("a| + |Δb")),
        (dp.metrics.L2(["a", "b"]), dp.metrics.L2("a² + Δb")),
        (dp.metrics.L2({"a": 0.5}), dp.metrics.L2("(0.5 Δa)")),
        (dp.metrics.Geographic("a", "b"), dp.metrics.Geographic("a, b", "c")),
        (dp.metrics.Geographic("a", "b, c"), dp.metrics.Geographic("a, b", "c")),
        (dp.metrics.L1("a"), dp.metrics.L1("'a'")),
    ],
    ids=repr,
)
def test_no_name_of_a_column_makes_one_metric_look_like_another(one, other):
    """A ledger knows metrics by their texts."""
    assert one != other and one.relation != other.relation
    with pytest.raises(dp.errors.ArgumentError, match="per unit of something else"):
        dp.Ledger(1.0, metric=one).spend(PureEvent(epsilon=0.1), label="a", neighbours=other.relation)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dp.metrics.L1([]), "one column or more"),
        (lambda: dp.metrics.L1({}), "one column or more"),
        (lambda: dp.metrics.L1({3: 1.0}), "by name"),
        (lambda: dp.metrics.L2({"x": 0.0}), "public"),
        (lambda: dp.metrics.L1({"x": -1.0}), "> 0"),
        (lambda: dp.metrics.L1({"x": float("nan")}), "finite"),
        (lambda: dp.metrics.L1({"x": True}), "number"),
        (lambda: dp.metrics.Hamming({"x": float("inf")}), "finite"),
        (lambda: dp.metrics.Geographic("lat", "lat"), "two columns"),
        (lambda: dp.metrics.Geographic("lat", ""), "longitude must be a name"),
        (lambda: dp.metrics.Geographic("lat", "lon", 0), "> 0"),
        (lambda: dp.metrics.L1("x") + dp.metrics.L2(["y", "x"]), "['x'] occur twice"),
        (lambda: dp.metrics.L1("x") + dp.metrics.Hamming(), "whole rows"),
        (lambda: dp.metrics.Sum(parts=(dp.metrics.L1("x"), dp.metrics.L1("x"))), "occur twice"),
    ],
)
def test_metrics_that_are_none_are_refused(make, text):
    with pytest.raises((dp.errors.DomainError, dp.errors.ArgumentError)) as caught:
        make()
    assert text in str(caught.value)
