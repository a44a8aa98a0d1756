"""A soft maximum and shares of exact sums: neighbours move them by no more than the noise is made for."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, BudgetExceeded
from pymc_dp.kernel import draw, sums
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.layout import SHARE_BITS, SOFT, Layout
from pymc_dp.kernel.readings import Places
from pymc_dp.kernel.tallies import Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from pymc_dp.samplers.chain_account import ChainAccount
from pymc_dp.testing import without_noise
from tests.kernel.pairs import PAIRS
from tests.kernel.test_totals import coefficients, exact, held, layout_of, random_tally, rows_of, same_public, tables


@pytest.fixture
def caught(monkeypatch):
    found = []
    monkeypatch.setattr(draw, "noised", lambda whole, kind, scale: found.append((whole.copy(), scale)) or whole)
    return found


def candidates(rng, layout, tally):
    K = int(rng.choice([1, 2, 5, 30]))
    public = np.where(rng.random(K) < 0.2, -np.inf, rng.normal(size=K) * 10.0 ** rng.uniform(-2, 2))
    public[0] = 0.0
    return coefficients(rng, layout, tally, K), public, float(10.0 ** rng.uniform(-4, 1))


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_the_largest_move_of_an_exponent_is_that_of_all_rows(relation):
    rng, ratios = np.random.default_rng(1), []
    for _ in range(PAIRS // 2):
        tally, K = random_tally(rng), int(rng.integers(1, 5))
        layout = layout_of(tally, relation)
        exponents = layout.exponents(coefficients(rng, layout, tally, K), 1.0)
        rows = [(levels, exact(exponents, row)) for levels, row in rows_of(rng, tally, 11)]
        used = max(abs(value) for _, row in rows for value in row)
        if relation == "replace":
            pairs = [(a, b) for x, a in rows for y, b in rows if same_public(tally, x, y)]
            used = max(abs(p - q) for a, b in pairs for p, q in zip(a, b, strict=True))
        charged = layout.largest_move(exponents)
        assert used <= charged
        if used:
            ratios.append(charged / used)
    assert np.median(ratios) < 1 + 1e-6 and max(ratios) < 1.02


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_neighbours_move_a_soft_max_by_what_its_noise_is_for(relation, noise, caught):
    rng, worst = np.random.default_rng(2), Fraction(0)
    for _ in range(PAIRS):
        tally = random_tally(rng)
        layout = layout_of(tally, relation)
        given, public, beta = candidates(rng, layout, tally)
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.soft_max(given, beta=beta, public=public, noise=noise, scale=2.0)
        event, possible = k.made[-1].event, public > -np.inf
        (shift,), (one, scale), (two, _) = event.shifts, *caught[-2:]
        assert scale == event.scale == 2.0 * shift
        exponents = layout.exponents(np.where(possible[:, None], given, 0), beta)[possible]
        assert layout.soft_max(exponents, noise, 2.0) == event
        worst = max(worst, Fraction(abs(int(one[0]) - int(two[0])), shift))
        assert worst <= 1
    assert worst > 0.9


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_neighbours_move_all_shares_by_what_their_noise_is_for(relation, caught):
    rng, worst = np.random.default_rng(3), Fraction(0)
    for _ in range(2 * PAIRS):
        tally = random_tally(rng)
        layout = layout_of(tally, relation)
        given, public, beta = candidates(rng, layout, tally)
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            found = k.shares(given, beta=beta, public=public, scale=2.0)
        event, possible = k.made[-1].event, public > -np.inf
        assert found.shape == public.shape and not found[~possible].any()
        (one, scale), (two, _) = caught[-2:]
        assert scale == event.scale == 2.0 * event.sensitivity and one.sum() <= 2**SHARE_BITS
        exponents = layout.exponents(np.where(possible[:, None], given, 0), beta)[possible]
        assert layout.shares(exponents, 2.0) == event
        worst = max(worst, Fraction(int(np.abs(one - two).sum()), event.sensitivity))
        assert worst <= 1
    assert worst > 0.8


@pytest.mark.parametrize("eta", [1e-9, 0.01, 1.0, 20.0])
def test_no_two_vectors_of_weights_are_farther_apart_than_shares_are_charged_for(eta):
    """Any logs that differ by a vector of range eta, those of the proof among them, with roundings and floats."""
    rng, worst = np.random.default_rng(4), 0.0
    layout = Layout([Tally(reading=Places(2))], "replace", 1)
    for _ in range(300):
        K = int(rng.choice([2, 3, 40]))
        exponents = layout.exponents(np.stack([eta * (np.arange(K) % 2), np.zeros(K)], axis=1), 1.0)
        logs = np.where(np.arange(K) % 2, 0.0, eta / 2) + rng.normal(size=K) * rng.choice([0.0, 0.1, 5.0])
        both = np.exp(logs), np.exp(logs + eta * (np.arange(K) % 2))
        one, two = (np.floor(weights / weights.sum() * 2.0**SHARE_BITS) for weights in both)
        worst = max(worst, np.abs(one - two).sum() / layout.shares_move(exponents))
        assert worst <= 1
    assert worst > 0.95 or eta < 1e-3


def test_floats_of_shares_are_as_good_as_they_need():
    rng, tally = np.random.default_rng(5), Tally(reading=Places(2))
    for K in (1, 2, 100, 3000):
        for spread in (0.0, 1e-3, 1.0, 30.0, 800.0):
            public = rng.uniform(-1, 1, K) * spread
            k = ByTotals(Totals(Layout([tally], "replace", 1), [Rows([np.array([0])], [])]), Rehearsal("replace"))
            with without_noise():
                found = k.shares(np.zeros((K, 2)), public=public, scale=1.0)
            with localcontext(prec=40):
                top = max(draw.fixed_exponents(public))
                each = [(Decimal(one - top) / 2**draw.SHIFT).exp() for one in draw.fixed_exponents(public)]
                exact = [one / sum(each) * 2**SHARE_BITS for one in each]
                wrong = [
                    abs(Decimal(int(a * 2**SHARE_BITS)) + Decimal("0.5") - b) for a, b in zip(found, exact, strict=True)
                ]
                assert max(wrong) <= Decimal("0.5") + Decimal("0.125")
                assert sum(max(each - Decimal("0.5"), 0) for each in wrong) < Decimal("0.125")


def test_soft_maxima_and_shares_are_those_of_the_rows():
    tally, rng = Tally(reading=Places(3)), np.random.default_rng(6)
    layout = Layout([tally], "replace", 6)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1, 1, 2, 2, 2])], [])]), Rehearsal("replace"))
    given, public = rng.normal(size=(4, 3)), np.array([3.0, 2.5, -np.inf, 4.0])
    scores = np.exp(public + 0.3 * given @ [1, 2, 3])
    with without_noise():
        for noise in ("laplace", "gaussian"):
            found = k.soft_max(given, beta=0.3, public=public, noise=noise, scale=1.0)
            assert found == pytest.approx(math.log(scores.mean()), abs=1e-7) and type(found) is float
        found = k.shares(given, beta=0.3, public=public, scale=1.0)
        np.testing.assert_allclose(found, scores / scores.sum(), atol=2**-39)
        found = k.soft_max(given * 1e-12, public=public, noise="laplace", scale=1.0)
        assert found == pytest.approx(math.log(np.exp(public).mean()), abs=2.0 ** (1 - SOFT))
    assert k.guarantee == "none" and all(made.arithmetic == "hardened" for made in k.made)


def test_noise_is_as_wide_as_charged():
    layout = Layout([Tally(reading=Places(2))], "replace", 4)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1, 1, 1])], [])]), Rehearsal("replace"))
    given = np.array([[0.0, 0.0], [0.1, -0.1]])
    found = np.array([k.shares(given, scale=2.0) for _ in range(400)])
    wide = 2.0 * k.made[-1].event.sensitivity / 2**SHARE_BITS * math.sqrt(2)
    assert (np.abs(found.std(axis=0) / wide - 1) < 0.25).all()
    for noise, times in (("laplace", math.sqrt(2)), ("gaussian", 1.0)):
        found = np.array([k.soft_max(given, noise=noise, scale=2.0) for _ in range(400)])
        assert 0.75 < found.std() / (2.0 * 0.2 * times) < 1.25


@pytest.mark.usefixtures("begins")
def test_noised_functions_are_refused_before_they_are_paid_for_and_read(monkeypatch):
    layout = Layout([Tally(reading=Places(2))], "replace", 2)
    totals = Totals(layout, [Rows([np.array([0, 1])], [])])
    k = ByTotals(totals, Rehearsal("replace"))
    given = [[0.0, 0.0], [0.5, -0.5]]
    for call, text in [
        (lambda: k.soft_max(given, noise="cauchy", scale=1.0), "noise"),
        (lambda: k.soft_max(given, noise="laplace", scale=0.0), "scale"),
        (lambda: k.shares(given, scale=math.inf), "scale"),
        (lambda: k.shares([0.5, 0.5], scale=1.0), "row for each"),
        (lambda: k.soft_max([[1.0]], noise="laplace", scale=1.0), "2\\) numbers"),
        (lambda: k.shares(given, public=[-np.inf] * 2, scale=1.0), "log weights"),
        (lambda: k.shares(given, beta=0.0, scale=1.0), "beta"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            call()
    assert not k.made
    monkeypatch.setattr(ByTotals, "_sums", lambda *_: pytest.fail("read"))
    exponents = layout.exponents(given, 1.0)
    more = [[0.0, 0.0], [0.5, -0.6]]
    for event, call in [
        (layout.soft_max(exponents, "laplace", 1.0), lambda p, k: k.soft_max(more, noise="laplace", scale=1.0, pay=p)),
        (layout.shares(exponents, 1.0), lambda p, k: k.shares(more, scale=0.9, pay=p)),
    ]:
        paying = ByTotals(totals, ChainAccount("replace", event))
        with pytest.raises(BudgetExceeded):
            call(paying.grant(event), paying)


def test_a_soft_max_of_any_size_is_within_64_bits(caught):
    layout = Layout([Tally(reading=Places(2))], "replace", 2)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1])], [])]), Rehearsal("replace"))
    for given in ([[1e200, 1e200], [0.0, 0.0]], [[1e-300, 0.0]], [[0.0, 0.0]]):
        assert math.isfinite(k.soft_max(given, noise="laplace", scale=1.0))
        assert math.isfinite(k.soft_max(given, public=np.full(len(given), 1e200), noise="laplace", scale=1.0))
        assert abs(caught[-1][0][0]) <= 2**62
    assert sums.log_mean_exp([2**70, 0], 1.0) == 2**70 - 1
