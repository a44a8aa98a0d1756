"""Sums of a closed form are exact: between neighbours they differ by no more than is charged, however much cancels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.step_methods.metropolis.coefficients import exact_sums
from pymc_dp.step_methods.metropolis.ratios import SumsRatio

N = 10_000_000
CENTRE = 1e6
PLACES = [(CENTRE + shift, np.log(scale)) for shift in (0.0, 1e-7, 2.3e-7, -7.0) for scale in (1e-3, 0.2)]


def far_normal():
    """A likelihood whose coefficients are 1e18 times its range, and cancel."""
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", CENTRE, 10.0), pm.HalfNormal("sigma", 1.0)
        pm.Normal("value", mu, sigma, observed=np.full(3, CENTRE))
    with model:
        return dp.BarkerMetropolis(
            epsilon=1e4, delta=1e-6, domain=dp.Domain(bounds={"value": (CENTRE - 9, CENTRE + 8)})
        )


def row_of(statistic, k):
    """What one row adds, in grid steps: its number, its value, its rounded square."""
    return np.array([1, k, round(k * k / 2**30) - statistic.offset])


def neighbours(step):
    """Exact sums of N rows that differ in one, and where they came from."""
    (table,) = step.ratio._tables
    low, high = table.statistic.reach
    for others in (low, high, (low + high) // 3):
        common = (N - 1) * row_of(table.statistic, others)
        ends = [low, high, 0, 12345, (low + high) // 2, high - 1]
        yield [exact_sums(table.statistic, (common + row_of(table.statistic, k))[None]) for k in ends]


def test_ratios_are_exact_and_differ_by_no_more_than_is_charged_where_coefficients_cancel():
    step = far_normal()
    assert isinstance(step.ratio, SumsRatio)
    places, shares = [step.coefficients.at(np.array(values)) for values in PLACES], []
    for here in places:
        for there in places:
            charged = step.ratio.reach(here, there)
            if here is there or not charged < np.inf:
                continue
            change, far = there.coefficients - here.coefficients, Fraction(1024.0 + abs(there.prior - here.prior))
            for tables in neighbours(step):
                totals = [sum(Fraction(c) * s for c, s in zip(change, sums, strict=True)) for sums in tables]
                shares.append(float((max(totals) - min(totals)) / Fraction(charged)))
                for sums, total in zip(tables, totals, strict=True):
                    step.ratio._sums = sums
                    assert step.ratio.moved(here, there) == float(min(max(total, -far), far))
    assert 0.5 < max(shares) <= 1.0
