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








def test_minus_infinity_is_a_term_that_does_not_count():
    x = Interval.point([0.0, -INF])
    assert axes.logsumexp(x, 0).flags == 0
    np.testing.assert_allclose(axes.softmax(x, 0).low, [1, 0], atol=1e-11)
    assert axes.softmax(x, 0).flags.tolist() == [0, 0]
    assert axes.log_softmax(x, 0).flags.tolist() == [0, INFINITE]
    assert axes.log_softmax(x, 0).low[1] == -INF








