"""Sums of columns as they are stored: how far neighbours move them, what is charged, and what comes in which order."""

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel import draw, persons
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.accounting.events import ComposedEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent
from pymc_dp.kernel.gram import Regression
from pymc_dp.kernel.gram_sums import Regressed, Scaled
from pymc_dp.kernel.readings import Counts, Listed, Numbers, OneByOne, Places, Powers, Successes
from pymc_dp.kernel.relations import PER_PERSON, PER_UNIT
from pymc_dp.kernel.shapes import GRID, Circle, Move, OneOf
from pymc_dp.kernel.tallies import Cells, Key, Noised, PaidSums, Part, PerUnit, Rows, SumRelease, Tally, added_up
from pymc_dp.testing import without_noise
from tests.kernel.pairs import NASTY, PAIRS

UNIT = 2.0 / GRID
LINE = (("identity", 0.0, 0),)


def numbers(together, *functions, low=-2.0, high=2.0, width=1):
    count = len(functions)
    return Numbers(low, high, width, functions, (0.0,) * count, (UNIT,) * count, (GRID,) * count, together)


def circle(row):
    return [np.cos(row[0]) * 3, row[0] ** 2]


READINGS = {
    "places": Places(3),
    "second place": Places(2, second=True),
    "bins": Places(4, edges=(-1.0, 0.0, 1.5)),
    "counts": Counts(3, 5),
    "counts without a rest": Counts(3, 5, rest=False),
    "second count": Counts(2, 5, second=True),
    "successes": Successes(5, 0.0, 5.0),
    "first power": Powers(-2.0, 2.0, 0.0, UNIT, (1,)),
    "second power": Powers(-1.0, 2.0, 0.0, UNIT, (2,), GRID // 2),
    "both powers": Powers(-2.0, 2.0, 0.0, UNIT, (1, 2)),
    "both powers about their middle": Powers(-2.0, 2.0, 0.0, UNIT, (1, 2), GRID // 2),
    "functions": numbers("apart", ("identity", 0.0, 0), ("square", 0.5, 0), ("log", 0.0, 0), low=0.1),
    "circle": Numbers(
        -4.0, 4.0, 1, (("cos", 0.0, 0), ("sin", 0.0, 0)), (0.0,) * 2, (1 / GRID,) * 2, (GRID,) * 2, "circle"
    ),
    "curve": numbers("curve", *LINE),
    "products": numbers("products", ("identity", 0.0, 0), ("identity", 0.0, 1), width=2),
    "list": Listed(2, 0, 2, OneOf(np.random.default_rng(3).integers(-GRID, GRID, (9, 3)))),
    "one by one": OneByOne(1, circle, ((-2.0, 2.0), (0.0, 4.0))),
}
LOOSE = ("list", "circle", "one by one", "functions", "products", "counts without a rest", "successes")
"""Whose worst pairs random rows seldom are."""
GRAM = {
    "boxes": Regression(boxes=2, sizes=True, bits=12),
    "cells": Regression(boxes=2, sizes=True, cells=3, bits=12),
    "cells apart": Regression(balls=(2,), boxes=1, sizes=True, cells=3, apart=True, bits=12),
    "public cells": Regression(boxes=2, cells=3, bits=12),
    "public predictors": Regression(boxes=2, cells=3, known=True, bits=12, longest=(1.5, 1.3)),
}


def values_of(rng, reading, count):
    """Rows at ends and at corners, of wild floats, and of whole numbers."""
    if isinstance(reading, Places) and reading.second:
        return [rng.choice([0.0, 1.0, 1.0, np.nan, 7.0], count)]
    found = []
    for width in reading.widths:
        shape = (count, width)
        plain = rng.choice([-2.0, 2.0, 0.0, 1.0, 5.0, 0.1], shape)
        wild = np.where(rng.random(shape) < 0.5, rng.choice(NASTY, shape), rng.normal(size=shape) * 3)
        values = np.where(rng.random((count, 1)) < 0.6, plain, wild)
        found.append(values if width > 1 else values[:, 0])
    return found


class Held:
    """A source of rows in memory, in one part or in several."""

    def __init__(self, *rows, owners=None, edges=()):
        self.rows, self.owners, self.edges = rows, owners, edges

    def totals(self):
        return None

    def parts(self):
        ends = [0, *self.edges, len(self.rows[0].values[0])]
        for start, stop in pairwise(ends):
            here = slice(start, stop)
            cut = [
                Rows(
                    [held[here] for held in one.values],
                    [held[here] for held in one.levels],
                    None if one.weights is None else one.weights[here],
                )
                for one in self.rows
            ]
            yield lambda cut=cut, here=here: Part(cut, None if self.owners is None else self.owners[here])


@pytest.fixture
def exact(monkeypatch):
    """Whole numbers as they get noise, with its kind and scale; a row has the same key in whatever table it is."""
    caught = []
    monkeypatch.setattr(
        draw, "noised", lambda whole, kind, scale: caught.append((whole.astype(object), kind, scale)) or whole
    )
    return caught


def used_of(exact, release):
    """The largest share of what was charged that two releases in a row used: exact whole numbers."""
    events, worst = release.event.events, 0.0
    half = len(exact) // 2
    assert half == len(events)
    for (one, kind, scale), (two, _, _), event in zip(exact[:half], exact[half:], events, strict=True):
        assert scale == event.scale and kind == release.noise
        apart = (one - two).ravel()
        if isinstance(event, DiscreteLaplaceEvent):
            used, most = sum(map(abs, apart)), event.sensitivity
        else:
            assert isinstance(event, DiscreteGaussianEvent)
            used, most = sum(k * k for k in apart), event.l2_squared
        assert used <= most
        if event.shifts is not None:
            steps = sorted((abs(k) for k in apart if k), reverse=True)
            assert len(steps) <= len(event.shifts) and all(a <= b for a, b in zip(steps, event.shifts, strict=False))
        worst = max(worst, float(used / most))
    return worst


def drawn(release, source):
    return release.charge(Rehearsal(release.relation), "test").draw(source)


@pytest.mark.parametrize("relation", ["replace", "add_remove", "persons"])
@pytest.mark.parametrize("cells", ["none", "private", "public"])
@pytest.mark.parametrize("name", READINGS)
def test_neighbours_move_sums_by_no_more_than_charged(name, cells, relation, exact, monkeypatch):
    """One row that is replaced or added, or a person with two rows or three, in one of many small tables."""
    reading, rng, worst = READINGS[name], np.random.default_rng(1), 0.0
    keys = () if cells == "none" else (Key(np.arange(3), nearest=True, public=cells == "public"),)
    neighbours = "replace" if relation == "replace" else "add_remove"
    for trial in range(PAIRS if PAIRS > 200 else 32):
        weighted, noise = trial % 3 == 0, ("laplace", "gaussian")[trial % 2]
        sized = not isinstance(reading, Places) and (neighbours == "add_remove" or cells == "private" or weighted)
        tally = Tally(reading=reading, cells=Cells(keys), sized=sized, weighted=weighted)
        count = int(rng.integers(2, 9))
        values, levels = values_of(rng, reading, count + 3), rng.integers(-1, 5, count + 3)
        weights = rng.choice([0.0, 1.0, 0.3, np.nan, 2.0, -1.0], count + 3) if weighted else None
        owners = np.r_[np.arange(count) % 3, [99] * 3]
        of_person = 2 if relation == "persons" else 1
        release = SumRelease(
            [Noised(tally, (3.0,) * (1 + sized))],
            noise=noise,
            neighbours=neighbours,
            persons=relation == "persons",
            rows=of_person,
            relation=f"{PER_PERSON}who" if relation == "persons" else None,
        )
        exact.clear()
        first = list(range(count))
        if relation == "replace":
            other = [*first[:-1], count]  # the last row is another one
            if cells == "public":
                levels[count] = levels[count - 1]
        else:
            other = [*first, *([count] if relation == "add_remove" else range(count, count + 3))]
        for rows in (first, other):
            own = rng.permutation(len(rows)) if relation != "replace" else np.arange(len(rows))
            rows = np.array(rows)[own]
            monkeypatch.setattr(persons, "secure_keys", lambda n, rows=rows: (rows * 7919 + 13).astype(np.uint64))
            held = Rows(
                [column[rows] for column in values],
                [levels[rows]] if keys else [],
                None if weights is None else weights[rows],
            )
            drawn(release, Held(held, owners=owners[rows] if relation == "persons" else None))
        worst = max(worst, used_of(exact, release))
    assert worst > (0.3 if relation == "persons" or name in LOOSE else 0.6)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", GRAM)
def test_neighbours_move_products_by_no_more_than_charged(name, relation, exact):
    shape, rng, worst = GRAM[name], np.random.default_rng(2), 0.0
    public = name.startswith("public")
    if public and relation == "add_remove":
        return
    balls = [Scaled((0.0,) * size, (1.0,) * size, ball=True) for size in shape.balls]
    boxes = [Scaled((0.0,), (1.0,))] * shape.boxes
    reading = Regressed((*balls, *boxes), Scaled((0.0,), (1.0,)), shape)
    key = Key(np.arange(3), nearest=True, public=public)
    tally = Tally(reading=reading, cells=Cells((key,) if shape.cells > 1 else ()))
    for trial in range(PAIRS if PAIRS > 200 else 32):
        release = SumRelease([Noised(tally, (5.0,))], noise=("laplace", "gaussian")[trial % 2], neighbours=relation)
        count = int(rng.integers(2, 9))
        values = [
            rng.choice([-1.0, 1.0, 0.6, 0.0, -0.8, np.nan, 1e300], held.shape)
            for held in values_of(rng, reading, count + 1)
        ]
        levels = rng.integers(-1, 4, count + 1)
        first, other = np.arange(count), np.r_[np.arange(count - (relation == "replace")), count]
        if public:
            levels[count] = levels[count - 1]
        if name == "public predictors":
            for held in values[:-1]:
                held[count] = held[count - 1]
        exact.clear()
        for rows in (first, other):
            levels_of_rows = [levels[rows]] if shape.cells > 1 else []
            drawn(release, Held(Rows([held[rows] for held in values], levels_of_rows)))
        worst = max(worst, used_of(exact, release))
    assert worst > 0.3


def test_public_predictors_that_are_larger_than_said_add_nothing():
    shape = Regression(boxes=2, known=True, bits=12, longest=(1.5, 1.3))
    reading = Regressed((Scaled((0.0,), (1.0,)),) * 2, Scaled((0.0,), (1.0,)), shape)
    rows = [np.array([1.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.5]), np.array([1.0, 1.0, 1.0])]
    one = Tally(reading=reading).exact(Rows(rows, []))
    assert one.tolist() == Tally(reading=reading).exact(Rows([held[1:] for held in rows], [])).tolist()


def test_points_beyond_a_circle_add_nothing():
    whole = np.ones((3, 2), dtype=np.int64)
    Circle(GRID)._hold(np.array([[GRID, GRID], [0.0, np.nan], [-GRID, 0.0]], dtype=float), whole)
    assert whole.tolist() == [[0, 0], [0, 0], [-GRID, 0]]


def test_a_list_of_one_column_or_of_one_point_has_events_of_both_kinds():
    for points in ([[5]], [[3], [-4]], [[1, 2]]):
        reading = Listed(1, 0, len(points) - 1, OneOf(np.array(points)))
        for noise in ("laplace", "gaussian"):
            assert SumRelease([one(reading)], noise=noise, neighbours="replace").event


def test_what_does_not_fit_is_refused_before_it_is_paid_for():
    regressed = Regressed((Scaled((0.0,), (1.0,)),), Scaled((0.0,), (1.0,)), Regression(boxes=1, sizes=True, bits=14))
    for asked in (
        Noised(Tally(reading=Places(2), sized=True), (1.0, 1.0)),
        Noised(Tally(reading=regressed, cells=Cells((Key(np.arange(3), public=True),))), (1.0,)),
    ):
        account = Rehearsal("replace")
        with pytest.raises(ArgumentError):
            SumRelease([asked], noise="laplace", neighbours="replace").charge(account, "test")
        assert not account.events


def test_sums_are_of_rows_whatever_parts_they_come_in():
    rng = np.random.default_rng(5)
    tallies = [Tally(reading=READINGS[name], cells=Cells((Key(np.arange(3)),))) for name in ("places", "curve", "list")]
    held = [Rows(values_of(rng, tally.reading, 500), [rng.integers(-2, 6, 500)]) for tally in tallies]
    once = added_up(tallies, Held(*held))
    order = rng.permutation(500)
    mixed = [Rows([values[order] for values in one.values], [one.levels[0][order]]) for one in held]
    for found in (added_up(tallies, Held(*held, edges=(1, 7, 7, 300))), added_up(tallies, Held(*mixed, edges=(100,)))):
        assert all(np.array_equal(a, b) for a, b in zip(once, found, strict=True))


def test_an_array_of_one_column_or_of_the_other_byte_order_is_read_as_it_is():
    values, levels = np.array([0.5, -1.0, 3.0]), np.array([0, 1, 1])
    tally = Tally(reading=READINGS["both powers"], cells=Cells((Key(np.arange(2)),)))
    wanted = tally.exact(Rows([values], [levels])).tolist()
    assert tally.exact(Rows([values[:, None].astype(">f8")], [levels.astype(">i4")])).tolist() == wanted
    with pytest.raises(PrivacyError, match="no numbers"):
        tally.exact(Rows([values.astype(np.longdouble)], [levels]))
    for other in (Rows([values, values], [levels]), Rows([values], [])):
        with pytest.raises(PrivacyError, match="lengths"):
            tally.exact(other)


def test_a_single_product_has_events_of_both_kinds_of_noise():
    shape = Regression(boxes=1, known=True, constant=False, square=False, bits=12, longest=(0.7, 0.5))
    reading = Regressed((Scaled((0.0,), (1.0,)),), Scaled((0.0,), (1.0,)), shape)
    for noise in ("laplace", "gaussian"):
        assert SumRelease([one(reading)], noise=noise, neighbours="replace").event


def test_ids_that_are_floats_are_refused():
    with pytest.raises(PrivacyError, match="whole numbers or texts"):
        persons.kept_rows(np.array([1.0, np.nan, -1.0]), 1)


def test_a_row_of_no_cell_adds_nothing():
    lookup = np.array([-1, 0, 1])
    tally = Tally(reading=READINGS["both powers"], cells=Cells((Key(np.arange(3)),), lookup), sized=True)
    rows = Rows([np.array([1.0, 1.0, 1.0, 1.0])], [np.array([0, 1, 2, 7])])
    assert tally.exact(rows)[:, 0].tolist() == [1, 1]
    places = Tally(reading=Places(2), cells=Cells((Key(np.arange(3)),), lookup))
    assert places.exact(Rows([np.array([1, 1, 0, 1])], rows.levels)).tolist() == [[0, 1], [1, 0]]


def test_all_is_paid_at_once_before_a_row_is_read_and_drawn_once():
    class Poor(Rehearsal):
        def charge(self, event, label):
            raise BudgetExceeded("nothing is left")

    release = SumRelease(
        [
            Noised(Tally(reading=Places(2)), (1.0,)),
            Noised(Tally(reading=READINGS["both powers"], sized=True), (2.0, 3.0)),
        ],
        noise="laplace",
        neighbours="add_remove",
    )
    with pytest.raises(BudgetExceeded):
        release.charge(Poor("add_remove"), "test")
    account = Rehearsal("add_remove")
    paid = release.charge(account, "test")
    ((label, event),) = account.events
    assert label == "test" and isinstance(event, ComposedEvent) and event == release.event
    assert [part.scale for part in event.events] == [1.0, 2.0, 3.0]
    source = Held(Rows([np.array([0, 1])], []), Rows([np.array([0.5, -1.0])], []))
    with without_noise():
        counts, sums = paid.draw(source)
    assert counts.tolist() == [[1, 1]] and sums[0, 0] == 2
    with pytest.raises(PrivacyError, match="already"):
        paid.draw(source)
    with pytest.raises(PrivacyError, match="under"):
        release.charge(Rehearsal("replace"), "test")


def test_per_unit_of_a_metric_sums_cost_what_a_unit_moves():
    reading, per_unit = READINGS["first power"], PerUnit(Fraction(7, 2), Fraction(1, 3), Fraction(1, 2))
    tally = Tally(reading=reading, cells=Cells((Key(np.arange(2)),)), sized=True, per_unit=per_unit)
    sizes, sums = tally.moves("replace")
    assert sizes.l1 == 4 and sums.l1 == 3 * 2 * GRID and sums.shifts is None
    with pytest.raises(PrivacyError, match="counted under"):
        SumRelease([Noised(tally, (1.0, 1.0))], noise="laplace", neighbours="replace")


def one(reading, **how):
    return Noised(Tally(reading=reading, **how), (1.0,))


def test_what_does_not_fit_is_refused_without_a_value():
    reading = READINGS["first power"]
    with pytest.raises(PrivacyError, match="lengths") as caught:
        Tally(reading=reading, cells=Cells((Key(np.arange(2)),))).exact(Rows([np.full(3, 31337.5)], [np.zeros(2)]))
    assert "31337" not in str(caught.value)
    with pytest.raises(PrivacyError, match="entries"):
        Tally(reading=reading).exact(Rows([np.zeros((3, 2))], []))
    for kind in (np.array(["31337", "x"]), np.array([31337, None], dtype=object)):
        with pytest.raises(PrivacyError, match="no numbers") as caught:
            Tally(reading=reading).exact(Rows([kind], []))
        assert "31337" not in str(caught.value)
    with pytest.raises(ArgumentError, match="scales"):
        SumRelease([Noised(Tally(reading=reading), (1.0, 2.0))], noise="laplace", neighbours="replace")


class OtherPowers(Powers):
    pass


class OtherPoints(OneOf):
    def move(self, neighbours, **how):
        return Move(l1=1, l2_squared=1)


class OtherRegression(Regression):
    pass


class OtherCells(Cells):
    pass


FINE = Regressed((Scaled((0.0,), (1.0,)),), Scaled((0.0,), (1.0,)), Regression(boxes=1, sizes=True, bits=20))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tally(reading=OtherPowers(-2.0, 2.0, 0.0, UNIT, (1,))),
        lambda: Listed(1, 0, 1, OtherPoints(np.array([[1], [2]]))),
        lambda: Regressed((Scaled((0.0,), (1.0,)),), Scaled((0.0,), (1.0,)), OtherRegression(boxes=1)),
        lambda: Tally(reading=Places(2), cells=OtherCells((Key(np.arange(2)),))),
        lambda: Tally(reading=Places(2), cells=Cells((Key(np.arange(2)), 7))),
        lambda: Tally(reading=Places(2), weighted=np.array(False)),
        lambda: Tally(reading=Places(2), sized=1),
        lambda: Key(np.arange(2), public=[1]),
        lambda: Key(np.array([2.0, 1.0])),
        lambda: Cells((Key(np.arange(2)),), np.array([0, -2])),
        lambda: Cells((Key(np.arange(2)),), np.array([0, 1, 2])),
        lambda: Counts(2, 5, True, second=[1]),
        lambda: Places(2, second=[1]),
        lambda: Places(2, edges=(float("nan"),)),
        lambda: Powers(2.0, -2.0, 0.0, UNIT, (1,)),
        lambda: Powers(-2.0, 2.0, 0.0, 0.0, (1,)),
        lambda: Powers(-2.0, 2.0, 0.0, UNIT / 2, (1, 2)),
        lambda: Numbers(-2.0, 2.0, 1, LINE * 2, (0.0,), (UNIT,), (GRID,)),
        lambda: Numbers(-2.0, 2.0, 1, LINE, (0.0,), (UNIT,), ()),
        lambda: Numbers(-2.0, 2.0, 1, (("identity", 0.0, 1),), (0.0,), (UNIT,), (GRID,)),
        lambda: Numbers(-2.0, 2.0, 0, LINE, (0.0,), (UNIT,), (GRID,)),
        lambda: Listed(1, 1, 0, OneOf(np.array([[1], [2]]))),
        lambda: Regressed((Scaled((0.0,), ()),), Scaled((0.0,), (1.0,)), Regression(boxes=1)),
        lambda: Regression(boxes=1, known=True, longest=(-0.49, 0.1)),
        lambda: OneOf(np.array([[-(2**63)], [1]])),
        lambda: OneOf(np.array([[np.nan], [1.0]])),
        lambda: OneOf(np.zeros((2, 1), dtype=int)),
        lambda: SumRelease([one(Places(2))], noise="laplace", neighbours="replace", rows=3),
        lambda: SumRelease(
            [one(Counts(2, 3))], noise="laplace", neighbours="add_remove", persons=True, rows=0, relation="unit: p"
        ),
        lambda: SumRelease([Noised(Tally(reading=Places(2)), (np.nan,))], noise="laplace", neighbours="replace"),
        lambda: SumRelease([one(Places(2))], noise=["laplace"], neighbours="replace"),
        lambda: SumRelease([one(FINE)], noise="laplace", neighbours="add_remove"),  # whether rows fit would be private
        lambda: SumRelease(
            [one(Places(2), per_unit=PerUnit(1, 1, 1)), one(Places(2))],
            noise="laplace",
            neighbours="replace",
            relation=PER_UNIT,
        ),
        lambda: SumRelease(
            [one(Places(2), per_unit=PerUnit(1, 1, 1))], noise="gaussian", neighbours="replace", relation=PER_UNIT
        ),
    ],
)
def test_arguments_that_could_charge_less_than_is_released_are_refused(make):
    with pytest.raises(ArgumentError):
        make()


