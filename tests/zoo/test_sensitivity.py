"""``dp.sensitivity`` on every likelihood of the zoo: hardly a point exceeds what is found, and one meets it."""

import math

import numpy as np
import pytest

import pymc_dp as dp
from tests.zoo.likelihoods import ZOO
from tests.zoo.one_row import OneRow, largest

QUANTITIES = ("range", "log_likelihood")
MISSED, MET = 1.01, 0.75
"""By how much a point may exceed what is found; and what share of it some point must reach."""
ROUNDING = 1e-6
"""Of PyMC's graph, relative to the log-likelihoods at hand: they hold constants in single precision."""


def test_the_zoo_holds_the_univariate_distributions():
    assert len({name.split(",")[0] for name in ZOO}) >= 42


def assert_nothing_is_missed(name, rng, n_rows, n_places):
    likelihood = ZOO[name]
    model = likelihood.model()
    row = OneRow(model, likelihood.domain())
    table = row.table(row.rows(rng, n_rows, likelihood.edges), row.parameters(rng, n_places))
    assert not np.isnan(table).any()
    for neighbours in likelihood.relations:
        found = dp.sensitivity(model, likelihood.domain(neighbours))
        for quantity in QUANTITIES:
            seen, value = largest(table, neighbours, quantity), getattr(found, quantity).value
            assert seen <= value * MISSED + 1e-7 and (value < 1e-7 or seen >= value * MET), (neighbours, quantity)
        if neighbours == "add_remove":  # the range of one row, between the places that are named
            high, low = row.table(*row.at(found.range.where))[0]
            assert high - low == pytest.approx(found.range.value, rel=1e-6, abs=ROUNDING * (1 + np.abs(table).max()))


LONG = {
    *("ordered probit", "zero-inflated negative binomial", "hurdle negative binomial", "mixture of poissons"),
    *("mixture of normals", "hypergeometric", "zero-inflated binomial", "ex-gaussian", "skew-student"),
    *("truncated student", "hurdle poisson"),
}
"""Takes seconds each; the slow test below has them all."""


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in ZOO if name not in LONG])
def test_hardly_a_point_exceeds_what_is_found_and_one_meets_it(name, rng):
    assert_nothing_is_missed(name, rng, n_rows=140, n_places=143)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_hardly_one_of_a_million_points_exceeds_what_is_found(name, rng):
    assert_nothing_is_missed(name, rng, n_rows=1000, n_places=math.ceil(1e6 / 1000))
