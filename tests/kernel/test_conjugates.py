"""Draws by exact sums: the range that is charged is the largest over a box of what neighbours differ by."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.conjugates import OneEach, Simplexes
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.readings import Counts, Places, Powers
from pymc_dp.kernel.shapes import GRID
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from tests.kernel.pairs import PAIRS
from tests.kernel.test_totals import coefficients, held, layout_of, random_tally, tables

KINDS = ("beta", "gamma", "normal")


def one_each(rng, kind, layout, tally, count):
    """Random boxes and coefficients; of a beta, and of second numbers, what rows add is at least 0."""
    low, high = np.sort(rng.uniform(0.05, 0.95, (2, count)), axis=0)
    high += 1e-3
    if kind != "beta":
        low, high = (low, high * 9) if kind == "gamma" else (low - 1, high + 2)
    given = coefficients(rng, layout, tally, 2 * count)
    if type(tally.reading) is not Powers:
        given[count:] = np.abs(given[count:])
        given[:count] = np.abs(given[:count]) if kind == "beta" else given[:count]
    prior = rng.uniform(0.5, 2, (count, 2))
    return OneEach(kind=kind, low=low, high=high, prior=prior, first=given[:count], second=given[count:])


def terms(family, points):
    if family.kind == "normal":
        return points, -(points**2) / 2
    return np.log(points), np.log1p(-points) if family.kind == "beta" else -points


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_move_independent_parameters_by_the_range_that_is_charged_at_most(kind, relation, monkeypatch):
    caught, rng, worst = [], np.random.default_rng(1), 0.0
    monkeypatch.setattr(OneEach, "_draw", lambda self, rng, sums: caught.append(sums.copy()) or sums)
    share = np.linspace(0, 1, 2001)[:, None]
    for _ in range(PAIRS):
        tally = random_tally(rng)
        layout = layout_of(tally, relation)
        family = one_each(rng, kind, layout, tally, int(rng.integers(1, 4)))
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.draw([family], beta=0.25)
        (a, b), (c, d) = (sums.reshape(2, -1) for sums in caught[-2:])
        b, d = np.maximum(b, 0), np.maximum(d, 0)
        if kind == "beta":
            a, c = np.maximum(a, 0), np.maximum(c, 0)
        first, second = terms(family, family.low + share * (family.high - family.low))
        used = np.ptp((a - c) * first + (b - d) * second, axis=0).sum()
        charged = k.made[-1].event.eta
        assert used <= charged
        worst = max(worst, used / charged)
    assert worst > 0.98


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_neighbours_move_probabilities_by_the_range_that_is_charged_at_most(relation, monkeypatch):
    caught, rng, worst = [], np.random.default_rng(2), 0.0
    monkeypatch.setattr(Simplexes, "_draw", lambda self, rng, sums: caught.append(sums.copy()) or sums)
    for trial in range(PAIRS):
        levels, private = int(rng.integers(2, 5)), trial % 2
        key = Key(np.arange(2), public=not private)
        reading = Places(levels) if trial % 3 else Counts(levels, 3)
        tally = Tally(reading=reading, cells=Cells((key,)))
        layout = layout_of(tally, relation)
        counts = np.einsum("ij,kl->ikjl", np.eye(2), np.eye(levels)).reshape(2, levels, -1)
        least = rng.uniform(0.01, 1 / levels / 2, (2, levels))
        family = Simplexes(prior=np.ones((2, levels)), least=least, counts=counts)
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.draw([family], beta=0.25)
        inner = rng.dirichlet(np.full(levels, 0.3), (500, 2))
        points = np.concatenate([np.tile(np.eye(levels)[:, None], (1, 2, 1)), inner])
        points = np.log(points * (1 - least.sum(axis=1, keepdims=True)) + least)
        moved = (caught[-1] - caught[-2]).reshape(2, levels)
        used, charged = np.ptp((points * moved).sum(axis=2), axis=0).sum(), k.made[-1].event.eta
        assert used <= charged
        worst = max(worst, used / charged)
    assert worst > 0.999


def test_the_terms_of_several_families_are_charged_together():
    tally = Tally(reading=Places(2))
    layout = Layout([tally], "replace", 3)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1, 1])], [])]), Rehearsal("replace"))
    one = {"kind": "beta", "low": [0.05], "high": [0.7], "prior": [[1, 1]], "first": [[0, 1]], "second": [[1, 0]]}
    k.draw([OneEach(**one)])
    k.draw([OneEach(**one), OneEach(**one)])
    logit = math.log(0.7 / 0.3) - math.log(0.05 / 0.95)
    assert [made.event.eta for made in k.made] == pytest.approx([logit, 2 * logit], rel=1e-9)


def test_draws_have_the_stated_distribution():
    tally = Tally(reading=Places(2))
    k = ByTotals(Totals(Layout([tally], "replace", 4), [Rows([np.array([0, 1, 1, 1])], [])]), Rehearsal("replace"))
    both = {"first": np.tile([0, 1.0], (400, 1)), "second": np.tile([1.0, 0], (400, 1)), "prior": np.ones((400, 2))}
    (found,) = k.draw([OneEach(kind="beta", low=np.full(400, 0.2), high=np.full(400, 0.8), **both)])
    low, high = stats.beta.cdf([0.2, 0.8], 4, 2)
    assert stats.kstest((stats.beta.cdf(found, 4, 2) - low) / (high - low), "uniform").pvalue > 1e-4
    (found,) = k.draw([OneEach(kind="gamma", low=np.full(400, 0.1), high=np.full(400, 50.0), **both)], beta=2.0)
    assert stats.kstest(found, stats.gamma(7, scale=1 / 3).cdf).pvalue > 1e-4
    (found,) = k.draw([OneEach(kind="normal", low=np.full(400, -50.0), high=np.full(400, 50.0), **both)])
    assert stats.kstest(found, stats.norm(2, 2**-0.5).cdf).pvalue > 1e-4
    shares = Simplexes(prior=np.ones((300, 2)), least=np.full((300, 2), 1e-3), counts=np.tile(np.eye(2), (300, 1, 1)))
    (found,) = k.draw([shares])
    assert np.allclose(found.sum(axis=1), 1) and stats.kstest(found[:, 1], stats.beta(4, 2).cdf).pvalue > 1e-4


def test_squares_of_rows_that_are_all_alike_draw_a_variance():
    """Rounded squares about a mean may add up to less than 0, which no draw may fail for."""
    tally = Tally(reading=Powers(-1.0, 1.0, 0.0, 1 / GRID, (1, 2), GRID // 2), sized=True)
    k = ByTotals(Totals(Layout([tally], "replace", 3), [Rows([np.full(3, 0.3)], [])]), Rehearsal("replace"))
    k.draw(
        [
            OneEach(
                kind="gamma",
                low=[0.1],
                high=[9.0],
                prior=[[1.0, 0.0]],
                first=[[0.5, 0, 0]],
                second=[[(0.5 + 0.3**2) / 2, -0.3 / GRID, 0.5 / GRID]],
            )
        ]
    )
    assert k.made[-1].event.eta > 1


def used_by(family, one, two):
    """The range over the box of what the log-density of two tables differs by, given all that their rows add up to."""
    (a, b), (c, d) = (np.reshape(sums, (2, -1)) for sums in (one, two))
    a, c = (np.maximum(each, 0) if family.kind == "beta" else each for each in (a, c))
    points = family.low + np.linspace(0, 1, 2001)[:, None] * (family.high - family.low)
    first, second = terms(family, points)
    return np.ptp((a - c) * first + (np.maximum(b, 0) - np.maximum(d, 0)) * second, axis=0).sum()


def drawn(family, layout, tables, monkeypatch):
    """What is charged, and what sums of two tables the draws get, given exact sums of all rows."""
    caught = []
    monkeypatch.setattr(OneEach, "_draw", lambda self, rng, sums: caught.append(sums.copy()) or sums)
    for sums in tables:
        one = object.__new__(Totals)
        one._layout, one._sums = layout, list(sums)
        k = ByTotals(one, Rehearsal(layout.neighbours))
        k.draw([family])
    return k.made[-1].event.eta, caught


def test_a_sum_below_0_is_cut_for_all_tallies_of_a_family(monkeypatch):
    """One tally takes b below 0, so that the rows of another move a alone, of which b would take most away."""
    places = Tally(reading=Places(2))
    layout = Layout([places, places], "replace", 20)
    one = {"kind": "gamma", "low": [1.0], "high": [1.5], "prior": [[1.0, 1.0]]}
    family = OneEach(**one, first=[[0, 1.0, 0, 0]], second=[[0, 0.8, 0, -0.1]])
    before, after = [20, 0, 0, 20], [19, 1, 0, 20]
    charged, caught = drawn(family, layout, [before, after], monkeypatch)
    assert 0.4 < used_by(family, *caught) <= charged


def test_rounded_squares_may_take_both_sums_of_a_beta_below_0(monkeypatch):
    """Of (x - c)² a row adds at least 0, but for what rounding takes: of many rows together that is more than 1 row."""
    n, low = 2**31, next(k for k in range(GRID // 4, GRID) if 0.4 < k * k % GRID / GRID < 0.5)
    high = low + GRID // 2
    tally = Tally(reading=Powers(low / GRID, high / GRID, 0.0, 1 / GRID, (1, 2)), sized=True)
    layout, square = Layout([tally], "replace", n), np.array([[low * low / GRID, -2 * low / GRID, 1.0]]) / GRID
    one = {"kind": "beta", "low": [0.45], "high": [0.55], "prior": [[1.0, 1.0]]}
    family = OneEach(**one, first=32 * square, second=[[0.0, 16.0 / GRID, 0.0]])
    rows = [(k, round(k * k / GRID)) for k in (low, high)]
    tables = [[n, *(low_ * (n - 1) + last for low_, last in zip(rows[0], row, strict=True))] for row in rows]
    charged, caught = drawn(family, layout, tables, monkeypatch)
    assert max(sums[0] for sums in caught) < 0 and 1.5 < used_by(family, *caught) <= charged


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_what_rounding_leaves_of_a_sum_below_0_is_charged(relation, monkeypatch):
    """Each row takes b below 0 by next to nothing, and all of them together by a 500th of what one row adds."""
    n, tally = 2**32, Tally(reading=Places(2))
    layout = Layout([tally], relation, n if relation == "replace" else None)
    tiny = 0.8 * 2.0**-41
    one = {"kind": "gamma", "low": [1.0], "high": [1.5], "prior": [[1.0, 1.0]]}
    family = OneEach(**one, first=[[0, 1.0]], second=[[-tiny, 0.8]])
    after = [n - 1, 1] if relation == "replace" else [n - 2, 1]
    charged, caught = drawn(family, layout, [[n - 1 - (relation != "replace"), 0], after], monkeypatch)
    assert 0.0234 < used_by(family, *caught) <= charged


def test_terms_of_any_size_that_cancel_are_not_lost(monkeypatch):
    """Floats of a size and of a number that lies far from 0 err by more than what is left of both allows."""
    rng, low, worst = np.random.default_rng(6), GRID - 3, 0.0
    tally = Tally(reading=Powers(low / GRID, (low + 1) / GRID, 0.0, 1 / GRID, (1,)), sized=True)
    layout = Layout([tally], "replace", 1)
    for _ in range(PAIRS):
        slope = rng.normal()
        one = {"kind": "normal", "low": [0.2], "high": [0.9], "prior": [[1.0, 1.0]]}
        family = OneEach(**one, first=[[-slope * low, slope]], second=[[0.0, 0.0]])
        charged, caught = drawn(family, layout, [[1, low], [1, low + 1]], monkeypatch)
        assert used_by(family, *caught) <= charged
        worst = max(worst, used_by(family, *caught) / charged)
    assert worst > 0.99


def test_probabilities_pay_for_the_rounding_of_squares(monkeypatch):
    caught = []
    monkeypatch.setattr(Simplexes, "_draw", lambda self, rng, sums: caught.append(sums.copy()) or sums)
    high = 3 * 2**13 + 1
    tally = Tally(reading=Powers(0.0, high / GRID, 0.0, 1 / GRID, (1, 2)))
    layout = Layout([tally], "add_remove")
    family = Simplexes(prior=[[1.0, 1.0]], least=[[1e-3, 1e-3]], counts=[[[0.0, 1.0], [0.0, 0.0]]])
    for rows in ([], [np.array([high / GRID])]):
        sums = np.zeros(2, dtype=int) if not rows else tally.exact(Rows(rows, [])).ravel()
        one = object.__new__(Totals)
        one._layout, one._sums = layout, [int(number) for number in sums]
        k = ByTotals(one, Rehearsal("add_remove"))
        k.draw([family])
    assert abs(caught[1] - caught[0])[0] * np.log(0.999 / 1e-3) <= k.made[-1].event.eta


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "beta", "low": [0.0]},
        {"kind": "beta", "prior": [[0.0, 1.0]]},
        {"kind": "gamma", "low": [-1.0]},
        {"kind": "gamma", "high": [np.inf]},
        {"kind": "normal", "low": [1.0], "high": [0.5]},
        {"kind": "normal", "prior": [[0.0, -1.0]]},
        {"kind": "cauchy"},
        {"first": [[1.0, np.nan]]},
        {"second": [[1.0]]},
        {"prior": [[1.0, 1.0]] * 2},
    ],
)
def test_boxes_and_numbers_without_a_finite_range_are_refused(given):
    one = {"kind": "beta", "low": [0.1], "high": [0.7], "prior": [[1, 1]], "first": [[0, 1]], "second": [[1, 0]]}
    with pytest.raises(ArgumentError):
        OneEach(**{**one, **given})
    with pytest.raises(ArgumentError):
        Simplexes(prior=[[1.0, 1.0]], least=[[0.0, 0.1]], counts=np.zeros((1, 2, 2)))


def test_numbers_that_floats_do_not_hold_and_other_classes_are_refused_before_the_charge():
    tally = Tally(reading=Places(2))
    k = ByTotals(Totals(Layout([tally], "replace", 2), [Rows([np.array([0, 1])], [])]), Rehearsal("replace"))
    one = {"low": [-1.0], "high": [1.0], "first": [[1e240, 0]], "second": [[1, 0]], "kind": "normal"}
    with pytest.raises(ArgumentError, match="too large for floats"):
        k.draw([OneEach(prior=[[0.0, 1e-100]], **one)])

    class Cheap(OneEach.__base__):
        linear = public = range = check_floats = _draw = None

    for families in ([], [Cheap()], [OneEach]):
        with pytest.raises(ArgumentError, match="known"):
            k.draw(families)
    assert not k.made