@pytest.mark.parametrize(
    ("relation", "how"),
    [(f"{PER_PERSON}p", {}), ("add_remove", {"persons": True, "rows": 2}), ("replace", {}), (PER_UNIT, {})],
)
def test_sums_are_counted_under_the_relation_of_their_rows_alone(relation, how):
    with pytest.raises(PrivacyError, match="counted under"):
        SumRelease([one(Places(2))], noise="laplace", neighbours="add_remove", relation=relation, **how)


def test_what_sums_are_charged_by_cannot_be_assigned_or_written_to():
    release = SumRelease([one(Places(2))], noise="laplace", neighbours="replace")
    for name in ("event", "relation", "noise"):
        with pytest.raises(AttributeError):
            setattr(release, name, None)
    with pytest.raises(PrivacyError, match="charge"):
        PaidSums(None, (one(Places(2)),), "laplace", "replace", None)
    points = OneOf(np.array([[1], [2]])).points
    with pytest.raises(ValueError, match="WRITEABLE|writeable"):
        points.flags.writeable = True
    counted = SumRelease(
        [one(Counts(2, 3))],
        noise="laplace",
        neighbours="add_remove",
        persons=True,
        rows=np.int8(100),
        relation=f"{PER_PERSON}p",
    )
    assert counted.event.events[0].sensitivity == 300
    with pytest.raises(PrivacyError, match="copied"):
        pickle.dumps(release.charge(Rehearsal("replace"), "test"))
    with pytest.raises(PrivacyError, match="copied"):
        release.charge(Rehearsal("replace"), "test").__reduce__()


