"""One posterior sample under a metric: the loss between any two tables is at most ε times their distance."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import special

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.metrics import L1, L2, Geographic, Hamming
from tests.step_methods.metric_rows import tables
from tests.step_methods.ops.models import bound

N = 6
X = np.linspace(-1, 1, N)


def model_of(build):
    with pm.Model() as model:
        build()
    return model


def mean():
    pm.Normal("x", pm.Uniform("mu", -1, 1), 1.0, observed=X)


def truncated_prior():
    pm.Laplace("x", pm.TruncatedNormal("mu", 0.2, 0.7, lower=-1, upper=1), 0.5, observed=X)


def slope():
    z = pm.Data("z", X)
    pm.Normal("x", pm.Uniform("b", -1, 1) * z, 1.0, observed=X)


def rates():
    pm.Poisson("x", pm.Uniform("rate", 0.5, 5), observed=X.astype(int))


def places():
    pm.Normal("lat", pm.Uniform("a", 46, 49), 1.0, observed=47 + X)
    pm.Normal("lon", pm.Uniform("b", 9, 17), 3.0, observed=13 + X)


CASES = {
    "a mean": (mean, Domain(bounds={"x": (-3, 3)}, metric=L1("x"))),
    "a mean, in other units": (mean, Domain(bounds={"x": (-3, 3)}, metric=L1({"x": 0.1}))),
    "a location": (truncated_prior, Domain(bounds={"x": (-3, 3)}, metric=L1("x"))),
    "a slope": (slope, Domain(bounds={"x": (-3, 3), "z": (-1, 1)}, metric=L2(["x", "z"]))),
    "a slope, added": (slope, Domain(bounds={"x": (-3, 3), "z": (-1, 1)}, metric=L1({"x": 1.0, "z": 3.0}))),
    "a slope, told apart": (slope, Domain(bounds={"x": (-3, 3), "z": (-1, 1)}, metric=L1("x") + Hamming({"z": 2.0}))),
    "a rate": (rates, Domain(bounds={"x": (0, 12)}, metric=L1("x"))),
    "whole rows": (mean, Domain(bounds={"x": (-3, 3)}, metric=Hamming())),
    "a place": (places, Domain(bounds={"lat": (46, 49), "lon": (9, 17)}, metric=Geographic("lat", "lon", 0.01))),
}
PAPERS = ["a mean", "a slope, told apart", "a place"]


@cache
def planned(name, papers=False):
    build, domain = CASES[name]
    return bound(model_of(build), domain, 0.5, grid=100 if name != "a place" else 24, papers=papers)[0]


def logs_of(step, table, times=1.0):
    """Logarithms of the probabilities of all cells that a draw comes from, as the mechanism computes them."""
    held = [np.asarray(table[column.name]) for column in step.posterior.density.columns]
    prior, likelihood = step.posterior.density.at(step.posterior.points, (held, np.ones(len(held[0]))))
    power, inverse = (step.temperature.inverse if step.temperature.prior else 1.0), step.temperature.inverse * times
    total = power * prior + inverse * likelihood
    return total - special.logsumexp(total)


def worst(step, rng, *, times=1.0, count=40):
    """Largest loss per unit of distance over pairs of tables, each of which has some distance."""
    metric, found = step.binding.domain.metric, 0.0
    for one, two in tables(step.posterior.density.columns, rng, count):
        distance = float(metric.distance(one, two).sum())
        if distance > 1e-9:
            loss = float(np.abs(logs_of(step, one, times) - logs_of(step, two, times)).max())
            found = max(found, (loss - 1e-12 * len(next(iter(one.values())))) / distance)
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "papers"), [*((name, False) for name in CASES), *((name, True) for name in PAPERS)])
def test_no_two_tables_lose_more_than_epsilon_per_unit_of_their_distance(name, papers, rng):
    step = planned(name, papers=papers)
    assert step.temperature.inverse < 1
    assert worst(step, rng) <= 0.5 * (1 + 1e-6)


@pytest.mark.parametrize(("name", "near"), [("a mean", 1e-4), ("a mean", 6.0), ("a rate", 1.0)])
def test_the_loss_that_is_paid_for_is_nearly_reached(name, near):
    """All rows but one at an end, and with them the posterior: the last one leaves it."""
    step = planned(name)
    (column,) = step.posterior.density.columns
    found = []
    for end, sign in ((0, 1), (1, -1)):
        one = np.full(400, column.bounds[end], dtype=column.leaf.type.dtype)
        two = one.copy()
        two[-1] += near * sign
        loss = np.abs(logs_of(step, {"x": one}) - logs_of(step, {"x": two})).max()
        found.append(loss / near)
    assert 0.45 < max(found) <= 0.5 * (1 + 1e-6)


def test_a_delta_has_no_meaning_per_unit():
    build, domain = CASES["a mean"]
    with pytest.raises(ArgumentError, match="does not grow in proportion"):
        bound(model_of(build), domain, 1.0, 1e-6)


@pytest.mark.parametrize(
    ("build", "metric", "options", "where"),
    [
        (slope, L1("x"), {}, "z"),  # z is private, and the metric knows nothing of it
        (slope, L1(["x", "z"]), {"public": ["z"]}, "z"),
        (places, Geographic("lat", "lon"), {"bounds": {}}, None),
    ],
)
def test_metrics_that_leave_out_a_private_column_are_refused(build, metric, options, where, blind):
    given = {"bounds": {"x": (-3, 3), "z": (-1, 1)}} if build is slope else {}
    with pytest.raises((UnsupportedModelError, ArgumentError, dp.errors.DomainError)) as caught:
        bound(model_of(build), Domain(metric=metric, **{**given, **options}), 1.0, read=False)
    if where and isinstance(caught.value, UnsupportedModelError):
        assert where in [problem.where for problem in caught.value.problems]
