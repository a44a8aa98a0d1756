"""Choices and accept bits of neighbours as exact fractions: used is at most what was charged, without a tolerance."""

from decimal import ROUND_FLOOR, Context, Inexact, Rounded, Subnormal, Underflow, localcontext
from fractions import Fraction

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import Kernel, RowMap, choice_event, draw, noise
from pymc_dp.kernel.choices import Bit, Ends
from pymc_dp.kernel.limits import UNITS
from tests.kernel.pairs import PAIRS, RELATIONS, Lookup, exp_down, kernel, nasty, pair, spread_of_ratios, table


def hostile(rng, width, K, trial):
    """Numbers of 400 rows: any floats, or those at which neighbours move the most."""
    if trial % 3 == 0:
        return width * rng.choice([0.0, -1.0, -2.0, 5.0], (400, K))
    with np.errstate(over="ignore"):
        return nasty(rng, 400, K) * 10.0 ** rng.uniform(-3, 3) * width


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_choice_uses_no_more_than_its_range(relation, weighted, weights, same_keys):
    rng, worst = np.random.default_rng(1), Fraction(0)
    for trial in range(PAIRS):
        K = int(rng.choice([1, 2, 3, 17, 200]))
        eta, width = float(10.0 ** rng.uniform(-4, 1.3)), float(10.0 ** rng.uniform(-8, 8))
        rowmap = Lookup(hostile(rng, width, K, trial))
        public = np.where(rng.random(K) < 0.1, -np.inf, rng.normal(size=K) * 10.0 ** rng.uniform(-2, 2.5))
        public[0] = 0.0
        for made in pair(rng, relation, weighted=weighted):
            k = kernel(made)
            k.choose(rowmap, [], K, width=width, eta=eta, public=public)
        (name, event, _), (one,), (two,) = k.made[-1], *weights[-2:]
        used = spread_of_ratios(one, two)
        assert name == "choose" and used <= exp_down(Fraction(repr(event.eta)))
        worst = max(worst, (used - 1) / (exp_down(Fraction(repr(event.eta))) - 1))
    assert worst > 0.9


@pytest.mark.parametrize(("relation", "public"), [("replace", False), ("replace", True), ("add_remove", False)])
def test_choices_of_all_cells_together_use_no_more(relation, public, weights):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for trial in range(PAIRS):
        K, cells = int(rng.choice([2, 5])), int(rng.integers(1, 4))
        eta = float(10.0 ** rng.uniform(-3, 1))
        rowmap = Lookup(hostile(rng, 1.0, K, trial))
        for made in pair(rng, relation, cells=cells, public=public):
            k = kernel(made)
            k.choose(rowmap, [], K, width=1.0, eta=eta, cell="c", cells=cells)
        (_, event, _), one, two = k.made[-1], *weights[-2:]
        used = Fraction(1)
        for a, b in zip(one, two, strict=True):
            used *= spread_of_ratios(a, b)
        assert used <= exp_down(Fraction(repr(event.eta)))
        worst = max(worst, (used - 1) / (exp_down(Fraction(repr(event.eta))) - 1))
    assert worst > 0.9


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_choice_by_kind_uses_no_more(relation, weights):
    rng = np.random.default_rng(3)
    for trial in range(40):
        rowmap = Lookup(hostile(rng, 1.0, 4, trial))
        rows = rng.integers(0, 400, 9)
        others = np.r_[rows[1:], rng.integers(0, 400, int(relation == "replace"))]
        for held in (rows, others):
            made = table(held, relation)
            made.columns["i"] = type(made.columns["i"])(made.columns["i"].values, 0, 399)
            k = kernel(made).by_kind()
            k.choose(rowmap, [], 4, width=1.0, eta=0.8)
        (one,), (two,) = weights[-2:]
        assert spread_of_ratios(one, two) <= exp_down(Fraction(repr(k.made[-1][1].eta)))
        plain = kernel(made)
        plain.choose(rowmap, [], 4, width=1.0, eta=0.8)
        assert (weights[-1] == two).all()


def test_weights_that_cross_a_whole_number_move_by_their_slack_at_most():
    """Without C in each weight, one just below 2 and one at 2 would differ by a factor of 2."""
    for K in (2, 1000):
        scores = np.linspace(-60, 0, K) * UNITS / 2
        held = scores.astype(np.int64)
        moved = held.copy()
        moved[0] += 1
        one, two = (draw.whole_weights(each, UNITS, 2.0, np.zeros(K)) for each in (held, moved))
        assert spread_of_ratios(one, two) <= exp_down(Fraction(2, UNITS) + draw.slack(K))
    assert draw.slack(2) < 2e-9 and draw.slack(256) < 3e-7 and draw.slack(10**5) < 1.3e-4
    with pytest.raises(ArgumentError, match="candidates"):
        draw.slack(2**23 + 1)


