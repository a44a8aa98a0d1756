"""Sums, products, extremes and shares along axes: containment, tightness and exact cases."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from pymc_dp.intervals import axes
from pymc_dp.intervals.interval import INFINITE, NAN, Interval

INF = math.inf
AXES = [None, 0, -1, (1, 2), (0, 2), (1,)]
SHAPE = (4, 3, 5)
REDUCTIONS = {
    "total": np.sum,
    "product": np.prod,
    "maximum": np.max,
    "minimum": np.min,
    "logsumexp": special.logsumexp,
}
SHARES = {"softmax": special.softmax, "log_softmax": special.log_softmax}


def boxes(rng, scale):
    centre, width = rng.normal(size=SHAPE) * scale, rng.exponential(size=SHAPE)
    return Interval.of(centre - width, centre + width)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", [*REDUCTIONS, *SHARES])
def test_results_hold_those_of_every_point(name, axis, rng):
    x = boxes(rng, 3.0)
    found = getattr(axes, name)(x, axis)
    reference = {**REDUCTIONS, **SHARES}[name]
    for _ in range(20):
        share = rng.choice([0.0, 1.0, rng.uniform()], size=SHAPE)
        value = reference(np.clip(x.low + (x.high - x.low) * share, x.low, x.high), axis=axis)
        room = 1e-12 * np.abs(value)
        assert found.shape == np.shape(value)
        assert np.all((found.low - room <= value) & (value <= found.high + room))
    assert not found.flags.any()


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", [*REDUCTIONS, *SHARES])
def test_points_give_narrow_results(name, axis, rng):
    found = getattr(axes, name)(Interval.point(rng.normal(size=SHAPE) * 3), axis)
    assert np.all(found.high - found.low <= 1e-11 * np.abs(found.high) + 1e-12)


@pytest.mark.parametrize("name", SHARES)
def test_shares_reach_their_extremes_at_the_corners(name, rng):
    x = boxes(rng, 3.0)
    found = getattr(axes, name)(x, 1)
    for entry in range(SHAPE[1]):
        low, high = x.high.copy(), x.low.copy()
        low[:, entry], high[:, entry] = x.low[:, entry], x.high[:, entry]
        least, most = (SHARES[name](end, axis=1)[:, entry] for end in (low, high))
        np.testing.assert_allclose(found.low[:, entry], least, rtol=1e-10)
        np.testing.assert_allclose(found.high[:, entry], most, rtol=1e-10)


@pytest.mark.parametrize("terms", [[0.0, 0.0], [0.0, -800.0], [1000.0, 0.5, -40.0], [-3.0], [700.0, -700.0, 699.0]])
@pytest.mark.parametrize("name", [*SHARES, "logsumexp"])
def test_shares_hold_the_value_with_fifty_digits(name, terms):
    with mp.workdps(400):
        logarithm = mp.log(mp.fsum(mp.exp(mp.mpf(term)) for term in terms))
        logs = [mp.mpf(term) - logarithm for term in terms]
        values = {"softmax": [mp.exp(x) for x in logs], "log_softmax": logs, "logsumexp": [logarithm]}[name]
        found = getattr(axes, name)(Interval.point(terms), 0)
        for low, high, value in zip(np.atleast_1d(found.low), np.atleast_1d(found.high), values, strict=True):
            assert mp.mpf(float(low)) <= value <= mp.mpf(float(high))
            assert high - low <= 1e-11 * abs(value) + 1e-12


@pytest.mark.parametrize("n_terms", [2, 100, 10_000])
def test_a_sum_holds_the_exact_sum(n_terms, rng):
    terms = rng.normal(size=n_terms) * 10.0 ** rng.integers(-12, 12, size=n_terms)
    found = axes.total(Interval.point(terms), 0)
    exact = sum(map(Fraction, terms.tolist()))
    assert Fraction(float(found.low)) <= exact <= Fraction(float(found.high))


def test_a_sum_of_whole_numbers_is_exact():
    found = axes.total(Interval.of([[1.0, 2.0], [3.0, 4.0]], [[1.0, 5.0], [3.0, 4.0]]), 1)
    np.testing.assert_array_equal(found.low, [3, 7])
    np.testing.assert_array_equal(found.high, [6, 7])


def test_sums_and_products_of_nothing():
    nothing = Interval.point(np.zeros((2, 0)))
    np.testing.assert_array_equal(axes.total(nothing, 1).high, [0, 0])
    np.testing.assert_array_equal(axes.product(nothing, 1).high, [1, 1])


def test_a_sum_with_both_infinities_may_be_undefined():
    assert axes.total(Interval.point([1.0, INF, -INF]), 0).flags & NAN
    found = axes.total(Interval.point([1.0, -INF]), 0)
    assert found.low == found.high == -INF
    assert found.flags == INFINITE


def test_minus_infinity_is_a_term_that_does_not_count():
    x = Interval.point([0.0, -INF])
    assert axes.logsumexp(x, 0).flags == 0
    np.testing.assert_allclose(axes.softmax(x, 0).low, [1, 0], atol=1e-11)
    assert axes.softmax(x, 0).flags.tolist() == [0, 0]
    assert axes.log_softmax(x, 0).flags.tolist() == [0, INFINITE]
    assert axes.log_softmax(x, 0).low[1] == -INF


def test_nothing_but_minus_infinity():
    x = Interval.point([-INF, -INF])
    assert axes.logsumexp(x, 0).high == -INF
    assert axes.logsumexp(x, 0).flags == INFINITE
    assert np.all(axes.softmax(x, 0).flags & NAN)


def test_logsumexp_is_at_least_its_greatest_term():
    assert axes.logsumexp(Interval.point([0.0, -800.0]), 0).low == 0


@pytest.mark.parametrize(
    ("entries", "every", "some"),
    [([(1, 1), (1, 1)], 1, 1), ([(1, 1), (0, 0)], 0, 1), ([(0, 1), (0, 0)], 0, None), ([(0, 1), (1, 1)], None, 1)],
)
def test_three_valued_conjunction_and_disjunction(entries, every, some):
    x = Interval.of(*np.transpose(np.asarray(entries, dtype=float)))
    for found, answer in ((axes.all_true(x, 0), every), (axes.any_true(x, 0), some)):
        assert (found.low, found.high) == ((0, 1) if answer is None else (answer, answer))


def test_nan_makes_a_truth_undecided_and_reaches_sums():
    x = Interval.of([1.0, 0.0], [1.0, 1.0], [NAN, 0])
    assert axes.all_true(x, 0).low == 0
    assert axes.any_true(x, 0).low == 0
    assert axes.total(x, 0).flags == axes.maximum(x, 0).flags == axes.logsumexp(x, 0).flags == NAN
