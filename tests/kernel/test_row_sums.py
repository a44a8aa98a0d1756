"""A choice of each row by exact sums: of that row alone, with the probabilities of its own exponents."""

import pickle
import time
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel import draw, exact_sums
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.layout import MOST_OF_A_ROW, Layout
from pymc_dp.kernel.readings import Places, Powers
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, RowSums, Totals
from pymc_dp.samplers.chain_account import ChainAccount
from tests.kernel.pairs import PAIRS, exp_down, spread_of_ratios
from tests.kernel.test_totals import coefficients, random_tally, rows_of, same_public


def table_of(tally, chosen):
    """Rows of a table, of what `values_of` yields."""
    values = [np.concatenate([row.values[0] for _, row in chosen])]
    levels = [np.concatenate([row.levels[place] for _, row in chosen]) for place in range(len(tally.cells.keys))]
    return Rows(values, levels)


def values_of(rng, tally):
    """Yield the levels and the values of all rows, as `rows_of` has what they add."""
    found = []
    exact = Tally.exact

    def noted(self, rows):
        found.append(rows)
        return exact(self, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tally, "exact", noted)
        levels = [levels for levels, _ in rows_of(rng, tally, 11)]
    return list(zip(levels, found, strict=True))


def test_choices_of_rows_use_no_more_than_that_of_one_and_are_of_each_alone(weights, monkeypatch):
    monkeypatch.setattr(exact_sums, "AT_ONCE", 7)  # few rows at once
    rng, worst = np.random.default_rng(1), Fraction(0)
    for _ in range(PAIRS):
        tallies, K = [random_tally(rng) for _ in range(rng.integers(1, 3))], int(rng.choice([1, 2, 5]))
        every = [values_of(rng, tally) for tally in tallies]
        n = int(rng.integers(1, 6))
        layout = Layout(tallies, "replace", n)
        parts = [coefficients(rng, Layout([tally], "replace", n), tally, K) for tally in tallies]
        given, beta = np.concatenate(parts, axis=1), float(10.0 ** rng.uniform(-2, 0))
        public = np.where(rng.random(K) < 0.2, -np.inf, rng.normal(size=K) * 10.0 ** rng.uniform(-2, 2))
        public[0] = 0.0
        tables, other = [], int(rng.integers(n))
        for tally, rows in zip(tallies, every, strict=True):
            one = [rows[at] for at in rng.integers(0, len(rows), n)]
            moved = [row for row in rows if same_public(tally, row[0], one[other][0])]
            two = list(one)
            two[other] = moved[rng.integers(len(moved))]
            tables.append((table_of(tally, one), table_of(tally, two)))
        found = []
        for rows in zip(*tables, strict=True):
            k = ByTotals(Totals(layout, rows), Rehearsal("replace"))
            before = len(weights)
            k.choose_for_each(RowSums(layout, rows), given, beta=beta, public=public)
            found.append(np.concatenate(weights[before:]))
            for place in range(n):  # the same as a choice by the sums of that row alone
                single = Layout(tallies, "replace", 1)
                own = [
                    Rows([v[place : place + 1] for v in r.values], [v[place : place + 1] for v in r.levels])
                    for r in rows
                ]
                ByTotals(Totals(single, own), Rehearsal("replace")).choose(given, beta=beta, public=public)
                mine = found[-1][place].astype(float) / found[-1][place].sum()
                alone = weights[-1][0].astype(float) / weights[-1][0].sum()
                np.testing.assert_allclose(mine, alone, rtol=2e-4, atol=1e-9)
        one, two = found
        same = [place for place in range(n) if place != other]
        assert (one[same] == two[same]).all() and one.shape == (n, K)
        event, used = k.made[-1].event, spread_of_ratios(one[other], two[other])
        assert event == layout.choice_for_each(given, beta=beta, public=public)
        most = exp_down(Fraction(repr(event.eta)))
        assert used <= most
        worst = max(worst, (used - 1) / (most - 1))
    assert worst > 0.9


def test_rows_choose_as_often_as_their_exponents_say_and_those_of_no_cell_by_what_is_public():
    n = 6000
    tally = Tally(reading=Places(2), cells=Cells((Key(np.arange(3)),), np.array([0, 1, -1])))
    layout = Layout([tally], "replace", n)
    cell, value = np.arange(n) % 3, np.arange(n) // 3 % 2
    k = ByTotals(Totals(layout, [Rows([value], [cell])]), Rehearsal("replace"))
    given, public = np.random.default_rng(2).normal(size=(3, 4)), np.array([0.0, 0.5, -0.5])
    chosen = k.choose_for_each(RowSums(layout, [Rows([value], [cell])]), given, beta=0.6, public=public)
    assert chosen.shape == (n,)
    for c in range(3):
        for v in range(2):
            scores = np.exp(public + (0.6 * given[:, 2 * c + v] if c < 2 else 0.0))
            found = np.bincount(chosen[(cell == c) & (value == v)], minlength=3) / (n / 6)
            assert np.abs(found - scores / scores.sum()).max() < 5 * 0.5 / (n / 6) ** 0.5


