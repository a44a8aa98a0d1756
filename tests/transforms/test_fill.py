"""Missing covariates become a value and an indicator, whether any are missing or not; all else is as it was."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect

FAST = "FAST_COMPILE"
N = 5
X, Z = np.array([0.5, -0.2, 0.1, 0.8, -0.9]), np.linspace(-1, 1, N)
MISSING = np.array([False, True, False, False, True])
Y = np.array([0.3, 0.1, -0.4, 1.2, 0.0])


def build(x=X):
    with pm.Model(coords={"row": range(N)}) as model:
        a, b, c = pm.Normal("a"), pm.Normal("b"), pm.Normal("c")
        data = pm.Data("x", np.zeros(N), dims="row")
        pm.Deterministic("part", b * data)
        pm.Normal("y", a + b * data + c * pm.Data("z", Z), 1.0, observed=Y, dims="row")
        pm.set_data({"x": x})
    return model


def log_density(model, **point):
    return model.compile_logp(vars=model.observed_RVs, sum=False, mode=FAST)(point)[0]


def test_rows_without_a_value_have_that_of_the_parameter():
    model = dp.fill(build(np.where(MISSING, np.nan, X)), {"x": 0.0})
    at = {"a": 0.2, "b": 1.5, "c": -0.7}
    expected = log_density(build(np.where(MISSING, 0.3, X)), **at)
    np.testing.assert_allclose(log_density(model, **at, x_fill=0.3), expected)
    other = log_density(model, **at, x_fill=-0.4) != expected
    assert (other == MISSING).all()


def test_filled_models_are_released_as_exact_sums():
    """The indicator is an index of two levels, and the response is linear in the column within each."""
    domain = dp.Domain(bounds={"x": (-1, 1), "z": (-1, 1), "y": (-3, 3)})
    inspection = inspect(dp.fill(build(), {"x": 0.0}), domain).sums
    assert not inspection.problems
    (observed,) = inspection.observed
    assert [(column.name, len(column.levels)) for column in observed.columns] == [("x_missing", 2)]


REFUSED = {
    "a response": ({"y": 0.0}, "a likelihood observes 'y'"),
    "no data": ({"b": 0.0}, "no pm.Data"),
    "a misspelt name": ({"xx": 0.0}, "Did you mean 'x'?"),
    "nothing": ({}, "at least one"),
    "several numbers": ({"x": pm.Normal.dist(shape=2)}, "one number"),
    "a whole number": ({"x": pm.Poisson.dist(1)}, "no whole number"),
    "no number": ({"x": "mean"}, "must be a number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_filled_is_refused(case):
    values, text = REFUSED[case]
    with pytest.raises(dp.errors.ArgumentError, match=text.replace("?", r"\?")):
        dp.fill(build(), values)


def test_a_name_that_is_taken_is_refused():
    model = dp.fill(build(), {"x": 0.0})
    with pytest.raises(dp.errors.ArgumentError, match="'x_missing' is taken"):
        dp.fill(model, {"x": 0.0})
