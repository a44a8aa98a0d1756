"""Sums, products, extremes and shares along axes: containment, tightness and exact cases."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from pymc_dp.intervals import axes
from pymc_dp.intervals.interval import Interval

SHARES = {"softmax": special.softmax, "log_softmax": special.log_softmax}


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
