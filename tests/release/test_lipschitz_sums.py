"""Sums under a metric: they move in proportion to the distance of rows, exactly, or are refused."""

from functools import cache

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.rows.gate import values_of

pytestmark = pytest.mark.usefixtures("paid")

N = 40
REAL, COUNT = np.zeros(N), np.zeros(N, dtype=int)


def normal(held):
    pm.Normal("x", pm.Normal("mu", 0, 1), 1.0, observed=held("x"))


def both(held):
    pm.Normal("x", pm.Normal("mu", 0, 1), pm.HalfNormal("sd", 1), observed=held("x"))


def spread(held):
    pm.Normal("x", 0.3, pm.HalfNormal("sd", 1), observed=held("x"))


def waiting(held):
    pm.Exponential("x", pm.Gamma("rate", 2, 1), observed=held("x"))


def visits(held):
    pm.Poisson("x", pm.Gamma("rate", 2, 1), observed=held("x"))


def answers(held):
    pm.Bernoulli("x", pm.Beta("p", 1, 1), observed=held("x"))


def levels(held):
    pm.Categorical("x", pm.Dirichlet("p", np.ones(4)), observed=held("x"))


def grouped(held):
    group = held("group")
    pm.Normal("x", pm.Normal("mu", 0, 1, shape=3)[group], 1.0, observed=held("x"))


def grouped_answers(held):
    group = held("group")
    pm.Bernoulli("x", pm.Beta("p", 1, 1, shape=3)[group], observed=held("x"))


def places(held):
    pm.Normal("lat", pm.Normal("a", 47, 1), 1.0, observed=held("lat"))
    pm.Normal("lon", pm.Normal("b", 13, 3), 2.0, observed=held("lon"))


X = {"x": (-3.0, 5.0)}
CASES = {
    "a sum": (normal, X, dp.metrics.L1("x")),
    "a sum, in other units": (normal, X, dp.metrics.L1({"x": 0.03})),
    "a sum, Euclidean": (normal, X, dp.metrics.L2("x")),
    "a sum, different or not": (normal, X, dp.metrics.Hamming({"x": 0.5})),
    "squares": (spread, X, dp.metrics.L1("x")),
    "a sum and squares": (both, X, dp.metrics.L1({"x": 0.5})),
    "waiting times": (waiting, {"x": (0.0, 5.0)}, dp.metrics.L1("x")),
    "counts": (visits, {"x": (0, 12)}, dp.metrics.L1("x")),
    "answers": (answers, {}, dp.metrics.L1("x")),
    "levels": (levels, {}, dp.metrics.L1({"x": 2.0})),
    "levels, told apart": (levels, {}, dp.metrics.Hamming("x")),
    "groups": (grouped, X, dp.metrics.L1("x") + dp.metrics.Hamming({"group": 3.0})),
    "groups, all told apart": (grouped, X, dp.metrics.Hamming({"x": 2.0, "group": 3.0})),
    "groups, whole rows": (grouped, X, dp.metrics.Hamming()),
    "answers in groups": (grouped_answers, {}, dp.metrics.L1({"x": 0.5}) + dp.metrics.Hamming("group")),
    "places": (places, {"lat": (46.0, 49.0), "lon": (9.0, 17.0)}, dp.metrics.Geographic("lat", "lon", 0.1)),
}
WHOLE = {"answers": 1, "answers in groups": 1, "levels": 3, "levels, told apart": 3, "counts": 12}
"""Greatest value, where values are whole numbers from 0."""


@cache
def planned(name):
    """A model whose rows can be set, and the plan of its release."""
    build, bounds, metric = CASES[name]
    model = model_of(build, name in WHOLE)
    return model, plan_release(
        inspect(model, dp.Domain(bounds=bounds, metric=metric), per_unit=True).sums, dp.Statistics(), 1.0
    )


def model_of(build, whole=False):
    def held(name):
        named = name if name == "group" else f"{name}_rows"
        return pm.Data(named, COUNT if whole or name == "group" else REAL + 47.0 * (name == "lat"))

    with pm.Model() as model:
        build(held)
    return model


def columns(name):
    build, bounds, _ = CASES[name]
    if build is places:
        return {"lat": bounds["lat"], "lon": bounds["lon"]}
    found = {"x": bounds.get("x", (0, WHOLE.get(name)))}
    return found | ({"group": (0, 2)} if build in (grouped, grouped_answers) else {})


def table(name, rng, count=N):
    found = {}
    for column, (low, high) in columns(name).items():
        values = np.where(rng.random(count) < 0.3, rng.choice([low, high], count), rng.uniform(low, high, count))
        whole = column == "group" or name in WHOLE
        found[column] = np.rint(values).astype(int) if whole else values.astype(float)
    return found


def moved(name, rng, values):
    """One row or several, in one column or all: by a step of the grid, a little, or to anywhere."""
    other, fresh = {}, table(name, rng)
    rows = rng.random(N) < rng.choice([0.0, 0.2])
    rows[rng.integers(N)] = True
    size = 10.0 ** rng.uniform(-10, 0)
    for column, (low, high) in columns(name).items():
        near = np.clip(values[column] + size * (high - low) * rng.choice([-1, 1], N), low, high)
        target = fresh[column] if rng.random() < 0.5 or values[column].dtype.kind == "i" else near
        other[column] = np.where(rows & (rng.random() < 0.7), target, values[column])
    return other