def test_exp_is_as_good_as_stated():
    from decimal import Decimal, localcontext

    with localcontext(prec=40):
        for t in -np.random.default_rng(0).uniform(0, 64, 2000):
            assert abs(Decimal(float(np.exp(t))) / Decimal(float(t)).exp() - 1) < Decimal(draw.FLOAT) / 1000


def test_an_excluded_candidate_may_lie_far_above_the_others(weights):
    """2^79 in whole exponents: where it is raised for some sums alone, it tells them."""
    found = draw.whole_weights(np.array([0, -(2**56), -(2**56)]), 2 * UNITS, 1.0, np.array([-np.inf, 0.0, 0.0]))
    assert found[0] == 0 and found[1] == found[2] > 2**59
    k, made = kernel(table(np.zeros(2000, dtype=int), "replace")), Lookup([[0.0, -1.0, -1.0]])
    k.choose(made, [], 3, width=1.0, eta=2000.0, public=[-np.inf, 0.0, 0.0])
    assert weights[-1][0][0] == 0


def test_a_context_of_decimals_changes_nothing():
    given, found = [-(10**30), -(3 << 48), -1, 0, 5], []
    for options in ({}, {"prec": 3, "rounding": ROUND_FLOOR, "traps": [Inexact, Rounded, Underflow, Subnormal]}):
        with localcontext(Context(**options)):
            found.append([draw.chance(each) for each in given] + [noise.tail(0.7, 30)])
    assert found[0] == found[1] and found[0][0] == 0


def test_drawn_as_often_as_weights_say():
    given = np.array([1, 5, 0, 4])
    found = np.bincount(draw.one_of(np.tile(given, (40_000, 1))), minlength=4)
    assert found[2] == 0 and np.abs(found / 40_000 - given / 10).max() < 0.012
    drawn = draw.below(np.full(30_000, 3))
    assert np.abs(np.bincount(drawn, minlength=3) / 30_000 - 1 / 3).max() < 0.015
    assert draw.below(np.array([1, 2**62]))[0] == 0


def delta_used(p, q, factor):
    """The least δ at which two bits are (ln factor, δ)-indistinguishable."""
    return max(p - factor * q, q - factor * p, (1 - p) - factor * (1 - q), (1 - q) - factor * (1 - p))


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_accept_bit_uses_no_more_and_its_delta_is_tight(relation, monkeypatch, same_keys):
    caught, rng, worst = [], np.random.default_rng(5), Fraction(0)
    monkeypatch.setattr(draw, "accepted", lambda exponent: caught.append(exponent) or True)
    for trial in range(PAIRS):
        low = float(rng.choice([-1.0, 0.0, -0.2, 0.1]))
        high = low + float(rng.choice([1.0, 0.1]))
        beta = float(10.0 ** rng.uniform(-4, -0.5))
        numbers = rng.choice([low, high], (400, 1)) if trial % 2 else nasty(rng, 400, 1)
        public = 0.0 if trial % 2 else float(rng.normal() * 0.1)
        for made in pair(rng, relation):
            k = kernel(made)
            k.accept(Lookup(numbers), [], low=low, high=high, beta=beta, public=public)
        event = k.made[-1][1]
        p, q = (Fraction(draw.chance(exponent), 2**draw.BIT) for exponent in caught[-2:])
        used = delta_used(p, q, exp_down(Fraction(repr(event.epsilon))))
        assert used <= Fraction(repr(event.delta))
        worst = max(worst, used / Fraction(repr(event.delta)))
    assert worst > 0.5


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_barker_bit_uses_no_more_than_its_range(relation, weights, same_keys):
    rng, worst = np.random.default_rng(7), Fraction(0)
    for trial in range(PAIRS):
        low = float(rng.uniform(-1, 1))
        high = low + float(10.0 ** rng.uniform(-1.5, 0.5))
        beta, public = float(10.0 ** rng.uniform(-3, 1)), float(rng.normal() * 10.0 ** rng.uniform(-2, 3))
        numbers = rng.choice([low, high], (400, 1)) if trial % 2 else nasty(rng, 400, 1)
        for made in pair(rng, relation):
            k = kernel(made)
            k.barker(Lookup(numbers), [], low=low, high=high, beta=beta, public=public)
        event, (one,), (two,) = k.made[-1][1], *weights[-2:]
        used = spread_of_ratios(one, two)
        assert used <= exp_down(Fraction(repr(event.eta)))
        worst = max(worst, (used - 1) / (exp_down(Fraction(repr(event.eta))) - 1))
    assert worst > 0.8


