"""Derivatives of log-likelihoods as expressions: what interval slopes enclose, at every point."""

import numpy as np
import pytest

from pymc_dp.inspection.inspect import inspect
from pymc_dp.intervals.derivative import derivative
from pymc_dp.intervals.expression import Tape
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.transforms.prior_model import prior_model
from tests.proofs.zoo import ZOO

SMOOTH = ["normal", "student", "gamma", "von mises", "negative binomial"]
MORE = [
    *("truncated normal", "half-normal", "beta", "kumaraswamy", "exponential", "cauchy", "weibull", "log-normal"),
    *("wald", "inverse gamma", "gumbel", "moyal", "logistic", "logit-normal", "binomial", "poisson", "geometric"),
    *("discrete weibull", "laplace"),
]


def whole(name):
    model = ZOO[name].model()
    inspection = inspect(model, ZOO[name].domain()).rows
    (row,), _ = row_likelihoods(inspection, prior_model(inspection))
    return row.whole


def at(tape, points):
    return tape.with_slopes(points, points)


@pytest.mark.parametrize("name", [*SMOOTH, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_derivatives_are_slopes_at_points(name, rng):
    expression = whole(name)
    (symbol,) = [one for one in expression.symbols if one.role == "row"]
    found = derivative(expression, symbol)
    assert found is not None
    tape, slope = Tape([expression]), Tape([found])
    points = rng.uniform(tape.low, tape.high, size=(200, len(tape.low)))
    points = np.where(tape.integer, np.rint(points), points)
    _, (slopes,) = at(tape, points)
    enclosed = slopes[tape.places[symbol][0]]
    places = [tape.places[one] for one in slope.symbols]
    own = np.concatenate([points[:, start : start + size] for start, size in places], axis=1)
    (value,) = slope(own, own)
    width = 1e-9 * (1 + abs(value.low))
    known = (enclosed.flags == 0) & (value.flags == 0)
    assert known.mean() > 0.9
    assert (value.low[known] <= enclosed.high[known] + width[known]).all()
    assert (value.high[known] >= enclosed.low[known] - width[known]).all()
    assert (value.high - value.low)[known].max() <= 1e-6 * (1 + abs(value.low[known]).max())


def test_what_hangs_on_a_whole_array_has_no_such_derivative():
    expression = whole("regression")
    (x,) = {side for s in expression.symbols if hasattr(s, "of_row") for item in s.of_row for side in item.symbols}
    assert derivative(expression, x) is None
    unknown = next(iter(whole("normal").symbols))
    assert derivative(expression, unknown) is None


def test_reductions_but_sums_are_left_to_slopes_on_boxes():
    expression = whole("normal mixture")
    (symbol,) = [one for one in expression.symbols if one.role == "row"]
    assert derivative(expression, symbol) is None
