"""How far neighbours move what gets noise: whole numbers, never above what was charged; where it is tight, that far."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.accounting import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
)
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import (
    Ball,
    Curve,
    Interval,
    MHot,
    OneHot,
    Products,
    draw,
    limits,
    sums,
)
from pymc_dp.kernel.limits import UNITS
from pymc_dp.testing import without_noise
from tests.kernel.pairs import PAIRS, RELATIONS, Lookup, kernel, nasty, pair, table


@pytest.fixture
def exact(monkeypatch):
    """Whole numbers as they get noise, with its kind and scale."""
    caught = []

    def noised(whole, kind, scale):
        caught.append((np.array(whole, dtype=object), kind, scale))
        return whole

    monkeypatch.setattr(draw, "noised", noised)
    return caught


def moved(exact, event):
    """How much two releases in a row used of what the event says: at most 1. The noise is what was charged."""
    (one, kind, scale), (two, _, _) = exact[-2:]
    assert scale == event.scale
    if kind == "laplace":
        assert isinstance(event, DiscreteLaplaceEvent)
        return Fraction(int(abs(one - two).sum()), event.sensitivity)
    assert isinstance(event, DiscreteGaussianEvent)
    return Fraction(int(((one - two) ** 2).sum()), event.l2_squared)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_sum_moves_by_its_norm_at_most(relation, noise, weighted, exact, same_keys):
    rng, worst = np.random.default_rng(1), Fraction(0)
    for trial in range(PAIRS):
        size, units = int(rng.integers(1, 6)), int(rng.choice([1, 7, UNITS]))
        bound = float(10.0 ** rng.uniform(-10, 10))
        numbers = nasty(rng, 400, size)
        if trial % 2:
            numbers = bound * rng.choice([-1.0, 1.0], (400, 1)) * np.eye(size)[rng.integers(0, size, 400)]
        for made in pair(rng, relation, weighted=weighted):
            k = kernel(made)
            k.sum(Lookup(numbers), [], size, bound=bound, noise=noise, scale=0.5, units=units)
        event = k.made[-1][1]
        assert event.scale == 0.5 * k.sense * units
        used = moved(exact, event)
        assert used <= 1
        worst = max(worst, used)
    assert worst == 1


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("width", [1e-3, 1e-5, 1e6])
def test_a_soft_max_of_numbers_within_an_interval_moves_by_no_more(width, relation, noise, exact, same_keys):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for trial in range(PAIRS):
        K = int(rng.integers(1, 6))
        low = width * float(rng.choice([-1.0, -0.5, 0.0, 3.0]))
        numbers = nasty(rng, 400, K)
        if trial % 2:
            numbers = rng.choice([low, low + width, low + width / 3], (400, K))
        for made in pair(rng, relation):
            k = kernel(made)
            k.soft_max(Lookup(numbers), [], K, low=low, high=low + width, noise=noise, scale=0.5)
        used = moved(exact, k.made[-1][1])
        assert used <= 1
        worst = max(worst, used)
    assert worst > 0.99


def test_a_soft_max_whose_floats_would_show_a_row_is_refused():
    """At high - low = 1e-16 one row would move it by 1.1 times its sensitivity, at 1e-20 by 11,000 times."""
    k = kernel(table([0], "replace"))
    for width in (1e-16, 1e-20, 9e-7):
        with pytest.raises(ArgumentError, match="high - low"):
            k.soft_max(Lookup([[0.0, 0.0]]), [], 2, low=0.0, high=width, noise="laplace", scale=1.0)
    assert not k.account.events
    k.soft_max(Lookup([[0.0, 0.0]]), [], 2, low=0.0, high=1.0, noise="laplace", scale=1.0)
    assert k.made[-1][1].shifts == (UNITS + 3,)  # three units for rounding and floats
    total = np.array([3, 9, -4]) * 10**5
    found = sums.log_mean_exp(total.tolist(), 10.0**5)
    assert found == pytest.approx(np.log(np.mean(np.exp([3, 9, -4]))) * 10**5, abs=1)


def test_floats_of_a_soft_max_are_as_good_as_it_needs():
    """exp and log by `sums.FLOAT`, and all of it by one unit at the least gap, besides half a unit of rounding."""
    rng = np.random.default_rng(0)
    with localcontext(prec=40):
        for t in -rng.uniform(0, 64, 1000):
            assert abs(Decimal(float(np.exp(t))) / Decimal(float(t)).exp() - 1) < Decimal(sums.FLOAT) / 50
        for t in 10.0 ** -rng.uniform(0, 7, 1000):
            assert abs(Decimal(math.log(t)) / Decimal(float(t)).ln() - 1) < Decimal(sums.FLOAT) / 50
        for K in (1, 2, 3, 17, 1000):
            inverse = UNITS / sums.least_gap(K)
            for spread in (0.0, 1e-3, 1.0, 30.0):
                total = np.rint(rng.uniform(-1, 1, K) * spread * inverse).astype(np.int64) + 2**60
                top = int(total.max())
                each = [(Decimal(int(value) - top) / Decimal(inverse)).exp() for value in total]
                exact = top + (sum(each) / K).ln() * Decimal(inverse)
                assert abs(sums.log_mean_exp(total.tolist(), inverse) - exact) <= Decimal("1.5")


SHAPES = [
    OneHot(1),
    OneHot(4),
    MHot(3, 4),
    Interval((0,), (1,)),
    Interval((-3, 2), (5, 9)),
    Interval((-(2**28),), (2**27,)),
    Curve(),
    Curve(units=6),
    Curve(units=8, centred=False),
    Ball(3),
    Ball(2, 5),
    Products(3),
    Products(2, units=6),
]


def of_shape(rng, shape, trial):
    """Numbers that a row map may return for a shape: any floats, or where two rows are far apart."""
    if trial % 3 == 0:
        return nasty(rng, 400, shape.facts.inputs)
    most = {OneHot: 5, MHot: 5, Interval: 10, Ball: 1}.get(type(shape)) or shape.units
    if trial % 3 == 1:
        return rng.integers(-most, most + 1, (400, shape.facts.inputs)).astype(float)
    return rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, -(2.0**40), 2.0**40], (400, shape.facts.inputs)) * most


HOW = {"replace": ["plain", "cells", "public cells", "weighted"]}
CASES = [
    (shape, relation, how)
    for shape, relation in itertools.product(SHAPES, RELATIONS)
    for how in HOW.get(relation, ["plain", "cells", "weighted"])
]


@pytest.mark.parametrize(("shape", "relation", "how"), CASES, ids=str)
def test_sums_of_a_shape_move_by_no_more_than_charged(shape, relation, how, exact, same_keys):
    rng, worst = np.random.default_rng(3), Fraction(0)
    noises = ["laplace", "gaussian"]
    for trial in range(60):
        rowmap, cells = Lookup(of_shape(rng, shape, trial)), 2 if "cells" in how else None
        noise = noises[trial % len(noises)]
        given = {"cells": cells, "public": how == "public cells", "weighted": how == "weighted"}
        for made in pair(rng, relation, **given):
            k = kernel(made)
            more = {} if cells is None else {"cell": "c", "cells": cells}
            k.sums(rowmap, [], shape, noise=noise, scale=4.0, **more)
        event = k.made[-1][1]
        used = moved(exact, event)
        if event.shifts is not None:
            steps = sorted(abs(exact[-1][0] - exact[-2][0]).ravel(), reverse=True)
            assert all(a <= b for a, b in itertools.zip_longest(steps, event.shifts, fillvalue=0))
        assert used <= 1
        worst = max(worst, used)
    assert worst > (0.1 if how == "weighted" or relation == "persons" else 0.3)


@pytest.mark.parametrize(
    "shape",
    [
        Curve(units=8),
        Curve(units=14, centred=False),
        MHot(2, 3),
        MHot(3, 2),
        OneHot(3),
        Interval((-2, 0), (1, 3)),
        Interval((-3,), (3,)),
        Ball(2, 5),
        Products(2, 4),
        Products(1, 10),
    ],
)
def test_moves_of_small_shapes_are_the_largest_of_all_pairs(shape):
    """Exhaustive: every row that there is, against every other, and against none."""
    reach = range(-3, 4) if not hasattr(shape, "units") else range(-shape.units, shape.units + 1)
    numbers = np.array(list(itertools.product(reach, repeat=shape.facts.inputs)), dtype=float)
    numbers /= shape.units if isinstance(shape, Ball) else 1
    whole = np.zeros((len(numbers), shape.facts.size), dtype=np.int64)
    shape._hold(numbers, whole)
    whole = np.unique(whole, axis=0)
    apart = np.abs(whole[:, None] - whole[None])
    for found, move in [
        ((apart.sum(-1).max(), (apart**2).sum(-1).max()), shape.move("replace")),
        ((np.abs(whole).sum(-1).max(), (whole**2).sum(-1).max()), shape.move("add_remove")),
    ]:
        assert found[0] <= move.l1 and found[1] <= move.l2_squared
        loose = (
            3 if isinstance(shape, Products) else 1.7 if hasattr(shape, "units") else 1
        )  # roundings count for much on so few units
        assert move.l1 <= loose * found[0] and move.l2_squared <= loose * found[1]
    both = [2 * part for part in (np.abs(whole).sum(-1).max(), (whole**2).sum(-1).max())]
    moves, weighted = (shape.move("replace", **how) for how in ({"moves": True}, {"weighted": True}))
    assert moves.l1 >= both[0] and moves.l2_squared >= both[1]
    finer = shape.finer(True)
    assert weighted.l1 >= apart.sum(-1).max() << finer
    assert weighted.l2_squared >= (apart**2).sum(-1).max() << 2 * finer


def test_weights_count_in_steps_and_stay_within():
    weights = np.array([1.0, 0.5, 0.0, 2.0, -1.0, np.nan, 1e-9])
    k = kernel(table(np.zeros(7, dtype=int), "add_remove", weights=weights))
    with without_noise():
        assert k.sums(Lookup([[0.0]]), [], OneHot(2), noise="laplace", scale=1.0).tolist() == [2.5 * 2**20, 0]
        held = k.soft_max(Lookup([[3.0]]), [], 1, low=0.0, high=2.0, noise="laplace", scale=1.0)
    assert held == pytest.approx(2 + 1.5 + 2)  # the limit holds after weighting


def test_noise_is_added():
    k = kernel(table(np.zeros(100, dtype=int), "replace"))
    rowmap = Lookup([[1.0]])
    for noise, deviation in [("laplace", 2 * math.sqrt(2) * 3), ("gaussian", 2 * 3)]:
        found = [k.sum(rowmap, [], 1, bound=1.0, noise=noise, scale=3.0)[0] for _ in range(400)]
        assert abs(np.mean(found) - 100) < deviation / 4 and 0.75 < np.std(found) / deviation < 1.3


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("sum", {"size": 1, "bound": math.inf, "noise": "laplace", "scale": 1.0}, "bound"),
        ("sum", {"size": 1, "bound": 1.0, "noise": "cauchy", "scale": 1.0}, "noise"),
        ("sum", {"size": 1, "bound": 1.0, "noise": "laplace", "scale": 1.0, "units": 2**25}, "units"),
        ("sums", {"shape": OneHot(2), "noise": "laplace", "scale": 0.0}, "scale"),
        ("sums", {"shape": 3, "noise": "laplace", "scale": 1.0}, "shape"),
    ],
)
def test_sums_that_make_no_sense_are_refused_before_the_charge(name, given, text):
    k = kernel(table([0], "replace"))
    with pytest.raises(ArgumentError, match=text):
        getattr(k, name)(Lookup([[0.0]]), [], **given)
    assert not k.account.events


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("norm", [0.0, 1.5])
def test_a_norm_is_checked_on_whole_numbers_also_where_floats_are_wrong(order, norm, monkeypatch):
    rows = np.array([[0.9, 0.9, -0.9], [0.1, 0.2, 0.0], [np.nan, 0.0, 0.0]])
    monkeypatch.setattr(limits.np, "sqrt", lambda value: norm)
    monkeypatch.setattr(limits.np, "abs", lambda value: np.full(1, norm))
    monkeypatch.setattr(limits, "hold_shortened", limits.hold_shortened.py_func)
    total = np.zeros(3, dtype=np.int64)
    limits.add_norms.py_func(rows, np.arange(4), np.ones(3, dtype=np.int64), order, 1000, total)
    assert total.tolist() == [100, 200, 0]
    whole = np.ones((3, 3), dtype=np.int64)
    limits.hold_ball.py_func(rows, 1000, whole)
    assert whole.tolist() == [[0, 0, 0], [100, 200, 0], [0, 0, 0]]


def test_what_is_too_long_is_shortened():
    k = kernel(table([0, 1], "replace"))
    rowmap = Lookup([[3.0, 4.0], [0.0, np.nan]])
    with without_noise():
        found = k.sum(rowmap, [], 2, bound=2.5, noise="gaussian", scale=1.0)
        whole = k.sums(rowmap, [], Ball(2), noise="gaussian", scale=1.0) / UNITS
    assert np.allclose(found, [1.5, 2.0], atol=1e-6) and np.allclose(whole, [0.6, 0.8], atol=1e-6)
