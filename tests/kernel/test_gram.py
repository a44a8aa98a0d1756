"""Sums of a regression move by no more than charged, and are the same numbers by both ways to read rows."""

import itertools

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.kernel import Column, Kernel, Regression, Table, draw, limits
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.rows.sums import sum_products
from pymc_dp.testing import without_noise
from tests.kernel.pairs import PAIRS, Lookup, kernel, nasty, pair

SHAPES = [
    Regression(boxes=1, bits=4),
    Regression(boxes=3, constant=False, square=False, bits=15),
    Regression(balls=(2,), bits=6),
    Regression(balls=(3, 2), boxes=2, sizes=True, bits=10),
    Regression(boxes=2, cells=3, sizes=True, bits=5),
    Regression(boxes=2, cells=2, sizes=True, apart=True, square=False, bits=5),
]


def stored(shape):
    sources = [
        Source(name=f"b{i}", centres=(0.0,) * w, halves=(1.0,) * w, ball=True) for i, w in enumerate(shape.balls)
    ]
    sources += [Source(name=f"x{i}", centres=(0.0,), halves=(1.0,)) for i in range(shape.boxes)]
    return GramSums(
        sources=tuple(sources),
        response=Source(name="y", centres=(0.0,), halves=(1.0,)),
        cells=tuple(f"c{i}" for i in range(shape.cells)),
        sizes_known=not shape.sizes,
        known=shape.known,
        constant=shape.constant,
        square=shape.square,
        apart=shape.apart,
        bits=shape.bits,
    )


KNOWN = [
    Regression(boxes=2, known=True, bits=5),
    Regression(balls=(2,), boxes=1, known=True, cells=2, square=False, bits=5),
    Regression(boxes=1, cells=2, bits=5),
]


def numbers_for(rng, shape, count):
    """Rows at ends, in corners, of mixed floats; the first number is a cell where there are several."""
    inputs = shape.facts.inputs
    found = rng.choice([-1.0, 1.0, 0.0, 0.6, -0.8], (count, inputs))
    found[count // 2 :] = nasty(rng, count - count // 2, inputs)
    if shape.cells > 1:
        found[: count // 2, 0] = rng.integers(-1, shape.cells + 1, count // 2)
    return found


@pytest.mark.parametrize("relation", ["replace", "add_remove", "persons"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_neighbours_move_a_regression_by_no_more_than_charged(shape, relation, monkeypatch, same_keys):
    caught, rng, worst = [], np.random.default_rng(0), 0.0
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: caught.append(whole.astype(object)) or whole)
    for trial in range(PAIRS):
        noise, rowmap = ("laplace", "gaussian")[trial % 2], Lookup(numbers_for(rng, shape, 400))
        for made in pair(rng, relation, count=200 if trial % 3 else 400):
            k = kernel(made)
            k.sums(rowmap, [], shape, noise=noise, scale=2.0)
        event, apart = k.made[-1][1], caught[-1] - caught[-2]
        used = abs(apart).sum() / event.sensitivity if noise == "laplace" else (apart**2).sum() / event.l2_squared
        assert used <= 1
        worst = max(worst, used)
    assert worst > (0.2 if relation == "persons" else 0.4)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_add_the_same_numbers_as_a_map_and_as_they_are_stored(shape):
    rng = np.random.default_rng(1)
    found = numbers_for(rng, shape, 60)
    found[:, shape.cells > 1 :] = np.where(np.isfinite(found[:, shape.cells > 1 :]), found[:, shape.cells > 1 :], 0.3)
    skip, widths = int(shape.cells > 1), [*shape.balls, *[1] * shape.boxes]
    ends = np.cumsum([skip, *widths])
    arrays = [found[:, a:b] for a, b in itertools.pairwise(ends)]
    cells = None
    if skip:
        with np.errstate(all="ignore"):
            found[:, 0] = np.clip(np.nan_to_num(np.rint(found[:, 0])), 0, shape.cells - 1)
        cells = found[:, 0].astype(np.int64)
    theirs = sum_products(stored(shape), arrays, found[:, -1], cells)
    made = Table({"i": Column(np.arange(60), 0, 59)})
    with without_noise():
        ours = kernel(made).sums(Lookup(found), [], shape, noise="laplace", scale=1.0)
    assert np.abs(ours - theirs).max() <= 60 * (2 ** (shape.bits + 1) if shape.balls else 0)


class Of(Lookup):
    """Numbers of a public or a private column, by its name."""

    def __init__(self, name, numbers):
        super().__init__(numbers)
        self._types = ((name, "int64", ()),)


def test_public_predictors_come_from_public_columns_alone(monkeypatch):
    from pymc_dp.kernel import holder

    holder.ROW_MAPS.add(Of)
    rng, shape, caught = np.random.default_rng(2), KNOWN[1], []
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: caught.append(whole.astype(object)) or whole)
    known, own = numbers_for(rng, shape, 30)[:, :-1], Of("i", nasty(rng, 30, 1))
    rows, worst = rng.integers(0, 30, 9), 0.0
    for trial in range(PAIRS):
        others = rows.copy()
        others[trial % 9] = rng.integers(0, 30)
        for held in (rows, others):
            columns = {"i": Column(held, 0, 29), "z": Column(np.arange(9), public=True), "j": Column(held, 0, 29)}
            k = Kernel(Table(columns), Rehearsal("replace"))
            k.sums(own, [], shape, noise="laplace", scale=2.0, public=Of("z", known))
        used = abs(caught[-1] - caught[-2]).sum() / k.made[-1][1].sensitivity
        assert used <= 1
        worst = max(worst, used)
    assert worst > 0.3
    for public in (None, Of("j", known)):
        with pytest.raises(ArgumentError, match="public"):
            k.sums(own, [], shape, noise="laplace", scale=2.0, public=public)
    with pytest.raises(ArgumentError, match="public"):
        k.sums(own, [], SHAPES[0], noise="laplace", scale=2.0, public=Of("z", known))


def test_sums_that_would_not_fit_are_refused():
    k = kernel(Table({"i": Column([0], 0, 0)}, neighbours="add_remove"))
    with pytest.raises(ArgumentError, match="64 bits"):
        k.sums(Lookup([[0.0, 0.0]]), [], Regression(boxes=1, sizes=True, bits=16), noise="laplace", scale=1.0)
    for given in ({"boxes": 0}, {"boxes": 1, "bits": 21}, {"balls": (1,)}, {"boxes": 1, "known": True, "sizes": True}):
        with pytest.raises(ArgumentError):
            Regression(**given)


def test_a_ball_is_checked_on_whole_numbers_also_where_floats_are_wrong(monkeypatch):
    monkeypatch.setattr(limits.np, "sqrt", lambda value: 0.5)
    rows, whole = np.array([[0.9, 0.1, 1.0], [0.3, 0.4, 1.0]]), np.ones((2, 8), dtype=np.int64)
    limits.hold_regression.py_func(rows, np.array([2]), 16, 1, False, True, False, False, False, -1, -1, whole)
    assert (whole[0, :2] == 0).all() and whole[0, 2] == 256  # t is left out, u is not
    assert (whole[1, :2] == np.array([9, 12]) * 16).all()


def test_public_predictors_larger_than_said_add_nothing_by_a_map():
    shape = Regression(boxes=1, known=True, square=False, constant=False, longest=(0.25, 0.1))
    whole = np.zeros((3, 1), dtype=np.int64)
    shape._hold(np.array([[1.0, 1.0], [0.25, -1.0], [-0.5, 1.0]]), whole)
    assert whole.ravel().tolist() == [0, -(4**shape.bits) // 4, 0]
