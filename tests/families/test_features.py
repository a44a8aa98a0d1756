"""Bounded features of a row: the compiled pass against plain Python, and how far rows move against what is claimed."""

import math
from itertools import product as every

import numpy as np
import pytest
from scipy.optimize import minimize

from pymc_dp.families.features import BoundedFeatures, curve, feature, product
from pymc_dp.kernel.shapes import GRID

NAN, INF = float("nan"), float("inf")
WILD = (NAN, INF, -INF, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1.0, -1.0, np.pi, -np.pi, 1e15 + 1)


def features(low, high, *chosen, pairing="apart", names=("x",)):
    return BoundedFeatures(low=low, high=high, features=chosen, pairing=pairing, names=names)


def entries(low, high, d):
    """Every entry of a row of d, and every product of two."""
    half = low + (high - low) / 2 - low
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    return features(
        low,
        high,
        *(feature("identity", low, high, column=i) for i in range(d)),
        *(product(i, j, [half] * d) for i, j in pairs),
        pairing="products",
        names=tuple("xyzuvw"[:d]),
    )


APART = {
    "log": features(0.2, 8.0, feature("log", 0.2, 8.0)),
    "gamma": features(0.2, 8.0, feature("identity", 0.2, 8.0), feature("log", 0.2, 8.0)),
    "inverse gamma": features(1e-3, 100.0, feature("reciprocal", 1e-3, 100.0), feature("log", 1e-3, 100.0)),
    "beta": features(0.001, 0.9, feature("log", 0.001, 0.9), feature("log_rest", 0.001, 0.9)),
    "square": features(-1.0, 100.0, feature("square", -1.0, 100.0, argument=3.3)),
    "square beyond": features(5.0, 100.0, feature("square", 5.0, 100.0, argument=-1e3)),
    "distance": features(-3.0, 6.0, feature("distance", -3.0, 6.0, argument=1.0)),
    "distance beyond": features(-3.0, 6.0, feature("distance", -3.0, 6.0, argument=9.0)),
    "power": features(0.01, 6.0, feature("power", 0.01, 6.0, argument=1.7)),
    "log square": features(0.1, 20.0, feature("log_square", 0.1, 20.0, argument=0.4)),
    "whole": features(0.0, 7.0, feature("identity", 0.0, 7.0, whole=True)),
    "far from 0": features(1e4, 1e4 + 7, feature("identity", 1e4, 1e4 + 7), feature("log", 1e4, 1e4 + 7)),
}
CIRCLE = features(-np.pi, np.pi, feature("cos", -np.pi, np.pi), feature("sin", -np.pi, np.pi), pairing="circle")
CURVES = {
    "curve": features(-5.0, 100.0, *curve(-5.0, 100.0), pairing="curve"),
    "curve of logs": features(0.1, 20.0, *curve(0.1, 20.0, log=True), pairing="curve"),
    "narrow curve": features(1e6, 1e6 + 1, *curve(1e6, 1e6 + 1, log=True), pairing="curve"),
}
PRODUCTS = {f"products of {d}": entries(-5.0, 100.0, d) for d in (1, 2, 3, 4, 5)}
ALL = {**APART, "circle": CIRCLE, **CURVES, **PRODUCTS, "products far from 0": entries(1e15, 1e15 + 7, 2)}
SHARP = APART.keys() | {"circle", *CURVES, *PRODUCTS}


def integers(statistic, rows):
    """What each row adds, as the kernel reads it: (n_rows, n_features) int64 array."""
    return statistic.reading().whole([np.asarray(rows, dtype=float).reshape(-1, statistic.width)])


PLAIN = {
    "identity": lambda x, a: x,
    "log": lambda x, a: math.log(x),
    "log_rest": lambda x, a: math.log1p(-x),
    "reciprocal": lambda x, a: 1 / x,
    "power": lambda x, a: math.pow(x, a),
    "distance": lambda x, a: abs(x - a),
    "cos": lambda x, a: math.cos(x),
    "sin": lambda x, a: math.sin(x),
    "square": lambda x, a: (x - a) ** 2,
    "log_square": lambda x, a: (math.log(x) - a) ** 2,
}


