"""Values are clamped once, each by itself; which rows of a person are kept depends on that person's rows alone."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel import (
    Ball,
    Column,
    Columns,
    Curve,
    Interval,
    Kernel,
    MHot,
    NormalInBall,
    OneHot,
    Products,
    RowMap,
    Table,
    holder,
)
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.table import ByKind
from tests.kernel.pairs import kernel


def test_values_are_clamped_when_loaded():
    values = np.array([np.nan, np.inf, -np.inf, 0.5, 1e300, -0.0])
    held = Table({"x": Column(values, 0.0, 1.0), "k": Column([-(2**62), 7, 2**62, 1, 0, 3], 0, 3)})
    assert held.columns["x"].values.tolist() == [0, 1, 0, 0.5, 1, 0]
    assert held.columns["k"].values.tolist() == [0, 3, 3, 1, 0, 3]
    assert not np.signbit(held.columns["x"].values).any() and held.columns["k"].dtype == "int64"
    values[3] = 0.9  # the caller's array is not what is read
    assert held.columns["x"].values[3] == 0.5
    large = Column(np.array([2**64 - 1], dtype=np.uint64), 0, 5).clamped()
    assert large.values.tolist() == [5] and Column(np.array([True]), 0, 1).clamped().values.tolist() == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Column([1.0]),
        lambda: Column([1.0], 0.0, np.inf),
        lambda: Column([1.0], 1.0, 0.0),
        lambda: Column([1], 0.5, 2),
        lambda: Table({}, neighbours="add_remove", person=[1]),
        lambda: Table({"x": Column([1.0], 0, 1)}, neighbours="add_remove", person=[[1]]),
        lambda: Table({"x": Column([1.0], 0, 1)}, weights=[[1.0]]),
        lambda: Column([b"a"], 0, 1),
        lambda: Column(["a"], 0, 1),
        lambda: Column(["a"], public=True),
        lambda: Column(np.zeros((2, 2, 2)), 0, 1),
        lambda: Table({"x": Column([1.0], public=True)}, neighbours="add_remove"),
        lambda: Table({"x": Column([1.0], 0, 1), "y": Column([1.0, 2.0], 0, 1)}),
        lambda: Table({"x": Column([1.0], 0, 1)}, person=[1]),
        lambda: Table({"x": Column([1.0], 0, 1)}, neighbours="add_remove", person=[1], max_rows=2**17),
        lambda: Table({"x": Column([1.0], 0, 1)}, neighbours="add_remove", person=np.array([{}], dtype=object)),
        lambda: Table({"x": Column([1.0], 0, 1)}, weights=["secret"]),
        lambda: Table({"x": Column([1.0], 0, 1)}, neighbours="other"),
        lambda: ByKind(Table({"x": Column(np.zeros((1, 2)), 0.0, 1.0)})),
        lambda: ByKind(Table({n: Column([1.0], 0.0, 1.0) for n in "abc"})),
    ],
)
def test_what_is_no_table_is_refused(make):
    with pytest.raises(ArgumentError) as error:
        make()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_values_of_any_float_lie_within_bounds_of_float64(dtype):
    """In float16, bounds of 1e9 would be infinite; in float32, 0.1 would be another number."""
    values = np.array([1e4, np.inf, -np.inf, np.nan, 0.5], dtype=dtype)
    assert Column(values, -1e9, 1e9).clamped().values.tolist() == [1e4, 1e9, -1e9, -1e9, 0.5]
    held = Column(values, -0.1, 0.1).clamped().values
    assert held.dtype == np.float64 and held.tolist() == [0.1, 0.1, -0.1, -0.1, 0.1]


@pytest.mark.parametrize("rows", [0, 1])
def test_what_fails_for_one_row_is_refused_for_none_before_it_is_paid_for(rows):
    """Otherwise an error would tell a table with a row from one with none."""
    columns = {
        "x": Column(np.zeros(rows), -1.0, 1.0),
        "wide": Column(np.zeros(rows), -1e308, 1e308),
    }
    k, x = Kernel(Table(columns, neighbours="add_remove"), Rehearsal("add_remove")), Columns({"x": (0.0, 1.0)})
    for call in (
        lambda: k.sum(x, [], 1, bound=10**400, noise="laplace", scale=1e9),
        lambda: Kernel(Table({"wide": columns["wide"]}, neighbours="add_remove"), Rehearsal("add_remove")).by_kind(),
    ):
        with pytest.raises(ArgumentError):
            call()
    assert not k.made


@pytest.mark.parametrize("most", [1, 2**16])
def test_numbers_of_a_unit_that_do_not_fit_are_refused_before_they_are_paid_for(most):
    """A person with all its rows would fail for want of memory, and one with fewer would not."""
    person = np.array([1, 2]) if most > 1 else None
    made = Table({"x": Column([0.0, 1.0], 0.0, 1.0)}, neighbours="add_remove", person=person, max_rows=most)
    k, x, size = Kernel(made, Rehearsal(made.relation)), Columns({"x": (0.0, 1.0)}), holder.MOST_HELD // most + 1
    noise = {"noise": "laplace", "scale": 1e9}
    for call in (
        lambda: k.choose(x, [], size, width=1.0, eta=1.0),
        lambda: k.sum(x, [], size, bound=1.0, **noise),
        lambda: k.soft_max(x, [], size, low=0.0, high=1.0, **noise),
        lambda: k.sums(x, [], OneHot(size), **noise),
    ):
        with pytest.raises(ArgumentError, match="numbers for each"):
            call()
    assert not k.made


def test_rows_of_a_wide_shape_are_held_a_few_at_a_time():
    k, found = kernel(Table({"x": Column(np.zeros(100), 0.0, 1.0)})), []
    blocks = k._table._blocks
    k._table._blocks = lambda most: found.append(most) or blocks(most)
    k.sums(Columns({"x": (0.0, 1.0)}), [], OneHot(2**16), noise="laplace", scale=9.0)
    assert found == [holder.AT_ONCE // 2**16]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("rows", [0, 1])
def test_every_operation_works_on_no_rows_as_on_one(rows, persons, weighted):
    """A table with no row or person is the neighbour of one: an error of either would tell them apart."""
    columns = {
        "i": Column(np.zeros(rows, dtype=int), 0, 3),
        "v": Column(np.zeros((rows, 2)), 0.0, 1.0),
    }
    made = Table(
        columns,
        neighbours="add_remove",
        person=np.ones(rows) if persons else None,
        max_rows=2,
        weights=np.ones(rows) if weighted else None,
    )
    k, i = Kernel(made, Rehearsal(made.relation)), pt.lscalar("i")
    one, two = RowMap({"i": i}, [], pt.stack([i * 1.0])), Columns({"v": (0.0, 1.0)})
    k.choose(two, [], 2, width=1.0, eta=0.1)
    k.choose(two, [], 2, width=1.0, eta=0.1, **({} if persons else {"cell": "i", "cells": 2}))
    k.accept(one, [], low=0.0, high=1.0, beta=0.1)
    k.penalty(one, [], low=0.0, high=1.0, noise=9.0)
    k.sum(two, [], 2, bound=1.0, noise="laplace", scale=9.0)
    k.soft_max(two, [], 2, low=0.0, high=1.0, noise="laplace", scale=9.0)
    for shape in (Ball(2), MHot(2, 3), Interval((0, 0), (1, 1)), Products(2)):
        k.sums(two, [], shape, noise="laplace", scale=2.0**30)
    for shape in (OneHot(2), Curve()):
        k.sums(one, [], shape, noise="laplace", scale=2.0**30, cell="i", cells=2)
    if not weighted:
        three = RowMap({"i": i}, [], pt.stack([i * 1.0, i * 1.0, i * 1.0]))
        k.draw(three, [], NormalInBall(width=2, radius=1.0, longest=1.0, farthest=1.0, precision=1.0), beta=0.1)
    if not persons and not weighted:
        plain = Kernel(Table({"i": columns["i"]}, neighbours="add_remove"), Rehearsal("add_remove"))
        plain.by_kind().choose(RowMap({"i": i}, [], pt.stack([i, -i])), [], 2, width=1.0, eta=0.1)


def kept(held):
    """Rows of every person, as a set of sorted tuples with the order in which they are summed."""
    rows = np.column_stack([column.values.reshape(held._n, -1) for column in held.columns.values()])
    return sorted(tuple(map(tuple, rows[a:b])) for a, b in zip(held._first, held._first[1:], strict=False))


def people(person, x, k, most=3, **options):
    return Table(
        {"x": Column(x, -9.0, 9.0), "k": Column(k, 0, 9)},
        neighbours="add_remove",
        person=person,
        max_rows=most,
        **options,
    )


def test_kept_rows_depend_on_nothing_but_the_person(same_keys):
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 60))
        person, x, k = rng.integers(0, 8, n), np.round(rng.normal(size=n)), rng.integers(0, 3, n)
        found = kept(people(person, x, k))
        order = rng.permutation(n)
        assert kept(people(person[order], x[order], k[order])) == found  # of rows
        names = np.array([f"id {value}" for value in rng.permutation(100)])
        assert kept(people(names[person], x, k)) == found  # of ids
        rest = person != person[0]
        if rest.any():  # of other persons
            assert not set(kept(people(person[rest], x[rest], k[rest]))) - set(found)
            assert len(kept(people(person[rest], x[rest], k[rest]))) == len(found) - 1
        assert all(len(rows) <= 3 for rows in found)


def test_kept_rows_are_drawn_anew_and_evenly_also_among_equal_ones():
    x = np.array([1.0] * 5 + [2.0])
    found = [people(np.zeros(6, dtype=int), x, np.zeros(6, dtype=int), most=2) for _ in range(3000)]
    counts = np.array([(held.columns["x"].values == 2.0).sum() for held in found])
    assert counts.max() == 1 and abs(counts.mean() - 2 / 6) < 0.04


def test_rows_of_nobody_are_left_out_and_the_number_of_rows_is_private():
    held = people(np.array([-1, 3, 3, -5]), np.arange(4.0), np.zeros(4, dtype=int))
    assert kept(held) in ([((1.0, 0.0), (2.0, 0.0))], [((2.0, 0.0), (1.0, 0.0))])
    with pytest.raises(PrivacyError, match="private"):
        held.n_rows  # noqa: B018
    assert len(people(np.array([-1.0, np.nan]), np.zeros(2), np.zeros(2, dtype=int))._first) == 1


def test_blocks_hold_whole_units(same_keys):
    rng = np.random.default_rng(1)
    held = people(rng.integers(0, 30, 200), rng.normal(size=200), rng.integers(0, 3, 200), most=5)
    parts = list(held._blocks(7))
    assert sum(len(rows[0]) for rows, _, _ in parts) == held._n
    assert all(first[-1] == len(rows[0]) and len(times) == len(first) - 1 for rows, first, times in parts)
    lengths = np.concatenate([np.diff(first) for _, first, _ in parts])
    assert (lengths == np.diff(held._first)).all()


def test_kinds_count_every_row_once():
    rng = np.random.default_rng(2)
    table = Table({"x": Column(rng.uniform(-1, 1, 500), -1.0, 1.0), "k": Column(rng.integers(0, 3, 500), 0, 2)})
    kinds = ByKind(table, nodes=9)
    assert kinds._counts.sum() == 500 and len(kinds._counts) == 27
    places = np.rint((table.columns["x"].values + 1) * 4) * 3 + table.columns["k"].values
    assert (kinds._counts == np.bincount(places.astype(int), minlength=27)).all()
    parts = list(kinds._blocks(10))
    assert np.concatenate([times for _, _, times in parts]).sum() == 500
