"""One posterior sample under a metric: the loss between any two tables is at most ε times their distance."""

import math
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import special

import pymc_dp as dp
from pymc_dp.accounting import BoundedRangeEvent, Budget, PureEvent, SelfComposedEvent
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.metrics import L1, L2, Geographic, Hamming
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops import OPS
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


@pytest.mark.parametrize("name", ["a mean", "a rate"])
def test_a_temperature_that_is_halved_is_found(name, rng):
    assert worst(planned(name), rng, times=2.0, count=80) > 0.5 * 1.2


def test_a_draw_is_cooler_per_unit_than_the_papers_rule():
    """2 L_ρ where the range is R: of a normal mean in [-1, 1], values in [-3, 3], 8 and 2."""
    ranged, papers = planned("a mean"), planned("a mean", papers=True)
    assert 1 / ranged.temperature.inverse == pytest.approx(4.0, rel=1e-5)
    assert 1 / papers.temperature.inverse == pytest.approx(16.0, rel=1e-5)
    assert isinstance(ranged.temperature.event, BoundedRangeEvent) and isinstance(papers.temperature.event, PureEvent)


def test_draws_share_epsilon_and_add_up_per_unit():
    build, domain = CASES["a mean"]
    step = bound(model_of(build), domain, 0.5, grid=300)[0]
    event = step.price(Funding(budget=Budget(0.5), chains=2, steps=5))
    assert isinstance(event, SelfComposedEvent) and event.count == 10
    assert event.event.eta == pytest.approx(0.05)
    assert 1 / step.temperature.inverse == pytest.approx(40.0, rel=1e-5)


@pytest.mark.parametrize("name", ["a mean", "a slope"])
def test_rows_are_held_one_by_one_and_never_rounded_to_a_grid_of_sums(name):
    step = planned(name)
    assert [values.dtype for values in step.sums[0]] == [np.float64] * len(step.sums[0])
    assert type(step.posterior).__name__ == "RowGridPosterior"


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


def test_columns_that_the_model_does_not_have_are_refused():
    with pytest.raises(dp.errors.DomainError, match="Did you mean 'x'"):
        bound(model_of(mean), Domain(bounds={"x": (-3, 3)}, metric=L1("xx")), 1.0)


def test_public_columns_need_no_distance():
    step = bound(model_of(slope), Domain(bounds={"x": (-3, 3)}, public=["z"], metric=L1("x")), 0.5, grid=300)[0]
    assert step.range.value == pytest.approx(2.0, rel=1e-3)


def test_pairs_of_tables_have_the_distance_of_what_is_used(rng):
    """Values outside are clamped first: the step holds clamped rows, and the metric is between these."""
    domain = Domain(bounds={"x": (-3, 3)}, metric=L1("x"))
    outside = model_of(lambda: pm.Normal("x", pm.Uniform("mu", -1, 1), 1.0, observed=np.array([9.0, -50.0, np.inf])))
    step = bound(outside, domain, 0.5, grid=300)[0]
    assert step.sums[0][0].tolist() == [3.0, -3.0, 3.0]
    assert math.isclose(step.diameter, 6.0)


def test_a_step_says_what_epsilon_is_per_unit_of(blind):
    build, domain = CASES["a place"]
    found = OPS(grid=24).preview(model_of(build), domain, Budget(0.5))
    assert found.fits and "per unit of ρ = 0.01 km between (lat, lon)" in dict(found.facts)["one row moves"]


def test_no_step_is_recommended_that_refuses_a_metric(blind):
    def shares():
        pm.Bernoulli("x", pm.Uniform("p", 0.1, 0.9, shape=3)[pm.Data("z", np.zeros(6, dtype=int))], observed=[0, 1] * 3)

    found = OPS().preview(model_of(shares), Domain(metric=Hamming(["x", "z"])), Budget(0.5)).problem
    assert "cannot be drawn exactly" in found and "assume_converged=True" in found
    assert "TemperedGibbs" in found and "BarkerMetropolis" in found and "SGLD" not in found
    for step in (dp.TemperedGibbs(), dp.BarkerMetropolis()):
        assert step.preview(model_of(shares), Domain(metric=Hamming(["x", "z"])), Budget(0.5)).fits