def test_a_barker_bit_is_drawn_by_the_logistic_of_its_sum(weights):
    k, made = kernel(table([0, 1, 1], "replace")), Lookup([[0.25], [0.5]])
    k.barker(made, [], low=0.0, high=1.0, beta=2.0, public=-1.0)
    assert np.diff(np.log(weights[-1][0]))[0] == pytest.approx(2.0 * 1.25 - 1.0, abs=1e-6)


def test_numbers_at_the_last_states_are_those_of_a_new_pass(weights, monkeypatch):
    """A chain computes one new number of each row for a bit, and the sum is that of differences."""
    x, at = pt.scalar("i", dtype="int64"), pt.scalar("at")
    rowmap, made = RowMap({"i": x}, [at], (at * pt.sin(x * 1.0))[None]), table(np.arange(50), "replace")
    passes, call = [], RowMap.__call__
    monkeypatch.setattr(RowMap, "__call__", lambda self, *given, **how: passes.append(1) or call(self, *given, **how))
    k, ends = kernel(made), {"low": -1.0, "high": 1.0}
    for here, there in [(0.1, 0.2), (0.2, 0.35), (0.2, 0.3), (0.3, 0.3)]:
        k.barker(rowmap, [there], before=[here], **ends)
        other = kernel(made)
        other.barker(rowmap, [there], before=[here], **ends)
        assert (weights[-1] == weights[-2]).all()
        expected = float(np.sum((there - here) * np.sin(np.arange(50.0))))
        assert np.diff(np.log(weights[-1][0]))[0] == pytest.approx(expected, abs=1e-5)
    assert len(passes) == (2 + 1 + 1 + 0) + (2 + 2 + 2 + 1)


@pytest.mark.parametrize(("sense", "n"), [(2, 1), (2, 2), (2, 5), (2, 10**6), (1, None)])
def test_no_pair_of_sums_costs_more_than_an_accept_bit_is_charged(sense, n):
    worst = Fraction(0)
    for beta, public, low, high in [
        (0.3, 0.0, -1.0, 0.0),
        (0.02, 0.1, -0.5, 0.5),
        (1.5, -2.0, -1.0, 1.0),
        (0.3, 0.0, -1.0, 1.0),
    ]:
        ends = Ends(low, high)
        bit = Bit(ends, beta, public, sense, n)
        factor, delta = exp_down(Fraction(repr(bit.event.epsilon))), Fraction(repr(bit.event.delta))
        moved = ends.moved(sense)
        totals = {0, *(sign * part * ends.far for sign in (-1, 1) for part in range(4))}
        totals |= {round(-bit.public / bit.rate) + shift * moved for shift in (-1, 0, 1)}
        for total in totals:
            for other in (total - moved, total + moved, total + 1):
                if n is not None and max(abs(total), abs(other)) > n * ends.far:
                    continue
                p, q = (Fraction(draw.chance(bit.public + bit.rate * each), 2**draw.BIT) for each in (total, other))
                used = delta_used(p, q, factor)
                assert used <= delta
                worst = max(worst, used / delta)
    assert worst > 0.999


def test_bits_are_drawn_as_often_as_their_chance():
    exponent = round(np.log(0.3) * 2**draw.SHIFT)
    assert abs(draw.chance(exponent) / 2**62 - 0.3) < 1e-12 and draw.chance(5) == 2**62
    assert draw.chance(-(10**30)) == 0
    found = np.mean([draw.accepted(exponent) for _ in range(4000)])
    assert abs(found - 0.3) < 0.04


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_noised_ratio_of_a_penalty_bit_pays_for_how_far_neighbours_move_it(relation, monkeypatch, same_keys):
    caught, rng, worst = [], np.random.default_rng(6), 0
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: caught.append((int(whole[0]), kind, scale)) or whole)
    for trial in range(PAIRS):
        low = float(rng.uniform(-1, 1))
        high = low + float(rng.uniform(0.1, 2))
        numbers = rng.choice([low, high], (400, 1)) if trial % 2 else nasty(rng, 400, 1)
        for made in pair(rng, relation):
            k = kernel(made)
            k.penalty(Lookup(numbers), [], low=low, high=high, noise=0.7, beta=0.1)
        event = k.made[-1][1]
        (one, kind, scale), (two, _, _) = caught[-2:]
        assert kind == "gaussian" and scale == event.scale and (one - two) ** 2 <= event.l2_squared
        assert float(event.rho) == pytest.approx(1 / (2 * 0.7**2))
        worst = max(worst, (one - two) ** 2 / event.l2_squared)
    assert worst > 0.8


