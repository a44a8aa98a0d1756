"""Many choices by the same exact sums: all of them together use no more than is charged, over all pairs of rows."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel import conjugates, corner_ranges, draw, layout
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.conjugates import OneEach, drawing
from pymc_dp.kernel.layout import Layout, far_pairs
from pymc_dp.kernel.readings import Counts, Numbers, Places, Powers
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from tests.kernel.pairs import PAIRS, exp_down, spread_of_ratios
from tests.kernel.test_totals import N, coefficients, exact, held, layout_of, random_tally, rows_of, same_public, tables

CURVE = Numbers(-1.0, 1.0, 1, (("identity", 0.0, 0),), (0.0,), (1 / GRID,), (GRID,), "curve")
BOX = Numbers(-1.0, 1.0, 2, (("identity", 0.0, 0), ("identity", 0.0, 1)), (0.0, 0.3), (0.1, 0.2), (10, 5))


def of_elements(rng, layout, n, K):
    """Owners of cells, some of none, and coefficients that are sometimes the same for all candidates, or 0."""
    given, owners = np.zeros((K, layout.size)), []
    for tally, block, (start, stop) in zip(layout.tallies, layout._blocks, edges(layout), strict=True):
        own = coefficients(rng, Layout([tally], "add_remove"), tally, K).reshape(K, block.cells, block.size)
        alike, gone = rng.random((2, block.cells, 1)) < 0.2
        given[:, start:stop] = np.where(alike, own[:1], own * ~gone).reshape(K, -1)
        owners.append(np.repeat(rng.integers(-1 if rng.random() < 0.5 else 0, n, block.cells), block.size))
    return given, np.concatenate(owners)


def edges(layout):
    sizes = [block.cells * block.size for block in layout._blocks]
    return itertools.pairwise(np.cumsum([0, *sizes]))


def some_possible(rng, n, K):
    possible = rng.random((n, K)) < rng.choice([0.6, 1.0])
    possible[np.arange(n), rng.integers(0, K, n)] = True
    return possible


def by_element(exponents, owners, row, n):
    """Exponents of each element that one row adds, (n, K) whole numbers of Python."""
    own = [[0 if owner != e else number for owner, number in zip(owners, row, strict=True)] for e in range(n)]
    return [exact(exponents, numbers) for numbers in own]


def ranges(moved, possible):
    """Sum over elements of the range over their candidates; and how many have one."""
    each = [
        [value for value, can in zip(one, kept, strict=True) if can] for one, kept in zip(moved, possible, strict=True)
    ]
    spans = [max(one) - min(one) for one in each]
    return sum(spans), sum(span > 0 for span in spans)


def minus(one, two):
    return [[p - q for p, q in zip(a, b, strict=True)] for a, b in zip(one, two, strict=True)]


@pytest.mark.parametrize("most", [corner_ranges.MOST_PAIRED, 2])
@pytest.mark.parametrize("at_once", [corner_ranges.AT_ONCE, 7])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_the_range_of_each_is_no_less_than_that_of_any_two_rows(relation, at_once, most, monkeypatch):
    monkeypatch.setattr(corner_ranges, "MOST_PAIRED", most)
    monkeypatch.setattr(corner_ranges, "AT_ONCE", at_once)
    rng, ratios = np.random.default_rng(1), []
    for _ in range(PAIRS // 2):
        tally, n, K = random_tally(rng), int(rng.integers(1, 5)), int(rng.choice([1, 2, 4]))
        layout = layout_of(tally, relation)
        given, owners = of_elements(rng, layout, n, K)
        exponents, possible = layout.exponents(given, 1.0), some_possible(rng, n, K)
        rows = [(at, by_element(exponents, owners, row, n)) for at, row in rows_of(rng, tally, 11)]
        moves = [one for _, one in rows]
        if relation == "replace":
            moves = [minus(a, b) for (x, a), (y, b) in itertools.combinations(rows, 2) if same_public(tally, x, y)]
        used = [ranges(one, possible) for one in moves] or [(0, 0)]
        wide, moved = layout._each(exponents, owners, possible)
        assert layout.range_each(exponents, owners, possible) == wide
        assert max(one for one, _ in used) <= wide and max(count for _, count in used) <= moved <= n
        if max(used)[0]:
            ratios.append(wide / max(used)[0])
    # of rows in two cells of one element ranges add up, which is up to twice what they are
    assert np.median(ratios) < 1 + 1e-6 or most == 2
    assert max(ratios) < (2.02 if most > 2 else np.inf)


def test_an_element_for_each_cell_is_charged_what_two_rows_move():
    """No more than that: rows of two cells move two elements, or stay in one cell and move one."""
    rng = np.random.default_rng(7)
    for _ in range(PAIRS // 4):
        tally, K = random_tally(rng), int(rng.choice([2, 4]))
        layout = layout_of(tally, "replace")
        (block,), exponents = layout._blocks, layout.exponents(coefficients(rng, layout, tally, K), 1.0)
        owners, n = np.repeat(np.arange(block.cells), block.size), block.cells
        rows = [(at, by_element(exponents, owners, row, n)) for at, row in rows_of(rng, tally, 41)]
        moves = [minus(a, b) for (x, a), (y, b) in itertools.combinations(rows, 2) if same_public(tally, x, y)]
        possible = np.ones((n, K), dtype=bool)
        used = max((ranges(one, possible)[0] for one in moves), default=0)
        assert (
            used
            <= layout.range_each(exponents, owners, possible)
            <= used * 1.01 + 1e-13 * np.abs(exponents).sum() * GRID
        )


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_choices_of_elements_together_use_no_more_than_is_charged(relation, weights):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for _ in range(PAIRS):
        tally, n, K = random_tally(rng), int(rng.integers(1, 5)), int(rng.choice([2, 5]))
        layout, beta = layout_of(tally, relation), float(10.0 ** rng.uniform(-2, 1))
        given, owners = of_elements(rng, layout, n, K)
        public = np.where(rng.random((n, K)) < 0.2, -np.inf, rng.normal(size=(n, K)) * 10.0 ** rng.uniform(-2, 2))
        public[:, 0] = 0.0
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            assert k.choose_each(given, owners, beta=beta, public=public).shape == (n,)
        event, used = k.made[-1].event, Fraction(1)
        for one, two in zip(*weights[-2:], strict=True):
            used *= spread_of_ratios(one, two)
        most = exp_down(Fraction(repr(event.eta)))
        assert used <= most
        worst = max(worst, (used - 1) / (most - 1))
    assert worst > 0.9


@pytest.mark.parametrize("n_rows", [1, 2**13, 2**20, 2**25, 2**32])
@pytest.mark.parametrize("far", [1.0, 1e4, 1e9, 1e200])
def test_choices_use_no_more_however_far_candidates_are_apart_and_however_many_rows_there_are(n_rows, far, weights):
    """Exponents are finer by any number of bits; sums and candidates of any size, those excluded among them."""
    tally, rng = Tally(reading=Places(3), cells=Cells((Key(np.arange(3)),))), np.random.default_rng(8)
    layout = Layout([tally], "replace", n_rows)
    for trial in range(PAIRS // 8):
        given, owners = of_elements(rng, layout, 3, 4)
        given[:3] *= 1 if trial % 2 else 1e-3
        public = np.where(rng.random((3, 4)) < 0.3, -np.inf, rng.normal(size=(3, 4)))
        public[:, 0], public[:, 3] = 0.0, -np.inf
        given[3] = far * rng.normal(size=9)  # excluded, as far above the others as numbers go
        given[2] += far * 1e-4 * (owners >= 0)  # a number of all rows of an element
        sums = np.diff(np.sort(rng.integers(0, n_rows + 1, 8)), prepend=0, append=n_rows)
        places = rng.choice(np.flatnonzero(sums), 1)[0], rng.integers(9)
        found = []
        for move in (0, 1):
            one = object.__new__(Totals)
            one._layout = layout
            one._sums = [int(s) - move * (j == places[0]) + move * (j == places[1]) for j, s in enumerate(sums)]
            k = ByTotals(one, Rehearsal("replace"))
            k.choose_each(given, owners, public=public)
            k.choose(given[:3, :], public=public[0, :3])
            found.append(weights[-2:])
        for each, made in zip(zip(*found, strict=True), k.made[-2:], strict=True):
            used = Fraction(1)
            for one, two in zip(*each, strict=True):
                used *= spread_of_ratios(one, two)
            eta = made.event.eta
            assert eta > 700 or used <= exp_down(Fraction(repr(eta)))


def test_weights_are_those_of_the_distances_of_exact_sums(weights):
    """Also of candidates that all rows together put far behind others: none of them is taken for the best."""
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1,)), sized=True)
    for n in (1, 2**10, 2**20, 2**31):
        layout = Layout([tally], "replace", n)
        one = object.__new__(Totals)
        one._layout, one._sums = layout, [n, -n * GRID // 3]
        given = np.array([[0.0, 0.0], [-1.0, 0.0], [2.0, 9.0 / GRID], [0.0, -1e-3 / GRID], [-1e12, 0.0]]) / n
        for scale in (1.0, 30.0, 1e3, 1e9):
            ByTotals(one, Rehearsal("replace")).choose_each(given * scale, np.zeros(2))
            scores = scale * np.array([0.0, -1.0, -1.0, 1e-3 / 3, -1e12])
            expected = np.exp(scores - scores.max())
            np.testing.assert_allclose(weights[-1][0] / weights[-1][0].max(), expected, rtol=1e-5, atol=2e-9)


def test_elements_of_their_own_cells_pay_for_the_two_that_a_row_moves():
    key = Key(np.arange(50))
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1, 2)), cells=Cells((key,)), sized=True)
    layout = Layout([tally], "replace", 1000)
    means, owners = np.linspace(-1, 1, 256), np.repeat(np.arange(50), 3)
    given = np.tile(np.stack([-(means**2) / 2, means / GRID, np.full(256, -0.5 / GRID)], axis=1), (1, 50))
    exponents, every = layout.exponents(given, 1.0), np.ones((50, 256), dtype=bool)
    begin = time.perf_counter()
    event = layout.choices(exponents, owners, every)
    assert time.perf_counter() - begin < 5
    # the score of a mean m is x m - m²/2: its range is 2 of a row, and of two rows in two cells it is twice that
    assert event.eta == pytest.approx(4.0, rel=1e-3)
    assert layout.choices(exponents, np.zeros(150), every[:1]).eta == pytest.approx(4.0, rel=1e-3)
    assert layout.choices(exponents, np.where(owners > 0, -1, 0), every).eta == pytest.approx(4.0, rel=1e-3)
    assert layout.choices(exponents, np.full(150, -1), every).eta < 1e-6
    key = Key(np.arange(50), public=True)
    layout = Layout([Tally(reading=tally.reading, cells=Cells((key,)), sized=True)], "replace", 1000)
    assert layout.choices(exponents, owners, every).eta == pytest.approx(4.0, rel=1e-3)  # x = 1 and x' = -1 in a cell


def test_slack_is_that_of_the_elements_that_a_row_moves():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(4)),)))
    given, owners, every = np.tile(np.eye(2), 4), np.repeat(np.arange(4), 2), np.ones((4, 2), dtype=bool)
    for relation, moved in (("replace", 2), ("add_remove", 1)):
        layout = layout_of(tally, relation)
        assert layout._each(layout.exponents(given, 1.0), owners, every)[1] == moved
        assert layout._each(layout.exponents(given, 1.0), owners * 0, every[:1])[1] == 1
        for alike in (given * 0, given * 0 + 1.0):
            exponents = layout.exponents(alike, 1.0)
            assert layout.choices(exponents, owners, every).eta == pytest.approx(float(draw.slack(2)), rel=1e-6)


def test_choices_of_elements_have_the_probabilities_of_the_formula():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(4)),)))
    rows = [Rows([np.array([0, 1, 1, 1, 0, 0])], [np.array([0, 0, 1, 1, 2, 3])])]
    k = ByTotals(Totals(Layout([tally], "replace", 6), rows), Rehearsal("replace"))
    given = np.random.default_rng(3).normal(size=(3, 8))
    public = np.array([[0.0, 0.3, -0.2], [0.1, -np.inf, 0.0]])
    owners = np.array([1, 1, 0, 0, -1, -1, 1, 1])
    parts = given * np.array([1, 1, 0, 2, 1, 0, 1, 0])
    scores = np.exp(public + 0.7 * np.stack([parts[:, owners == e].sum(axis=1) for e in range(2)]))
    expected = np.einsum("a,b->ab", *(scores / scores.sum(axis=1, keepdims=True)))
    found, count = np.zeros((3, 3)), 4000
    for _ in range(count):
        found[tuple(k.choose_each(given, owners, beta=0.7, public=public))] += 1
    assert not found[:, 1].any()
    assert np.abs(found / count - expected).max() < 5 * 0.5 / count**0.5


def test_arguments_of_elements_are_refused_before_anything_is_paid():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(2)),)))
    rows = [Rows([np.array([0, 1])], [np.array([0, 1])])]
    k = ByTotals(Totals(Layout([tally], "replace", 2), rows), Rehearsal("replace"))
    good, owners, two = np.zeros((3, 4)), [0, 0, 1, 1], {"n": 2}
    for given, whose, more, text in [
        ([0.0, 1.0], owners, two, "row for each candidate"),
        (np.zeros((2, 3, 4)), owners, two, "row for each candidate"),
        (np.zeros((0, 4)), owners, two, "row for each candidate"),
        (np.zeros((3, 2)), owners, two, "4\\) numbers"),
        (good, owners, {"public": np.zeros((2, 4))}, "shape"),
        (good, owners, {"public": np.zeros(3)}, "shape"),
        (good, owners, {"public": 0.0}, "shape"),
        (good, owners, {"public": np.zeros((0, 3))}, "shape"),
        (good, owners, {"public": [[0.0], [0.0, 1.0]]}, "shape"),
        (good, owners, {"public": [[0.0] * 3, [-np.inf] * 3]}, "log weights"),
        (good, owners, {"beta": 0.0, **two}, "beta"),
        (good, owners, {"n": 0}, "n must be"),
        (good, owners, {"n": 2.0}, "n must be"),
        (np.full((3, 4), np.nan), owners, two, "finite"),
        (good, owners, {"n": 1}, "elements below 1"),
        (good, [0, 0, -2, -2], two, "elements below 2"),
        (good, [0, 0, 1], two, "4 whole numbers"),
        (good, [[0, 0, 1, 1]], two, "4 whole numbers"),
        (good, [[0], [0, 1]], two, "4 whole numbers"),
        (good, [0, 0, 0.5, 0.5], two, "4 whole numbers"),
        (good, [0, 0, np.nan, np.nan], two, "4 whole numbers"),
        (good, [0, 0, np.inf, np.inf], two, "elements below"),
        (good, [True] * 4, two, "4 whole numbers"),
        (good, ["0"] * 4, two, "4 whole numbers"),
        (good, [0, 1, 1, 1], two, "of a cell"),
        (good, [0, 0, 1, -1], two, "of a cell"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            k.choose_each(given, whose, **more)
    assert not k.made
    assert k.choose_each(good, np.array(owners, dtype=np.uint8), n=2).shape == (2,) and len(k.made) == 1


def test_owners_are_those_of_the_call_whatever_becomes_of_the_array():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(2)),)))
    layout, owners = Layout([tally], "replace", 2), np.array([0, 0, 1, 1])
    kept = layout.owners(owners, 2)
    owners[:] = -1
    assert kept.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("scale", [1.0, 2.0**-990, 2.0**900])
def test_pairs_of_corners_leave_out_no_difference_that_matters(scale):
    rng = np.random.default_rng(9)
    for trial in range(PAIRS):
        count, size = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        at = rng.integers(-2, 3, (count, size)).astype(float) if trial % 2 else rng.normal(size=(count, size))
        if trial % 3 == 0:
            at[:, -1] = at[:, 0] * rng.integers(-2, 3)  # on a line
        if trial % 5 == 0:
            at = at[rng.integers(0, count, count)]  # some of them twice
        if trial % 7 == 0:
            at[:, -1] = 2.0**40 + at[:, 0] + 2.0**-12 * np.rint(at[:, -1])  # nearly on a line, far away
        pairs = far_pairs(at * scale)
        for way in [*rng.normal(size=(20, size)), *np.eye(size)]:
            places = [sum(Fraction(x) * Fraction(w) for x, w in zip(one, way, strict=True)) for one in at.tolist()]
            used = max(places) - min(places)
            assert max(abs(places[i] - places[j]) for i, j in pairs.tolist()) == used
    assert far_pairs(np.eye(500)).shape == (0, 2)


def test_pairs_of_the_corners_of_arcs_are_as_good_as_all_pairs():
    rng = np.random.default_rng(10)
    for _ in range(PAIRS):
        low, high = np.sort(rng.integers(-GRID, GRID + 1, 2)) if rng.random() < 0.5 else rng.integers(0, 40, 2).cumsum()
        at = layout._arc(int(low), int(high))
        pairs = far_pairs(at)
        for way in rng.normal(size=(30, 2)) * [1.0, 10.0 ** rng.integers(-12, 3)]:
            places = at @ way
            most = np.abs(places[pairs[:, 0]] - places[pairs[:, 1]]).max()
            assert np.ptp(places) <= most + 1e-15 * np.abs(at * way).max()


def test_many_corners_are_compared_with_one_centre():
    rng = np.random.default_rng(11)
    for reading in (Places(400), Counts(400, 3, rest=False)):
        for public in (True, False):
            tally = Tally(reading=reading, cells=Cells((Key(np.arange(2), public=public),)))
            layout = layout_of(tally, "replace")
            given, owners = rng.normal(size=(3, 800)), np.repeat([0, 1], 400)
            exponents, most = layout.exponents(given, 1.0), 1 if type(reading) is Places else 3
            at = np.concatenate([np.eye(400) * most, np.zeros((1, 400))])
            used = 0.0
            for cell in range(2):
                parts = at @ exponents[:, cell * 400 : cell * 400 + 400].T
                parts = parts if type(reading) is Counts else parts[:400]
                used = max(used, max(np.ptp(parts - one, axis=1).max() for one in parts))
            found = layout.range_each(exponents, owners, np.ones((2, 3), dtype=bool))
            assert used <= found <= 4 * used
            assert used <= layout.range(exponents)


def test_what_is_remembered_is_that_of_the_same_arrays():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(2)),)))
    layout, rng = layout_of(tally, "replace"), np.random.default_rng(12)
    fresh = lambda: layout_of(tally, "replace")  # noqa: E731
    exponents, owners = layout.exponents(rng.normal(size=(4, 4)), 1.0), np.array([0, 0, 1, 1])
    every = np.ones((2, 4), dtype=bool)
    for _ in range(3):  # in place, so that it is another array at the same place
        exponents[:] = layout.exponents(rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-3, 3), 1.0)
        for beside in (owners, owners * 0, owners * 0 - 1):
            for can in (every, every & (np.arange(4) < 2)):
                expected = fresh().choices(exponents, beside, can)
                assert layout.choices(exponents, beside, can) == expected == layout.choices(exponents, beside, can)
        assert layout.choice(exponents) == fresh().choice(exponents) == layout.choice(exponents)
        assert layout.choice(exponents.reshape(4, 4)[:2]) == fresh().choice(exponents[:2])
        whole = exponents.view(np.int64)  # the same bytes, and other numbers
        assert layout.choice(whole) == fresh().choice(whole) and layout.choice(exponents) == fresh().choice(exponents)
    assert len(layout._memory) <= 16


def test_no_array_says_by_itself_that_it_was_looked_at():
    """A class derived from an array may answer as another does: what is remembered is of plain copies."""

    class Cheap(np.ndarray):
        def tobytes(self, order="C"):
            return dear.tobytes()

        def __matmul__(self, other):
            return np.asarray(self) @ other * 0

    tally = Tally(reading=Places(2))
    layout, other = layout_of(tally, "replace"), layout_of(tally, "replace")
    dear = layout.exponents(np.random.default_rng(13).normal(size=(3, 2)), 1.0)
    layout.choice((dear * 0).view(Cheap))
    layout.choice(dear.view(Cheap))
    assert layout.choice(dear) == other.choice(dear)


def test_families_are_remembered_with_all_that_they_are():
    layout = layout_of(Tally(reading=Places(2)), "replace")
    one = {"kind": "beta", "low": [0.1], "high": [0.7], "prior": [[1, 1]], "first": [[0, 1]], "second": [[1, 0]]}
    others = [one, one | {"low": [0.2]}, one | {"high": [0.8]}, one | {"kind": "gamma"}, one | {"first": [[0, 2.0]]}]
    etas = set()
    for given in [*others, *others]:
        family = OneEach(**given)
        for beta in (1.0, 0.5):
            exponents = [layout.exponents(family.linear, beta)]
            event = drawing(layout, [family], exponents)
            assert event == drawing(layout_of(Tally(reading=Places(2)), "replace"), [family], exponents)
            etas.add(event.eta)
    assert len(etas) == 2 * len(others)
    assert conjugates.drawing(layout, [OneEach(**one)] * 2, [exponents[0] * 0] * 2).eta < 1e-290


def test_sums_are_exchanged_for_others_of_the_same_rows_alone():
    values = np.array([0, 1, 1])

    def totals(n, relation="replace", count=2):
        layout = Layout([Tally(reading=Places(count))], relation, n if relation == "replace" else None)
        return Totals(layout, [Rows([values[:n]], [])])

    k = ByTotals(totals(3), Rehearsal("replace"))
    for other in (totals(2), totals(3, "add_remove")):
        with pytest.raises(PrivacyError, match="same rows"):
            k.exchange(other)
    with pytest.raises(ArgumentError, match="Totals"):
        k.exchange(k)
    assert k.layout.size == 2
    k.exchange(totals(3, count=4))
    assert k.layout.size == 4 and k._sums(np.eye(4)) == [1, 2, 0, 0] and not k.made
    k.choose(np.zeros((2, 4)))


def test_sums_of_any_exponents_are_exact_however_few_are_not_zero():
    rng, tally = np.random.default_rng(4), Tally(reading=Places(40))
    totals = Totals(Layout([tally], "replace", 50), [Rows([rng.integers(0, 40, 50)], [])])
    totals._sums = [int(one) for one in rng.integers(-(2**62), 2**62, 40)]
    k = ByTotals(totals, Rehearsal("replace"))
    for share in (0.0, 0.01, 0.1, 1.0):
        for scale in (1.0, 2.0**40, 2.0**100, 2.0**800):
            given = np.rint(rng.normal(size=(30, 40)) * scale) * (rng.random((30, 40)) < share)
            expected = [sum(int(a) * b for a, b in zip(row, totals._sums, strict=True)) for row in given]
            assert k._sums(given) == expected


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_tallies_of_the_same_row_move_elements_together(relation):
    """Numbers of a box, places with combinations without a cell, and a number with its square."""
    rng, ratios = np.random.default_rng(5), []
    for trial in range(PAIRS // 4):
        public, n, K = bool(trial % 2), int(rng.integers(1, 4)), 3
        key = Key(np.arange(3), public=public)
        tallies = [
            Tally(reading=BOX, cells=Cells((key,)), sized=True),
            Tally(reading=Places(3), cells=Cells((key,), np.array([0, 1, -1]))),
            Tally(reading=CURVE),
        ]
        layout = Layout(tallies, relation, N if relation == "replace" else None)
        units = np.concatenate([np.ones(layout.size - 2), np.full(2, 1 / GRID)])
        given, owners = of_elements(rng, layout, n, K)
        given, possible = rng.normal(size=given.shape) * units * (given[:1] != 0), some_possible(rng, n, K)
        exponents = layout.exponents(given, 1.0)
        rows = []
        for cell, place, x, y, z in itertools.product(
            range(3), range(3), (-1.0, 1.0), (-1.0, np.nan, 1.0), (-1.0, 0.3)
        ):
            own = [
                Rows([np.array([[x, y]])], [np.array([cell])]),
                Rows([np.array([place])], [np.array([cell])]),
                Rows([np.array([z])], []),
            ]
            each = [int(one) for tally, row in zip(tallies, own, strict=True) for one in tally.exact(row).ravel()]
            rows.append((cell, by_element(exponents, owners, each, n), exact(exponents, each)))
        kept = [rows[at] for at in rng.permutation(len(rows))[:40]]
        moves, alone = [one for _, one, _ in rows], [one for _, _, one in rows]
        if relation == "replace":
            pairs = [(a, b) for a, b in itertools.combinations(kept, 2) if a[0] == b[0] or not public]
            moves = [minus(a[1], b[1]) for a, b in pairs]
            alone = [[p - q for p, q in zip(a[2], b[2], strict=True)] for a, b in pairs]
        (wide, moved), far = layout._each(exponents, owners, possible), layout.largest_move(exponents)
        used = [ranges(one, possible) for one in moves]
        assert max(span for span, _ in used) <= wide and max(count for _, count in used) <= moved
        assert max(abs(value) for one in alone for value in one) <= far
        ratios.append(max(used)[0] / wide)
    assert np.median(ratios) > 0.7
