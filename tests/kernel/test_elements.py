"""Many choices by the same exact sums: all of them together use no more than is charged, over all pairs of rows."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel import draw, element_ranges
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.readings import Numbers, Places, Powers
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from tests.kernel.pairs import PAIRS, exp_down, spread_of_ratios
from tests.kernel.test_totals import N, coefficients, exact, held, layout_of, random_tally, rows_of, same_public, tables


def of_elements(rng, layout, tally, n, K):
    """Coefficients that are often 0 in a cell for all candidates of an element, or the same for all."""
    given = coefficients(rng, layout, tally, n * K).reshape(n, K, -1)
    width = layout.size // tally.cells.count
    cells = given.reshape(n, K, -1, width)
    kept = rng.random((n, 1, cells.shape[2], 1)) < rng.choice([0.4, 1.0])
    alike = rng.random((n, 1, cells.shape[2], 1)) < 0.2
    return np.where(alike, cells[:, :1], cells * kept).reshape(given.shape)


def ranges(moved, possible):
    """Sum over elements of the range over their candidates; and how many have one."""
    K = possible.shape[1]
    each = [moved[e * K : (e + 1) * K] for e in range(len(possible))]
    each = [
        [value for value, can in zip(one, kept, strict=True) if can] for one, kept in zip(each, possible, strict=True)
    ]
    spans = [max(one) - min(one) for one in each]
    return sum(spans), sum(span > 0 for span in spans)


@pytest.mark.parametrize("most", [element_ranges.MOST_PAIRED, 2**8, 2])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_the_range_of_each_is_no_less_than_that_of_any_two_rows(relation, most, monkeypatch):
    monkeypatch.setattr(element_ranges, "MOST_PAIRED", most)
    rng, ratios = np.random.default_rng(1), []
    for _ in range(PAIRS // 2):
        tally, n, K = random_tally(rng), int(rng.integers(1, 5)), int(rng.choice([1, 2, 4]))
        layout = layout_of(tally, relation)
        exponents = layout.exponents(of_elements(rng, layout, tally, n, K), 1.0)
        possible = rng.random((n, K)) < rng.choice([0.6, 1.0])
        possible[:, rng.integers(K)] = True
        rows = [(at, exact(exponents.reshape(n * K, -1), row)) for at, row in rows_of(rng, tally, 11)]
        moves = [one for _, one in rows]
        if relation == "replace":
            pairs = [(a, b) for (x, a), (y, b) in itertools.combinations(rows, 2) if same_public(tally, x, y)]
            moves = [[p - q for p, q in zip(a, b, strict=True)] for a, b in pairs]
        used = [ranges(one, possible) for one in moves] or [(0, 0)]
        wide, moved = layout._each(exponents, possible)
        assert layout.range_each(exponents, possible) == wide
        assert max(one for one, _ in used) <= wide and max(count for _, count in used) <= moved <= n
        if max(used)[0]:
            ratios.append(wide / max(used)[0])
    assert np.median(ratios) < 1 + 1e-6 or most < 2**10
    assert max(ratios) < (1.02 if most > 2**10 else np.inf)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_choices_of_elements_together_use_no_more_than_is_charged(relation, weights):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for _ in range(PAIRS):
        tally, n, K = random_tally(rng), int(rng.integers(1, 5)), int(rng.choice([2, 5]))
        layout, beta = layout_of(tally, relation), float(10.0 ** rng.uniform(-2, 1))
        given = of_elements(rng, layout, tally, n, K)
        public = np.where(rng.random((n, K)) < 0.2, -np.inf, rng.normal(size=(n, K)) * 10.0 ** rng.uniform(-2, 2))
        public[:, 0] = 0.0
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            assert k.choose_each(given, beta=beta, public=public).shape == (n,)
        event, used = k.made[-1].event, Fraction(1)
        for one, two in zip(*weights[-2:], strict=True):
            used *= spread_of_ratios(one, two)
        most = exp_down(Fraction(repr(event.eta)))
        assert used <= most
        worst = max(worst, (used - 1) / (most - 1))
    assert worst > 0.9


def test_elements_of_their_own_cells_pay_for_the_two_that_a_row_moves():
    key = Key(np.arange(50))
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1, 2)), cells=Cells((key,)), sized=True)
    layout = Layout([tally], "replace", 1000)
    means = np.linspace(-1, 1, 256)
    given = np.zeros((50, 256, 50, 3))
    for e in range(50):
        given[e, :, e] = np.stack([-(means**2) / 2, means / GRID, np.full(256, -0.5 / GRID)], axis=1)
    exponents = layout.exponents(given.reshape(50, 256, -1), 1.0)
    begin = time.perf_counter()
    event = layout.choices(exponents)
    assert time.perf_counter() - begin < 5
    # the score of a mean m is x m - m²/2: its range is 2 of a row, and of two rows in two cells it is twice that
    assert event.eta == pytest.approx(4.0, rel=1e-3)
    one = layout.choices(layout.exponents(given.reshape(50, 256, -1)[:1], 1.0))
    assert one.eta == pytest.approx(4.0, rel=1e-3)
    key = Key(np.arange(50), public=True)
    layout = Layout([Tally(reading=tally.reading, cells=Cells((key,)), sized=True)], "replace", 1000)
    assert layout.choices(exponents).eta == pytest.approx(4.0, rel=1e-3)  # x = 1 and x' = -1 in one cell


def test_slack_is_that_of_the_elements_that_a_row_moves():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(4)),)))
    given = np.einsum("ec,kp->ekcp", np.eye(4), np.eye(2)).reshape(4, 2, 8)
    for relation, moved in (("replace", 2), ("add_remove", 1)):
        layout = layout_of(tally, relation)
        assert layout._each(layout.exponents(given, 1.0), None)[1] == moved
        for alike in (given * 0, given * 0 + 1.0):
            exponents = layout.exponents(alike, 1.0)
            assert layout.choices(exponents).eta == pytest.approx(float(draw.slack(2)), rel=1e-6)


def test_choices_of_elements_have_the_probabilities_of_the_formula():
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(2)),)))
    rows = [Rows([np.array([0, 1, 1, 1])], [np.array([0, 0, 1, 1])])]
    k = ByTotals(Totals(Layout([tally], "replace", 4), rows), Rehearsal("replace"))
    given = np.random.default_rng(3).normal(size=(2, 3, 4))
    public = np.array([[0.0, 0.3, -0.2], [0.1, -np.inf, 0.0]])
    scores = np.exp(public + 0.7 * given @ np.array([1, 1, 0, 2]))
    expected = np.einsum("a,b->ab", *(scores / scores.sum(axis=1, keepdims=True)))
    found, count = np.zeros((3, 3)), 4000
    for _ in range(count // 100):
        many = np.tile(given, (100, 1, 1))
        chosen = k.choose_each(many, beta=0.7, public=np.tile(public, (100, 1))).reshape(100, 2)
        np.add.at(found, tuple(chosen.T), 1)
    assert not found[:, 1].any()
    assert np.abs(found / count - expected).max() < 5 * 0.5 / count**0.5


def test_arguments_of_elements_are_refused_before_anything_is_paid():
    tally = Tally(reading=Places(2))
    k = ByTotals(Totals(Layout([tally], "replace", 2), [Rows([np.array([0, 1])], [])]), Rehearsal("replace"))
    for given, more, text in [
        ([[0.0, 1.0]], {}, "row for each candidate"),
        (np.zeros((0, 2, 2)), {}, "row for each candidate"),
        (np.zeros((2, 0, 2)), {}, "log weights"),
        (np.zeros((2, 3, 1)), {}, "2\\) numbers"),
        (np.zeros((2, 3, 2)), {"public": np.zeros((2, 4))}, "shape"),
        (np.zeros((2, 3, 2)), {"public": [[0.0] * 3, [-np.inf] * 3]}, "log weights"),
        (np.zeros((2, 3, 2)), {"beta": 0.0}, "beta"),
        (np.full((2, 3, 2), np.nan), {}, "finite"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            k.choose_each(given, **more)
    assert not k.made


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
    box = Numbers(-1.0, 1.0, 2, (("identity", 0.0, 0), ("identity", 0.0, 1)), (0.0, 0.3), (0.1, 0.2), (10, 5))
    curve = Numbers(-1.0, 1.0, 1, (("identity", 0.0, 0),), (0.0,), (1 / GRID,), (GRID,), "curve")
    for trial in range(PAIRS // 4):
        public, n, K = bool(trial % 2), int(rng.integers(1, 4)), 3
        key = Key(np.arange(3), public=public)
        tallies = [
            Tally(reading=box, cells=Cells((key,)), sized=True),
            Tally(reading=Places(3), cells=Cells((key,), np.array([0, 1, -1]))),
            Tally(reading=curve),
        ]
        layout = Layout(tallies, relation, N if relation == "replace" else None)
        units = np.concatenate([np.ones(layout.size - 2), np.full(2, 1 / GRID)])
        given = rng.normal(size=(n, K, layout.size)) * units * (rng.random((n, 1, layout.size)) < 0.7)
        exponents = layout.exponents(given, 1.0).reshape(n * K, -1)
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
            rows.append((cell, exact(exponents, each)))
        kept = [rows[at] for at in rng.permutation(len(rows))[:40]]
        moves = [one for _, one in rows]
        if relation == "replace":
            pairs = [(a, b) for (x, a), (y, b) in itertools.combinations(kept, 2) if x == y or not public]
            moves = [[p - q for p, q in zip(a, b, strict=True)] for a, b in pairs]
        used = max(ranges(one, np.full((n, K), True))[0] for one in moves)
        wide, far = layout.range_each(exponents.reshape(n, K, -1)), layout.largest_move(exponents)
        assert used <= wide and max(abs(value) for one in moves for value in one) <= far
        ratios.append(used / wide)
    assert np.median(ratios) > 0.8
