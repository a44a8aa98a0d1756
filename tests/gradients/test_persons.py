"""What persons add to gradients and curvatures: all of their rows, within what is charged for one of them."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from pymc_dp.gradients.integers import CURVATURE_UNITS, SCORE_UNITS, add_collapsed, add_curvatures, add_scores
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.persons import PersonParts, Weighed, add_persons
from pymc_dp.gradients.release import NoisedSums, units
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits, Schedule, stages_of
from pymc_dp.rows.gate import read
from pymc_dp.rows.persons import Grouped
from pymc_dp.testing import without_noise
from tests.gradients import models
from tests.gradients.test_levels import CROSSED

pytestmark = pytest.mark.usefixtures("paid")
MOST = 3
HOSTILE = (np.nan, np.inf, 1e308, 1.0, -1.0, 1 + 1e-15, 2.0, 0.7071067811865476)


def squared(whole, side):
    """Exactly, in Python's integers: twice of what is off the diagonal of the matrix that it begins with."""
    flat = [int(one) for one in np.ravel(whole)]
    return sum(
        one**2 * (2 if place < side**2 and place // side != place % side else 1) for place, one in enumerate(flat)
    )


def added(rows, lengths, add, limit, shape, side):
    total = np.zeros(shape, dtype=np.int64)
    edges = np.append(0, np.cumsum(lengths))
    add_persons(Weighed(rows=rows, edges=edges), total, add=add, most=MOST, limit=limit, side=side)
    return total


SUMS = {
    "scores": (add_scores, SCORE_UNITS, (4,), 0, (4,)),
    "curvatures": (add_curvatures, CURVATURE_UNITS, (4, 4), 4, (2, 4)),
    "collapsed": (
        partial(add_collapsed, levels=CROSSED),
        CURVATURE_UNITS,
        (CROSSED.count**2 + len(CROSSED.slots),),
        CROSSED.count,
        (1, len(CROSSED.slots)),
    ),
}


@pytest.mark.parametrize("kind", SUMS)
def test_no_person_adds_more_than_is_charged_whatever_the_rows_hold(kind, rng):
    add, limit, shape, side, entry = SUMS[kind]
    largest = 0
    for turn in range(3000):
        count = int(rng.choice([1, MOST, MOST + 1, 40]))
        rows = rng.normal(size=(count, *entry)) * rng.choice([0.05, 0.3, 1])
        if turn % 2:
            rows[:] = rows[:1]  # all alike: the worst there is
        if turn % 3 == 0:
            rows = np.where(rng.random(rows.shape) < 0.2, rng.choice(HOSTILE, rows.shape), rows)
        moved = squared(added(rows, [count], add, limit, shape, side), side)
        assert moved <= (MOST * limit) ** 2
        largest = max(largest, moved)
    assert largest > 0.5 * (MOST * limit) ** 2


@pytest.mark.parametrize("kind", SUMS)
def test_rows_that_are_held_one_by_one_are_not_enough(kind):
    add, limit, shape, side, entry = SUMS[kind]
    row = np.zeros((1, *entry))
    row.flat[0] = 1 - 1e-6
    rows = np.repeat(row, 10, axis=0)
    total = np.zeros(shape, dtype=np.int64)
    add(rows, total)
    assert squared(total, side) > (9.9 * limit) ** 2
    assert not added(rows, [10], add, limit, shape, side).any(), "a person who is not weighed adds nothing"
    assert squared(added(rows[:MOST], [MOST], add, limit, shape, side), side) > (0.999 * MOST * limit) ** 2


@pytest.mark.parametrize("kind", SUMS)
def test_persons_are_summed_apart(kind, rng):
    add, limit, shape, side, entry = SUMS[kind]
    lengths = [1, 5, 3, 4, 1]
    rows = rng.normal(size=(sum(lengths), *entry)) * 0.1
    rows[7] = np.nan
    ends = np.append(0, np.cumsum(lengths))
    own = [added(rows[a:b], [b - a], add, limit, shape, side) for a, b in pairwise(ends)]
    np.testing.assert_array_equal(added(rows, lengths, add, limit, shape, side), np.sum(own, axis=0))


def parts_of(build, limits=(0.4, 0.6)):
    interface = interface_of(*build())
    rows = RowParts(rows=RowScores.of(interface, mode="FAST_COMPILE"))
    held = Limits(scale=np.linspace(0.5, 2, interface.size), clip_norm=limits[0], clip_curvature=limits[1])
    columns = [read(column) for column in interface.inspection.columns]
    return rows, PersonParts(parts=rows, most=MOST), columns, held


def repeated(columns, rows):
    return [column[rows] for column in columns]


BUILDS = [models.bernoulli, models.normal, models.poisson, models.groups, models.two, models.integrated]


@pytest.mark.few(1)
@pytest.mark.parametrize("build", BUILDS)
def test_rows_of_persons_with_few_count_as_ever(build, rng):
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    edges = np.array([0, 1, 4, 6, 9, *range(12, models.ROWS, 3), models.ROWS])
    found = Grouped(columns, edges)
    np.testing.assert_array_equal(persons.scores(found, at, limits).rows, plain.scores(columns, at, limits))
    np.testing.assert_array_equal(persons.factors(found, at, limits).rows, plain.factors(columns, at, limits))


@pytest.mark.few(1)
@pytest.mark.parametrize("build", BUILDS)
def test_the_worst_person_adds_what_is_charged_and_no_more(build, rng):
    """Searched for: the row with the longest score, a thousand times; and rows that together are longest, by turns."""
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    scores, factors = plain.scores(columns, at, limits), plain.factors(columns, at, limits)
    sizes = np.linalg.norm(np.einsum("nqd,nqe->nde", factors, factors), axis=(1, 2))
    longest, steepest = np.linalg.norm(scores, axis=1).argmax(), sizes.argmax()
    tries = [np.full(1000, longest), np.full(1000, steepest)]
    rows = [longest]
    for _ in range(8):  # one row after another, each such that the sum is longest
        rows.append(int(np.linalg.norm(scores[rows].sum(axis=0) + scores, axis=1).argmax()))
        tries.append(np.array(rows))
    tries += [rng.integers(0, models.ROWS, count) for count in (4, 10, 100)]
    found = []
    for rows in tries:
        chunk = Grouped(repeated(columns, rows), np.array([0, len(rows)]))
        score, bent = persons.scores(chunk, at, limits), persons.factors(chunk, at, limits)
        total, matrix = np.zeros(len(at), dtype=np.int64), np.zeros((len(at),) * 2, dtype=np.int64)
        add_persons(score, total, add=add_scores, most=MOST, limit=SCORE_UNITS, side=0)
        add_persons(bent, matrix, add=add_curvatures, most=MOST, limit=CURVATURE_UNITS, side=len(at))
        np.testing.assert_allclose(total / SCORE_UNITS, score.rows.sum(axis=0), atol=2e-3)  # nobody is left out
        assert matrix.any()
        found.append((np.sqrt(squared(total, 0)) / SCORE_UNITS, np.sqrt(squared(matrix, len(at))) / CURVATURE_UNITS))
    worst = np.max(found, axis=0)
    assert (worst <= MOST).all()
    assert worst.max() > 0.99 * MOST


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.bernoulli, models.poisson, models.integrated])
def test_the_weight_of_a_person_does_not_see_responses(build, rng):
    """So that weighed scores have mean 0 where scores have; what is added of each row is that row times one number."""
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    response = plain.rows.interface.responses[0].place
    weights = []
    for turn in range(4):
        held = list(columns)
        held[response] = np.roll(columns[response], turn)
        found = persons.scores(Grouped(held, np.array([0, models.ROWS])), at, limits)
        whole = plain.scores(held, at, limits)
        weight = (found.rows * whole).sum(axis=1) / (whole**2).sum(axis=1)
        np.testing.assert_allclose(found.rows, weight[:, None] * whole, atol=1e-9)
        assert np.ptp(weight) < 1e-9
        weights.append(weight[0])
        bent = persons.factors(Grouped(held, np.array([0, models.ROWS])), at, limits)
        np.testing.assert_allclose(bent.rows, np.sqrt(weight[0]) * plain.factors(held, at, limits), atol=1e-9)
    assert 0 < weights[0] < 0.9 and np.ptp(weights) < 1e-9