def expected(statistic, row):
    """One row's integers in plain Python; squares and products are of the rounded numbers."""
    low, high = statistic.low, statistic.high
    middle = low + (high - low) / 2
    held = [middle if value != value else min(max(float(value), low), high) for value in row]
    found = []
    for place, item in enumerate(statistic.features):
        if item.transform == "product" or (statistic.pairing == "curve" and place):
            i, j = item.columns if len(item.columns) == 2 else (0, 0)
            found.append((found[i] * found[j] + GRID // 2) // GRID - (GRID // 2 if i == j else 0))
            continue
        value = PLAIN[item.transform](held[item.columns[0]], item.argument)
        found.append(min(max(round((value - item.centre) * (1 / item.unit)), -item.reach), item.reach))
    return found


def random_rows(statistic, rng, count):
    """Rows on every scale between the bounds, at them, beyond them, and numbers that are none."""
    low, high, shape = statistic.low, statistic.high, (count, statistic.width)
    inside = rng.uniform(low, high, shape)
    if low > 0:
        inside = np.where(rng.random(shape) < 0.5, np.exp(rng.uniform(np.log(low), np.log(high), shape)), inside)
    return np.where(rng.random(shape) < 0.3, rng.choice([low, high, (low + high) / 2, *WILD], shape), inside)


def corner_rows(statistic):
    """Rows of bounds and middles; along one entry, a fine grid."""
    low, high = statistic.low, statistic.high
    if (d := statistic.width) > 1:
        furthest = [[low + (high - low) / 2 * (1 - 1 / (d + 1))] * d]  # from a row of high bounds, in L1
        return np.array([*every((low, low + (high - low) / 2, high), repeat=d), *furthest])
    turns = [item.argument for item in statistic.features]
    return np.array([*np.linspace(low, high, 401), *turns, *np.exp(np.clip(turns, -700, 700))])[:, None]


def moved(first, second):
    """L1 distances and squared L2 distances of integer vectors, exactly."""
    apart = (first.astype(object) - second.astype(object)).reshape(len(first), -1)
    return [sum(map(abs, row)) for row in apart], [sum(k * k for k in row) for row in apart]


def worst_sensitivity(statistic, rng):
    """Largest L1 and squared L2 sensitivity of all pairs of corner rows, of random pairs, and of pairs led uphill."""
    rows = corner_rows(statistic)
    rows = rows[np.linspace(0, len(rows) - 1, 200).astype(int)] if len(rows) > 250 and statistic.width > 1 else rows
    left, right = (item.ravel() for item in np.meshgrid(np.arange(len(rows)), np.arange(len(rows))))
    k = integers(statistic, rows).astype(float)
    pairs = [(rows[left], rows[right]), tuple(random_rows(statistic, rng, 2000) for _ in range(2))]
    starts = [left[np.argmax(np.abs(k[left] - k[right]).sum(axis=1))], right[0]]
    uphill = [
        _uphill(statistic, np.concatenate([random_rows(statistic, rng, 1)[0], rows[start]]), power)
        for power in (1, 2)
        for start in starts
    ]
    pairs.append((np.array([pair[0] for pair in uphill]), np.array([pair[1] for pair in uphill])))
    found = [_most(statistic, *pair) for pair in pairs]
    return max(item[0] for item in found), max(item[1] for item in found)


def _most(statistic, first, second):
    first, second = integers(statistic, first), integers(statistic, second)
    apart = (first - second).astype(float)
    likely = np.unique(
        np.argsort(np.abs(apart).sum(axis=1))[-50:].tolist() + np.argsort((apart**2).sum(axis=1))[-50:].tolist()
    )
    l1, l2 = moved(first[likely], second[likely])
    return max(l1), max(l2)


def _uphill(statistic, start, power):
    width = statistic.width
    start = np.clip(np.nan_to_num(start, nan=0.0), statistic.low, statistic.high)

    def distance(at):
        first, second = integers(statistic, at.reshape(2, width)).astype(float)
        return -(np.abs(first - second) ** power).sum() / GRID**power

    found = minimize(distance, start, method="Nelder-Mead", options={"maxiter": 400})
    return np.clip(found.x, statistic.low, statistic.high).reshape(2, width)


@pytest.mark.parametrize("name", ALL)
def test_the_compiled_pass_adds_plain_integers(name, rng):
    statistic = ALL[name]
    rows = np.concatenate([random_rows(statistic, rng, 200), np.array([[x] * statistic.width for x in WILD])])
    assert integers(statistic, rows).tolist() == [expected(statistic, row) for row in rows]


@pytest.mark.few(16)
@pytest.mark.parametrize("name", ALL)
def test_no_two_rows_are_further_apart_than_claimed(name, rng):
    statistic = ALL[name]
    l1, l2_squared = worst_sensitivity(statistic, rng)
    facts = statistic.reading().shape.facts
    assert l1 <= facts.spread[0]
    assert l2_squared <= facts.spread[1]
    if name in SHARP:
        assert l1 > 0.999 * facts.spread[0]
        assert l2_squared > 0.999 * facts.spread[1]
    else:  # products take a few values far from 0
        assert l1 > 0.6 * facts.spread[0]
        assert l2_squared > 0.75 * facts.spread[1]


@pytest.mark.parametrize("name", ALL)
def test_no_row_is_larger_than_claimed(name, rng):
    statistic = ALL[name]
    rows = np.concatenate([corner_rows(statistic), random_rows(statistic, rng, 3000)])
    found = integers(statistic, rows)
    l1, l2_squared = map(max, moved(found, np.zeros_like(found)))
    facts = statistic.reading().shape.facts
    assert l1 <= facts.magnitude[0]
    assert l2_squared <= facts.magnitude[1]
    assert l1 > 0.99 * facts.magnitude[0]
    assert l2_squared > 0.99 * facts.magnitude[1]
    assert (np.abs(found).max(axis=0) <= [item.reach for item in statistic.features]).all()