def test_a_row_with_nan_counts_for_nothing_and_one_that_is_impossible_counts(weights):
    rows = [[np.nan, 0.0], [-np.inf, 0.0], [np.inf, 0.0], [-1e300, 0.0], [-np.inf, -np.inf], [1e12 - 2, 1e12]]
    for place, counts in enumerate([False, True, False, True, False, True]):
        kernel(table([place], "replace")).choose(Lookup(rows), [], 2, width=1.0, eta=2.0)
        assert np.allclose(np.diff(np.log(weights[-1][0])), 1.0 if counts else 0.0, atol=1e-6)


def test_a_row_counts_as_often_as_its_weight_in_a_choice(weights):
    rowmap, logs = Lookup([[0.0, -1.0], [0.0, -0.5]]), []
    for rows, shares in [([0, 0], [0.5, 0.0]), ([1], [1.0])]:
        k = kernel(table(rows, "replace", weights=np.array(shares)))
        k.choose(rowmap, [], 2, width=1.0, eta=2.0)
        logs.append(np.diff(np.log(weights[-1][0])))
    assert np.allclose(logs, -0.5, atol=1e-6)


def test_a_choice_is_drawn_with_the_stated_probabilities():
    """T = eta / (2 width): two rows of scores (0, -1), width 1, eta 2: odds e^-2."""
    rowmap = Lookup([[0.0, -1.0]])
    k = kernel(table([0, 0], "replace"))
    found = np.mean([k.choose(rowmap, [], 2, width=1.0, eta=2.0) for _ in range(3000)])
    assert abs(found - 1 / (1 + np.exp(2))) < 0.03


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"width": float("nan")}, "width"),
        ({"width": 0.0}, "width"),
        ({"eta": -1.0}, "eta"),
        ({"candidates": 0}, "candidates"),
        ({"public": [0.0, np.nan]}, "public"),
        ({"public": [-np.inf, -np.inf]}, "public"),
        ({"public": [0.0, 0.0, 0.0]}, "shape"),
        ({"cell": "i2"}, "cell"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_the_charge(options, text):
    k = kernel(table([0], "replace"))
    given = {"candidates": 2, "width": 1.0, "eta": 1.0, **options}
    with pytest.raises(ArgumentError, match=text):
        k.choose(Lookup([[0.0, 0.0]]), [], given.pop("candidates"), **given)
    assert not k.made and not k.account.events


def test_bits_that_protect_nothing_are_refused():
    k = kernel(table([0], "replace"))
    with pytest.raises(ArgumentError, match="smaller step"):
        k.accept(Lookup([[0.0]]), [], low=-10.0, high=10.0)
    with pytest.raises(ArgumentError, match="middle"):
        k.accept(Lookup([[0.0]]), [], low=1e9, high=1e9 + 1)
    assert not k.account.events


def test_what_a_choice_costs_can_be_asked_beforehand():
    event = choice_event(0.5, 200)
    assert 0.5 < event.eta < 0.5 + 1e-6
    assert choice_event(0.5, 200, cells=True).eta > event.eta
    assert isinstance(kernel(table([0], "replace")), Kernel)


def test_public_weights_may_cancel_what_rows_add_up_to(weights):
    """A centre that is taken off every row is added again: both are larger than any difference that is left."""
    k = kernel(table([0] * 5000, "add_remove"))
    k.choose(Lookup([[0.0, -1.0, -2.0]]), [], 3, width=2.0, eta=2.0, public=[0.0, 5000.0, 10_000.0])
    k.barker(Lookup([[-1.0]]), [], low=-1.0, high=0.0, public=5000.0)
    for (found,) in weights:
        assert found.max() <= found.min() * (1 + 1e-6)


def test_a_penalty_bit_of_floats_sees_numbers_of_any_size():
    """One of 108 rows of 2.9e-301, at beta=1e299, made its ratio infinite."""
    k = kernel(table([0] * 108, "add_remove"))
    given = {"beta": 1e299, "low": 0.0, "high": 2.9e-301, "noise": 100.0, "most_noise": 3.0, "public": -108 * 0.029}
    bits = [k.penalty(Lookup([[2.9e-301]]), [], **given) for _ in range(400)]
    assert 20 < sum(bits) < 200
