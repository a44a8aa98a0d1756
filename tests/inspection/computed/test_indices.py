"""Indices that are functions of continuous columns are columns of a few levels."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.gate import opened_gate, values_of

N = 40
RNG = np.random.default_rng(21)
AGE, H = RNG.uniform(18, 79, N), RNG.integers(0, 2, N)
DOMAIN = Domain(bounds={"age": (18, 79), "H": (0, 1), "y": (-5, 5)})


def inspected(index, size, domain=DOMAIN, beside=lambda age: 0.0, dims=None, whole=False):
    with pm.Model(coords={"old": ["young", "old"]}) as model:
        age, h = pm.Data("age", AGE.astype(int) if whole else AGE), pm.Data("H", H)
        shape = {"dims": dims} if dims else {"shape": size}
        mean = pm.Normal("a", 0, 1, **shape)[index(age, h)] + beside(age)
        pm.Normal("y", mean, pm.HalfNormal("s"), observed=np.zeros(N))
    known = {name: ends for name, ends in domain.bounds.items() if name in model.named_vars}
    return inspect(model, Domain(bounds=known)).sums


@pytest.mark.parametrize(
    ("index", "name", "values"),
    [
        (lambda age, h: (age > 40).astype(int), "age > 40", AGE > 40),
        (lambda age, h: 1 * (age > 40), "age > 40", AGE > 40),
        (lambda age, h: (age > 40) * 2 + h, "2 * (age > 40) + H", 2 * (AGE > 40) + H),
        (lambda age, h: pt.floor(age / 20).astype("int32"), "trunc(floor(age / 20))", AGE // 20),
        (lambda age, h: pt.clip(age // 30, 0, 2).astype(int), "trunc(clip(age // 30, 0, 2))", AGE // 30),
    ],
)
def test_levels_and_values_are_those_of_the_function(index, name, values):
    found = inspected(index, 5)
    assert not found.problems
    (column,) = found.observed[0].columns
    assert column.name == name and column.levels.tolist() == list(range(int(values.min()), int(values.max()) + 1))
    with opened_gate():
        np.testing.assert_array_equal(values_of(column), values.astype(int))
    assert [one.name for one in found.observed[0].beside if one.name == "age"] == ["age"]


@pytest.mark.parametrize(
    ("index", "what"),
    [
        (lambda age, h: pt.floor(age / 10).astype(int), "runs over 1..7"),
        (lambda age, h: pt.floor(1 / (age - 20)).astype(int), "may be infinite or no number"),
    ],
)
def test_an_index_that_may_leave_its_axis_is_refused(index, what):
    problems = inspected(index, 7).problems
    assert any(what in problem.what for problem in problems)


def test_an_index_needs_bounds_of_its_columns():
    problems = inspected(lambda age, h: (age > 40).astype(int), 2, Domain(bounds={"y": (-5, 5)})).problems
    assert any("'age' has no bounds" in problem.what for problem in problems)
