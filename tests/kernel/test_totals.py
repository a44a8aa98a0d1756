"""Choices and bits by exact sums: what neighbours use is at most what was charged, as fractions, over all rows."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.readings import Counts, Places, Powers
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from pymc_dp.samplers.chain_account import ChainAccount
from tests.kernel.pairs import PAIRS, exp_down, spread_of_ratios

N = 6
"""Rows of a table."""


def random_tally(rng):
    """A tally of one of the known readings, by up to two columns, some public, some combinations without a cell."""
    kind = rng.integers(3)
    powers = [(1,), (2,), (1, 2)][rng.integers(3)]
    reading = [
        Places(int(rng.integers(1, 4))),
        Counts(int(rng.integers(1, 4)), int(rng.integers(1, 4)), rest=bool(rng.integers(2))),
        Powers(-1.0, 2.0, float(rng.uniform(-1, 2)), 5 / GRID, powers, GRID // 2 * int(rng.integers(2))),
    ][kind]
    keys = tuple(Key(np.arange(int(rng.integers(1, 4))), public=bool(rng.integers(2))) for _ in range(rng.integers(3)))
    codes, lookup = math.prod(len(key.levels) for key in keys), None
    if keys and rng.integers(2):
        keep = rng.random(codes) < 0.7
        keep[0] |= not keep.any()
        lookup = np.where(keep, np.cumsum(keep) - 1, -1)
    return Tally(reading=reading, cells=Cells(keys, lookup), sized=bool(kind == 2 and rng.integers(2)))


def rows_of(rng, tally, count=41):
    """All rows of a tally, or many: values of cells, and what each adds."""
    reading = tally.reading
    if type(reading) is Places:
        values = [np.array([value]) for value in range(reading.count)]
    elif type(reading) is Counts:
        values = [np.array([list(c)]) for c in itertools.product(range(reading.most + 1), repeat=reading.count)]
    else:
        values = [np.array([x]) for x in [*np.linspace(reading.low, reading.high, count), np.nan, 1e300]]
    found = []
    for levels in itertools.product(*(key.levels for key in tally.cells.keys)):
        for value in values:
            rows = Rows([value], [np.array([level]) for level in levels])
            found.append((levels, [int(number) for number in tally.exact(rows).ravel()]))
    return found


def coefficients(rng, layout, tally, count):
    """Any numbers, of a size at which rows matter."""
    units = [1.0] * (tally.sized + tally.reading.size)
    if type(tally.reading) is Powers:
        units[tally.sized :] = [1 / GRID] * tally.reading.size
    scale = np.exp(rng.normal(size=layout.size)) * np.tile(units, layout.size // len(units))
    return rng.normal(size=(count, layout.size)) * scale * 10.0 ** rng.uniform(-3, 1)


def layout_of(tally, relation):
    return Layout([tally], relation, N if relation == "replace" else None)


def same_public(tally, one, other):
    """Whether a row may have either: public columns are those of the table."""
    return all(a == b for key, a, b in zip(tally.cells.keys, one, other, strict=True) if key.public)


def exact(exponents, row):
    """Exponents of all candidates that one row adds, as whole numbers."""
    return [sum(int(e) * number for e, number in zip(line, row, strict=True)) for line in exponents]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_the_range_is_no_less_than_that_of_any_two_rows_and_hardly_more(relation):
    rng, ratios = np.random.default_rng(1), []
    for _ in range(PAIRS):
        tally, K = random_tally(rng), int(rng.choice([2, 3, 7]))
        layout = layout_of(tally, relation)
        exponents = layout.exponents(coefficients(rng, layout, tally, K), 1.0)
        rows = [(levels, exact(exponents, row)) for levels, row in rows_of(rng, tally)]
        moves = [one for _, one in rows]
        if relation == "replace":
            pairs = [(a, b) for (x, a), (y, b) in itertools.combinations(rows, 2) if same_public(tally, x, y)]
            moves = [[p - q for p, q in zip(a, b, strict=True)] for a, b in pairs]
        used, charged = max((max(one) - min(one) for one in moves), default=0), layout.range(exponents)
        assert used <= charged
        if used:
            ratios.append(charged / used)
        if K == 2 and relation == "add_remove":
            far = layout.farthest(exponents[1:])
            assert max(abs(one[1]) for one in ((exact(exponents, row)) for _, row in rows_of(rng, tally))) <= far
    assert np.median(ratios) < 1 + 1e-6 and max(ratios) < 1.01


def tables(rng, tally, relation):
    """Two neighbouring tables: rows of each."""
    every = rows_of(rng, tally)
    kept = [every[k] for k in rng.integers(len(every), size=N)]
    if relation == "add_remove":
        return kept, kept[:-1]
    others = [row for row in every if same_public(tally, row[0], kept[-1][0])]
    return kept, [*kept[:-1], others[rng.integers(len(others))]]


def held(layout, rows):
    """Totals of rows, given by what each adds."""
    found = object.__new__(Totals)
    found._layout, found._sums = layout, [sum(numbers) for numbers in zip(*(row for _, row in rows), strict=True)]
    return found


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_choice_by_sums_uses_no_more_than_its_range(relation, weights):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for _ in range(PAIRS):
        tally, K = random_tally(rng), int(rng.choice([2, 3, 17]))
        layout, beta = layout_of(tally, relation), float(10.0 ** rng.uniform(-2, 1))
        given = coefficients(rng, layout, tally, K)
        public = np.where(rng.random(K) < 0.2, -np.inf, rng.normal(size=K) * 10.0 ** rng.uniform(-2, 2.5))
        public[0] = 0.0
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.choose(given, beta=beta, public=public)
        event, (one,), (two,) = k.made[-1].event, *weights[-2:]
        used = spread_of_ratios(one, two)
        assert used <= exp_down(Fraction(repr(event.eta)))
        worst = max(worst, (used - 1) / (exp_down(Fraction(repr(event.eta))) - 1))
    assert worst > 0.9


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_an_accept_bit_by_sums_uses_no_more(relation, monkeypatch):
    caught, rng, worst, tried = [], np.random.default_rng(3), Fraction(0), 0
    monkeypatch.setattr(draw, "accepted", lambda exponent: caught.append(exponent) or True)
    for _ in range(3 * PAIRS):
        tally = random_tally(rng)
        layout = layout_of(tally, relation)
        given, public = coefficients(rng, layout, tally, 1)[0], float(rng.normal() * rng.integers(2))
        try:
            for rows in tables(rng, tally, relation):
                k = ByTotals(held(layout, rows), Rehearsal(relation))
                k.accept(given, beta=0.5, public=public)
        except ArgumentError:
            continue  # it would cost too much
        event, tried = k.made[-1].event, tried + 1
        p, q = (Fraction(draw.chance(exponent), 2**draw.BIT) for exponent in caught[-2:])
        factor = exp_down(Fraction(repr(event.epsilon)))
        for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
            used = a - factor * b
            assert used <= Fraction(repr(event.delta))
            worst = max(worst, used / Fraction(repr(event.delta)))
    assert tried > PAIRS and worst > 0.3


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_noise_of_a_penalty_bit_is_for_what_neighbours_move_the_sum_by(relation, monkeypatch):
    caught, rng, worst = [], np.random.default_rng(4), Fraction(0)
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: caught.append(int(whole[0])) or whole)
    for _ in range(PAIRS):
        tally = random_tally(rng)
        layout = layout_of(tally, relation)
        given = coefficients(rng, layout, tally, 1)[0]
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.penalty(given, noise=0.25)
        (shift,) = k.made[-1].event.shifts
        assert k.made[-1].event.scale == 0.25 * shift
        worst = max(worst, Fraction(abs(caught[-1] - caught[-2]), shift))
        assert worst <= 1
    assert worst > 0.9


def test_log_weights_are_those_of_the_rows(weights):
    tally = Tally(reading=Powers(-1.0, 3.0, 1.0, 2.0 / GRID, (1, 2), GRID // 2), sized=True)
    layout, x = Layout([tally], "replace", 50), np.random.default_rng(5).uniform(-1, 3, 50)
    step, mu, sd = 2.0 / GRID, np.linspace(-1, 1, 9), np.linspace(0.5, 2, 9)
    square = -0.5 / sd**2 * step * step * GRID
    size = -((1 - mu) ** 2) / (2 * sd**2) - np.log(sd) + square * GRID / 2
    given = np.stack([size, (mu - 1) / sd**2 * step, square], axis=1)
    ByTotals(Totals(layout, [Rows([x], [])]), Rehearsal("replace")).choose(given, beta=0.02)
    expected = 0.02 * (-0.5 * ((x[:, None] - mu) / sd) ** 2 - np.log(sd)).sum(axis=0)
    found = np.log(weights[-1][0].astype(float))
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)


def test_bits_have_the_chances_of_their_rules(monkeypatch):
    tally = Tally(reading=Places(2))
    k = ByTotals(Totals(Layout([tally], "replace", 4), [Rows([np.array([0, 1, 1, 1])], [])]), Rehearsal("replace"))
    seen = []
    monkeypatch.setattr(draw, "one_of", lambda w: seen.append(w[0, 1] / w[0].sum()) or np.ones(1, dtype=int))
    monkeypatch.setattr(draw, "accepted", lambda exponent: seen.append(exponent * 2.0**-draw.SHIFT) or True)
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: whole)
    given = [0.1, -0.2]
    assert k.barker(given, beta=2.0, public=0.3) and k.accept(given, public=0.3) and k.penalty(given, noise=1.0)
    assert seen[0] == pytest.approx(1 / (1 + math.exp(0.7)), abs=1e-8) and seen[1] == pytest.approx(-0.2, abs=1e-8)
    assert seen[2] == pytest.approx(-0.5 - 0.3**2 / 2, abs=1e-5)


def test_what_is_wrong_is_refused_before_it_is_paid():
    tally = Tally(reading=Places(2))
    totals = Totals(Layout([tally], "replace", 2), [Rows([np.array([0, 1])], [])])
    k = ByTotals(totals, Rehearsal("replace"))
    for call, text in [
        (lambda: k.choose([[1.0]]), "2\\) numbers"),
        (lambda: k.choose([1.0, 2.0]), "row for each candidate"),
        (lambda: k.choose([[1.0, np.nan], [0.0, 0.0]]), "finite"),
        (lambda: k.choose([[1.0, 1e300], [0.0, 0.0]]), "too large"),
        (lambda: k.choose([[1.0, 1.0]], public=[-np.inf]), "log weights"),
        (lambda: k.barker([1.0, 0.0], beta=0.0), "beta"),
        (lambda: k.accept([9.0, 0.0]), "A bit may cost"),
        (lambda: k.penalty([1.0, 0.0], noise=0.0), "noise"),
        (lambda: Layout([tally], "replace"), "public under replace"),
        (lambda: Layout([tally], "add_remove", 3), "public under replace"),
        (lambda: Layout([], "add_remove"), "needs a tally"),
        (lambda: Layout([Tally(reading=Places(2), weighted=True)], "add_remove"), "count once"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            call()
    with pytest.raises(PrivacyError, match="counts under"):
        ByTotals(totals, Rehearsal("add_remove"))
    with pytest.raises(PrivacyError, match="lengths"):
        Totals(Layout([tally], "replace", 3), [Rows([np.array([0, 1])], [])])
    assert not k.made


@pytest.mark.usefixtures("begins")
def test_nothing_is_drawn_that_was_not_paid_for_and_copies_pay_nothing(monkeypatch):
    tally = Tally(reading=Places(2))
    totals = pickle.loads(pickle.dumps(Totals(Layout([tally], "replace", 2), [Rows([np.array([0, 1])], [])])))
    event = totals._layout.choice(totals._layout.exponents([[0.0, 0.0], [0.5, -0.5]], 1.0))
    k = ByTotals(totals, ChainAccount("replace", event))
    pay = k.grant(event)
    monkeypatch.setattr(ByTotals, "_sums", lambda *_: pytest.fail("read"))
    with pytest.raises(BudgetExceeded):
        k.choose([[0.0, 0.0], [0.5, -0.6]], pay=pay)
    with pytest.raises(BudgetExceeded):
        k.choose([[0.0, 0.0], [0.5, -0.5]])  # the account has nothing left
    with pytest.raises(PrivacyError, match="copied or pickled"):
        pickle.dumps(k)


def test_what_a_layout_is_charged_by_cannot_be_assigned_or_written_to():
    key = Key(np.arange(2), public=True)
    layout = Layout((Tally(reading=Places(2), cells=Cells((key,), np.array([1, 0]))),), "replace", 5)
    for name in ("tallies", "neighbours", "n_rows"):
        with pytest.raises(AttributeError):
            setattr(layout, name, 0)
    for array in (layout.tallies[0].cells.lookup, key.levels):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


@pytest.mark.parametrize("given", ["text", [["a", "b"]], [[1j, 0]], [[None, 1.0]], [[[1.0, 2.0]]], {}])
def test_coefficients_that_are_no_real_numbers_are_refused(given):
    totals = Totals(Layout((Tally(reading=Places(2)),), "replace", 2), [Rows([np.array([0, 1])], [])])
    k = ByTotals(totals, Rehearsal("replace"))
    for call in (k.choose, k.barker, k.accept, lambda c: k.penalty(c, noise=1.0)):
        with pytest.raises(ArgumentError, match="[Cc]oefficients"):
            call(given)
    assert not k.made
