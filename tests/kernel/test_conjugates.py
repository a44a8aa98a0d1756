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
        linear = range = check_floats = _draw = None

    for families in ([], [Cheap()], [OneEach]):
        with pytest.raises(ArgumentError, match="known"):
            k.draw(families)
    assert not k.made