def test_rows_are_counted_for_a_bar_only_where_their_number_is_public():
    seen = []
    for neighbours in ("replace", "add_remove"):
        release = SumRelease([one(Places(2))], noise="laplace", neighbours=neighbours)
        source = Held(Rows([np.array([0, 1, 1])], []))
        release.charge(Rehearsal(neighbours), "test").draw(source, seen.append)
    assert seen == [3]


def test_sums_of_an_engine_are_of_the_shape_that_was_paid_for():
    release = SumRelease([one(Places(2))], noise="laplace", neighbours="replace")
    for wrong in ([], [np.zeros((1, 3), dtype=np.int64)], [np.zeros((2, 2), dtype=np.int64)], [np.zeros((1, 2))]):
        source = Held()
        source.totals = lambda wrong=wrong: wrong
        with pytest.raises(PrivacyError, match="other sums"):
            release.charge(Rehearsal("replace"), "test").draw(source)


def test_a_row_of_no_cell_adds_no_product():
    reading = Regressed((Scaled((0.0,), (1.0,)),), Scaled((0.0,), (1.0,)), Regression(boxes=1, sizes=True, cells=2))
    cells = Cells((Key(np.arange(3)),), np.array([-1, 0, 1]))
    rows = Rows([np.full(4, 1.0), np.full(4, -1.0)], [np.array([0, 1, 2, 0])])
    kept = Rows([held[1:3] for held in rows.values], [rows.levels[0][1:3]])
    tally = Tally(reading=reading, cells=cells)
    assert tally.exact(rows).tolist() == tally.exact(kept).tolist()


def test_whatever_a_function_of_a_row_raises_its_row_adds_nothing():
    def function(row):
        if row[0] > 0:
            raise SystemExit(31337)
        return [row[0]]

    found = Tally(reading=OneByOne(1, function, ((-1.0, 1.0),))).exact(Rows([np.array([0.5, -1.0])], []))
    assert found.tolist() == [[-GRID]]


def test_ids_of_any_kind_are_distinguished():
    for owners in ([1, "a", None, 2.5, 1], ["a", "b", "a", "", "b"]):
        ids = np.empty(len(owners), dtype=object)
        ids[:] = owners
        assert persons.kept_rows(ids, 1).sum() == len({str(each) for each in owners})