@pytest.mark.parametrize("build", [models.normal, models.integrated])
def test_what_a_person_adds_depends_on_nobody_else(build, rng):
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    edges = np.array([0, 9, 10, 30, models.ROWS])
    whole = persons.scores(Grouped(columns, edges), at, limits).rows
    hostile = [column.copy() for column in columns]
    for column in hostile:
        column[30:] = np.nan if column.dtype.kind == "f" else -(2**30)
    np.testing.assert_array_equal(persons.scores(Grouped(hostile, edges), at, limits).rows[:30], whole[:30])
    alone = Grouped([column[10:30] for column in columns], np.array([0, 20]))
    np.testing.assert_array_equal(persons.scores(alone, at, limits).rows, whole[10:30])


def test_rows_of_which_the_model_says_the_same_are_held_as_any_others(rng, monkeypatch):
    """Evaluated once for all rows, or each by itself: weights, and noised sums before their noise, are the same."""
    plain, persons, columns, limits = parts_of(models.integrated)
    size = plain.rows.interface.size
    at, edges = rng.normal(0, 0.5, size), np.array([0, 1, 4, 20, models.ROWS])
    held = Grouped(columns, edges)
    schedule = Schedule(stages=stages_of(60), units=units(size, "add_remove", rows=MOST), multiplier=1e-6)

    def sums():
        found = []
        for parts, chunk, most in ((persons, held, MOST), (plain, columns, None)):
            releases = NoisedSums(parts=parts, chunks=lambda chunk=chunk: [chunk], schedule=schedule, persons=most)
            with without_noise():
                found += [releases.gradient(0, 0, at, limits), releases.curvature(0, at, limits)[0]]
        return found

    assert plain.rows.alike
    once, weighed = sums(), persons.scores(held, at, limits).rows
    monkeypatch.setattr(RowScores, "cells", property(lambda self: None))
    for one, other in zip(once, sums(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * np.abs(other).max())
    np.testing.assert_allclose(weighed, persons.scores(held, at, limits).rows, atol=1e-12)
    few = Grouped(columns, np.array([0, 3, *range(4, models.ROWS + 1, 3)]))
    assert np.diff(few.edges).max() == MOST
    for part, add, shape in (("scores", add_scores, (size,)), ("factors", add_curvatures, (size, size))):
        whole, own = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        limit, side = (SCORE_UNITS, 0) if part == "scores" else (CURVATURE_UNITS, size)
        add(getattr(plain, part)(columns, at, limits), whole)
        add_persons(getattr(persons, part)(few, at, limits), own, add=add, most=MOST, limit=limit, side=side)
        np.testing.assert_array_equal(own, whole)
