from __future__ import annotations

import math

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.advice.tightened import half, halved_bounds, reached_by_rows, tightened, with_public
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.rows import UnreadColumn
from pymc_dp.rows.gate import read
from pymc_dp.transforms.prior_model import prior_model
from tests.advice.conftest import logistic

ROWS = np.zeros(6)


@pytest.mark.parametrize(
    ("ends", "support", "expected"),
    [
        ((-2.0, 2.0), (-math.inf, math.inf), (-1.0, 1.0)),
        ((0.02, 0.98), (0.0, 1.0), (0.12, 0.88)),
        ((0.01, 100.0), (0.0, math.inf), (0.1, 10.0)),
        ((0.0, 4.0), (0.0, math.inf), (1.0, 3.0)),
    ],
)
def test_intervals_are_halved_on_the_scale_of_their_support(ends, support, expected):
    assert half(ends, *support) == expected


def _model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.0, 2.0)
        sd = pm.TruncatedNormal("sd", 1.0, 1.0, lower=0.5, upper=2.0, shape=2)
        scale = pm.Uniform("scale", 0.2, 0.8)
        away = pm.Gamma("away", 2.0, 1.0)
        pm.Potential("tie", -away)
        pm.StudentT("y", nu=4, mu=mu, sigma=sd[0] * scale, observed=ROWS)
    return model


def test_what_rows_reach_is_truncated_or_halved_and_nothing_else():
    model = _model()
    rows = inspect(model, dp.Domain()).rows
    names = reached_by_rows(rows)
    assert names == ["mu", "sd", "scale"]
    found = tightened(model, priors_of(prior_model(rows)), names)
    assert found is not None
    assert str(found) == (
        "dp.truncate(model, {'mu': (-3, 5)}) and bounds (0.87, 1.7) of sd instead of (0.5, 2) and bounds (0.33, 0.67) "
        "of scale instead of (0.2, 0.8)"
    )
    after = {prior.name: prior for prior in priors_of(prior_model(inspect(found.model).rows))}
    ends = {name: (float(prior.low.min()), float(prior.high.max())) for name, prior in after.items()}
    expected = {"mu": (-3, 5), "sd": (0.87, 1.7), "scale": (0.33, 0.67), "away": (0, math.inf)}
    assert ends == {name: pytest.approx(pair) for name, pair in expected.items()}


def test_bounds_given_as_whole_numbers_are_halved_to_others():
    with pm.Model() as model:
        scale = pm.Uniform("scale", 1, 2)
        pm.StudentT("y", nu=4, mu=0, sigma=scale, observed=ROWS)
    rows = inspect(model, dp.Domain()).rows
    found = tightened(model, priors_of(prior_model(rows)), ["scale"])
    assert found is not None
    (prior,) = priors_of(prior_model(inspect(found.model).rows))
    assert (prior.low, prior.high) == (1.2, 1.8)


def test_bounds_of_counts_are_halved_from_zero_and_public_ones_stay():
    with pm.Model() as model:
        x = pm.Data("x", ROWS)
        known = pm.Data("known", ROWS)
        a = pm.Normal("a")
        pm.Poisson("y", pm.math.exp(a * x + known), observed=ROWS.astype(int))
    domain = dp.Domain(bounds={"y": (0, 9), "x": (-1, 1), "known": (-1, 1)}, public=["known"])
    assert halved_bounds(domain, inspect(model, domain).rows) == {"y": (0, 4), "x": (-0.5, 0.5)}


def test_bounds_of_constants_and_of_two_whole_numbers_stay():
    with pm.Model() as model:
        X, flag = pm.Data("X", np.zeros((6, 2))), pm.Data("flag", ROWS.astype(int))
        pm.Bernoulli("y", logit_p=X @ pm.Normal("a", shape=2) + flag * pm.Normal("b"), observed=ROWS.astype(int))
    domain = dp.Domain(bounds={"X": [(1, 1), (-4, 4)], "flag": (0, 1)})
    assert halved_bounds(domain, inspect(model, domain).rows) == {"X": ((1, 1), (-2, 2)), "flag": (0, 1)}
    opened, _ = with_public(inspect(model, domain).rows)
    assert next(column for column in opened.columns if column.name == "X").norm == pytest.approx(np.sqrt(17))


def test_a_column_taken_as_public_is_never_read():
    opened, names = with_public(inspect(*logistic()).rows)
    assert names == ("X",)
    column = next(column for column in opened.columns if column.name == "X")
    assert isinstance(column, UnreadColumn) and column.public and column.norm == 1.0
    with pytest.raises(PrivacyError, match="taken for public"):
        read(column)


def test_what_is_observed_or_has_no_declared_size_is_not_taken_as_public():
    with pm.Model() as model:
        x, z = pm.Data("x", ROWS), pm.Data("z", ROWS)
        y = pm.Data("y_data", ROWS)
        a = pm.Normal("a")
        pm.Normal("y", a * x + z, 1.0, observed=y)
    _, names = with_public(inspect(model, dp.Domain(bounds={"x": (-2, 1), "y_data": (0, 1)})).rows)
    assert names == ("x",)
