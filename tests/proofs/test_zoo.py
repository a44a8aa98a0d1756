"""``dp.sensitivity`` on every likelihood of the zoo: no point exceeds its bounds, and one nearly meets them."""

import math

import numpy as np
import pytest

import pymc_dp as dp
from tests.proofs.one_row import OneRow, largest
from tests.proofs.zoo import ZOO

QUANTITIES = ("range", "log_likelihood")
TIGHT = 1.01e-3
"""Gap between bound and best point that is promised."""
ROUNDING = 1e-7
"""Of PyMC's graph, relative to the log-likelihoods at hand: they hold constants in single precision."""


def test_the_zoo_holds_the_univariate_distributions():
    assert len({name.split(",")[0] for name in ZOO}) >= 42


def assert_bounds_hold(name, rng, n_rows, n_places):
    likelihood = ZOO[name]
    model = likelihood.model()
    row = OneRow(model, likelihood.domain())
    table = row.table(row.rows(rng, n_rows, likelihood.edges), row.parameters(rng, n_places))
    assert not np.isnan(table).any()
    for neighbours in likelihood.relations:
        found = dp.sensitivity(model, likelihood.domain(neighbours))
        for quantity in QUANTITIES:
            bound = getattr(found, quantity)
            assert largest(table, neighbours, quantity) <= bound.value, (neighbours, quantity)
            assert bound.attained <= bound.value <= max(bound.attained * (1 + TIGHT), 2e-9), (neighbours, quantity)
            assert bound.gap == (bound.value - bound.attained) / bound.value if bound.value else bound.gap == 0
            assert_attained(row, bound, neighbours, quantity)


def assert_attained(row, bound, neighbours, quantity):
    """The rows and places that a proof names make as much of a difference as it says."""
    at = row.at(bound.worst)
    if at is None:
        return
    table = row.table(*at)
    room = ROUNDING * (1 + np.abs(table).max())
    if neighbours == "replace":
        met = table[0] - table[1]
        met = met[0] - met[1] if quantity == "range" else met[0]
    else:
        met = table[0, 0] - table[0, 1] if quantity == "range" else abs(table[0, 0])
    assert bound.attained - room <= met <= bound.value + room, (neighbours, quantity, bound.worst)


LONG = {
    *("ordered probit", "zero-inflated negative binomial", "hurdle negative binomial", "mixture of poissons"),
    *("mixture of normals", "hypergeometric", "zero-inflated binomial", "ex-gaussian", "skew-student"),
    *("truncated student", "hurdle poisson"),
}
"""Takes seconds each; the slow test below has them all."""


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in ZOO if name not in LONG])
def test_no_point_exceeds_the_bounds_and_the_worst_case_meets_them(name, rng):
    assert_bounds_hold(name, rng, n_rows=140, n_places=143)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_none_of_a_million_points_exceeds_the_bounds(name, rng):
    assert_bounds_hold(name, rng, n_rows=1000, n_places=math.ceil(1e6 / 1000))