def test_exponents_of_rows_are_as_fine_as_64_bits_allow():
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1,)))
    layout = Layout([tally], "replace", 10**6)
    for size, span in ((1e-3, 0.0), (1.0, 0.0), (2000.0, 0.0), (1e-9, 1000.0), (0.0, 8000.0)):
        given = np.array([[size / GRID], [-size / GRID]])
        exponents, bits = layout.exponents_of_rows(given, 1.0, np.array([0.0, -span]))
        assert layout._size(exponents) * 2.0 ** (bits - layout.finer) < MOST_OF_A_ROW
        assert (
            bits == layout.finer
            or layout._size(exponents * 2) * 2.0 ** (bits - layout.finer) > MOST_OF_A_ROW / 2.1
            or (span * 2.0 ** (draw.SHIFT + bits) > MOST_OF_A_ROW / 2.1)
        )
    for size, span in ((9000.0, 0.0), (1.0, 8193.0)):
        with pytest.raises(ArgumentError, match="8192"):
            layout.exponents_of_rows(np.array([[size / GRID]]), 1.0, np.array([-span, 0.0]))


@pytest.mark.usefixtures("begins")
def test_choices_of_rows_are_refused_and_not_drawn_before_they_are_paid_for(monkeypatch):
    tally, rows = Tally(reading=Places(2)), [Rows([np.array([0, 1])], [])]
    layout = Layout([tally], "replace", 2)
    with pytest.raises(PrivacyError, match="how many there are"):
        RowSums(Layout([tally], "add_remove"), rows)
    with pytest.raises(PrivacyError, match="lengths"):
        RowSums(Layout([tally], "replace", 3), rows)
    with pytest.raises(ArgumentError, match="Layout"):
        RowSums(tally, rows)
    own = pickle.loads(pickle.dumps(RowSums(layout, rows)))
    monkeypatch.setattr(RowSums, "_added", lambda *_: pytest.fail("read"))
    k = ByTotals(Totals(layout, rows), Rehearsal("replace"))
    other = RowSums(Layout([tally], "replace", 1), [Rows([np.array([1])], [])])
    with pytest.raises(PrivacyError, match="same rows"):
        k.choose_for_each(other, [[0.0, 0.0], [1.0, 0.0]])
    free = ByTotals(Totals(Layout([tally], "add_remove"), rows), Rehearsal("add_remove"))
    with pytest.raises(PrivacyError, match="same rows"):
        free.choose_for_each(own, [[0.0, 0.0], [1.0, 0.0]])
    for given, more, text in [
        ([[[0.0, 1.0]]], {}, "row for each candidate"),
        ([[0.0, 1.0, 2.0]], {}, "2\\) numbers"),
        ([[0.0, 9000.0]], {}, "8192"),
        ([[0.0, 1.0]], {"public": [-np.inf]}, "log weights"),
        ([[0.0, 1.0], [0.0, 0.0]], {"public": [0.0, 9000.0]}, "8192"),
        ([[0.0, 1.0], [0.0, 0.0]], {"public": [-1e308, 1e308]}, "8192"),
        ([[0.0, 1.0]], {"beta": -1.0}, "beta"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            k.choose_for_each(own, given, **more)
    with pytest.raises(ArgumentError, match="RowSums"):
        k.choose_for_each(k, [[0.0, 1.0]])
    assert not k.made
    event = layout.choice_for_each([[0.0, 0.0], [0.5, -0.5]])
    paying = ByTotals(Totals(layout, rows), ChainAccount("replace", event))
    with pytest.raises(BudgetExceeded):
        paying.choose_for_each(own, [[0.0, 0.0], [0.5, -0.6]], pay=paying.grant(event))


def test_no_rows_and_a_million_choose_at_once():
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1, 2)), cells=Cells((Key(np.arange(5)),)), sized=True)
    rng = np.random.default_rng(3)
    for n in (0, 10**6):
        layout, rows = Layout([tally], "replace", n), [Rows([rng.normal(size=n)], [rng.integers(0, 5, n)])]
        k, own = ByTotals(Totals(layout, rows), Rehearsal("replace")), RowSums(layout, rows)
        begin = time.perf_counter()
        found = k.choose_for_each(own, rng.normal(size=(5, 15)) * np.tile([1.0, 1 / GRID, 1 / GRID], 5))
        assert found.shape == (n,) and time.perf_counter() - begin < 10
