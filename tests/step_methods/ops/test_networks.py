"""Discrete networks through OPS: however they are written, exact draws at the price of a whole row."""

import math
from functools import cache

import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting import BoundedRangeEvent
from pymc_dp.audit.quadrature import compare_with_event, density_loss, product
from tests.step_methods.ops.models import bound, domain

LOW, HIGH = 0.1, 0.9


def share(name, **options):
    return pm.Truncated(name, pm.Beta.dist(1.0, 2.0), LOW, HIGH, **options)


def by_variable(a, b):
    with pm.Model() as model:
        held = pm.Bernoulli("a", share("p"), observed=a)
        pm.Bernoulli("b", share("b_given", shape=2)[held], observed=b)
    return model


def rows(counts):
    """A table with so many rows of each kind (a, b)."""
    return np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], counts, axis=0).T


@cache
def part(before, after, inverse, panels=64):
    """Privacy loss of one share whose counts of ones and zeros change; panels are narrow next to the bounds."""

    def side(counts):
        def log_density(turns):
            p = LOW + (HIGH - LOW) * (1 - np.cos(math.pi * turns[:, 0])) / 2
            with np.errstate(divide="ignore"):
                slope = np.log(np.sin(math.pi * np.minimum(turns[:, 0], 1 - turns[:, 0])))
            return slope + np.log(p) * inverse * counts[0] + np.log1p(-p) * (1 + inverse * counts[1])

        return log_density

    # What is left out at each end is 3e-11 of the width.
    return density_loss(*map(side, (before, after)), [(1e-5, 1 - 1e-5)], normalise=True, panels=panels, tolerance=1e-3)


def shares_of(table):
    """Counts of ones and zeros behind each share, of a table with so many rows of each kind."""
    zero_zero, zero_one, one_zero, one_one = table
    return (one_zero + one_one, zero_zero + zero_one), (zero_one, zero_zero), (one_one, one_zero)


def parts_of(pair, inverse, **options):
    return [part(*counts, inverse, **options) for counts in zip(*map(shares_of, pair), strict=True)]


def epsilon_of(pair, inverse):
    """Pure loss of three independent shares: the largest log-ratios of one sign add up."""
    ratios = [one.log_p - one.log_q for one in parts_of(pair, inverse)]
    return max(sum(one.max() for one in ratios), -sum(one.min() for one in ratios))


def neighbours(relation, sizes):
    """Tables of rows at the ends, most of them of one kind, and any row that leaves, comes, or is replaced."""
    for size in sizes:
        for most in range(4):
            for some in range(4):
                table = np.zeros(4, dtype=int)
                table[most] += size - size // 40
                table[some] += size // 40
                for row in range(4):
                    other = table + np.eye(4, dtype=int)[row]
                    if relation == "replace":
                        other = other - np.eye(4, dtype=int)[most]
                    if row != most or relation == "add_remove":
                        yield tuple(map(int, table)), tuple(map(int, other))


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_shows_more_than_is_charged(relation, epsilon):
    step, _ = bound(by_variable(*rows([1, 0, 1, 1])), domain(relation), epsilon, read=False)
    inverse = step.temperature.inverse
    event = BoundedRangeEvent(eta=inverse * step.range.value)
    small, large = (
        max(neighbours(relation, sizes), key=lambda pair: epsilon_of(pair, inverse)) for sizes in ((40,), (4000,))
    )
    found = compare_with_event(product(*parts_of(small, inverse, panels=12)), event, slack=1e-4)
    assert found.passed, found.report()
    assert (0.99 if epsilon == 20.0 else 0.8) * event.eta < epsilon_of(large, inverse) <= event.eta
    assert epsilon_of(large, 2 * inverse) > event.eta