def used(plan, values):
    """Values as they are summed: rounded to their grids."""
    found = dict(values)
    for one in plan.tables:
        statistic = one.statistic
        if hasattr(statistic, "centre"):
            unit, centre = statistic.unit, statistic.centre
        elif hasattr(statistic, "features"):
            unit, centre = statistic.features[0].unit, statistic.features[0].centre
        else:
            continue
        found[one.name] = centre + unit * np.rint((values[one.name] - centre) * (1 / unit))
    return found


@pytest.mark.parametrize("name", CASES)
def test_sums_move_by_no_more_than_is_charged_per_unit_of_distance(name, rng):
    model, plan = planned(name)
    values, metric, worst = table(name, rng), CASES[name][2], 0.0
    before = sums(model, plan, values)
    for _ in range(60):
        other = moved(name, rng, values)
        distance = metric.distance(used(plan, values), used(plan, other)).sum()
        after = sums(model, plan, other)
        loss = sum(
            np.abs(after[one.name] - before[one.name])[:, list(block.columns)].sum() / block.scale
            for one in plan.tables
            for block in one.blocks
        )
        assert loss <= distance * (1 + 1e-6)
        worst = max(worst, loss / distance if distance > 0 else 0.0)
    assert worst > 0.02


def sums(model, plan, values):
    """What a plan would release of other rows, without its noise."""
    with model:
        pm.set_data({name if name == "group" else f"{name}_rows": item for name, item in values.items()})
    found = {one.name: one.asked[0].of(values_of) for one in plan.tables}
    return {one.name: found[one.name][:, -len(one.labels) :] for one in plan.tables}


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("kind", ["counts", "values"])
def test_a_column_of_two_likelihoods_is_in_all_that_either_clamps_it_to(kind, order):
    """Whole rows move each sum over its own range, whichever comes last."""

    def a(held):
        if kind == "counts":
            return pm.Categorical("a", pm.Dirichlet("p", np.ones(4)), observed=held)
        return pm.Normal("a", pm.Normal("p", 0, 1), 1.0, observed=held)

    def b(held):
        if kind == "counts":
            return pm.Poisson("b", pm.Gamma("q", 2, 1), observed=held)
        return pm.Normal("b", pm.Normal("q", 0, 1), 1.0, observed=held)

    with pm.Model() as model:
        held = pm.Data("k", COUNT if kind == "counts" else REAL)
        for name in order:
            {"a": a, "b": b}[name](held)
    bounds = {"b": (0, 20)} | ({"a": (0, 1)} if kind == "values" else {})
    plan = plan_release(
        inspect(model, dp.Domain(bounds=bounds, metric=dp.metrics.L1("k")), per_unit=True).sums, dp.Statistics(), 1.0
    )
    values = {"k": np.zeros(N, dtype=COUNT.dtype if kind == "counts" else float)}
    other = {"k": values["k"].copy()}
    other["k"][0] = 20
    before, after = (exact_sums(model, plan, item) for item in (values, other))
    loss = sum(np.abs(after[one.name] - before[one.name]).sum() / one.blocks[0].scale for one in plan.tables)
    assert plan.diameter == 20 and loss <= plan.epsilon * plan.diameter
    assert loss > 3 * plan.epsilon  # more than the range of the other one would pay for
    told = {text.split()[0] for text in plan.grids}
    assert told == (set() if kind == "counts" else {"a", "b"})


def exact_sums(model, plan, values):
    with model:
        pm.set_data(values)
    return {one.name: one.asked[0].of(values_of) for one in plan.tables}


@pytest.mark.parametrize(
    ("build", "metric", "bounds", "text"),
    [
        (
            lambda held: pm.StudentT("x", nu=4, mu=pm.Normal("mu", 0, 1), sigma=1, observed=held("x")),
            *(dp.metrics.L1("x"), X, "not a sum of its values"),  # bins: two values nearby may lie in two of them
        ),
        (
            lambda held: pm.Gamma("x", pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1), observed=held("x")),
            *(
                dp.metrics.L1("x"),
                {"x": (0.1, 5)},
                "not a sum of its values",
            ),  # logarithms are rounded on a grid of their own
        ),
        (grouped, dp.metrics.L1(["x", "group"]), X, "not a smooth function"),
        (grouped, dp.metrics.L1("x"), X, "says nothing about it"),
        (normal, dp.metrics.L1({"x": 1e-12}), X, "than integers hold"),
        (normal, dp.metrics.Hamming({"x": 1e-30}), X, "than integers hold"),
        (grouped, dp.metrics.L1("x") + dp.metrics.Hamming({"group": 1e-12}), X, "than integers hold"),
        (places, dp.metrics.Geographic("lat", "lon"), {"lat": (46, 49), "lon": (-180, 180)}, "goes around the Earth"),
        (places, dp.metrics.Geographic("lat", "lon"), {"lat": (46, 90), "lon": (9, 17)}, "to a pole"),
        (places, dp.metrics.Geographic("lat", "lon"), {"lat": (46, 49), "lon": (9, 17)}, None),
    ],
)
def test_what_is_no_smooth_function_of_a_column_is_refused(build, metric, bounds, text):
    inspection = inspect(model_of(build), dp.Domain(bounds=bounds, metric=metric), per_unit=True).sums
    if text is None:
        assert plan_release(inspection, dp.Statistics(), 1.0).diameter > 100
        return
    with pytest.raises(dp.errors.UnsupportedModelError) as caught:
        plan_release(inspection, dp.Statistics(), 1.0)
    assert text in str(caught.value)
