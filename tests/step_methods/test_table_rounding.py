"""What floats lose of a sum over all rows is bounded by public numbers."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.step_methods.table_rounding import largest_term, rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import table_likelihoods


def table(build, bounds=None):
    with pm.Model() as model:
        build()
    (found,) = table_likelihoods(inspect(model, Domain(bounds=bounds or {})).sums)[1]
    return found


def bernoulli():
    pm.Bernoulli("y", pm.Uniform("p", 0.1, 0.9), observed=np.zeros(50, dtype=int))


def normal():
    pm.Normal("y", pm.Uniform("mu", 1e3, 1e3 + 1), 1.0, observed=np.zeros(50))


def box(low, high):
    return [(np.array([low]), np.array([high]))]


def test_the_largest_term_of_a_row_is_that_at_a_corner():
    found = largest_term(table(bernoulli), box(0.1, 0.9))
    assert -math.log(0.1) <= found <= -3 * math.log(0.1)


def test_rounding_grows_with_the_rows_and_with_the_distance_of_the_mean():
    near, far = (rounding(table(normal, {"y": (0, 1)}), [*box(mean, mean + 1), *box(1.0, 1.0)]) for mean in (0.0, 1e3))
    assert far > 1e4 * near > 0
    one = rounding(table(normal, {"y": (0, 1)}), [*box(1e3, 1e3 + 1), *box(1.0, 1.0)], rows=1)
    assert far == pytest.approx(50 * one)


def test_it_is_added_at_two_points_of_two_tables_and_refused_where_it_drowns_a_row():
    found = RowRange(value=2.0, sensitivity=1.0, reason="proved")
    assert with_rounding(found, 0.01) == RowRange(value=2.04, sensitivity=1.02, reason="proved")
    assert rounding_problem(found, 0.01, "y") is None
    problem = rounding_problem(found, 0.1, "y")
    assert problem is not None and problem.where == "y" and "Subtract a public number" in problem.remedy


def test_what_has_no_range_stays_as_it_is():
    for value in (0.0, math.inf):
        found = RowRange(value=value, sensitivity=math.inf, reason="")
        assert with_rounding(found, 0.5) == found and rounding_problem(found, 0.5, "y") is None
