"""Every sum just before its noise: no neighbour moves one by more than is charged, whatever stands in a row."""

from math import exp, sqrt

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

import pymc_dp as dp
from pymc_dp.gradients import curvature, row_parts
from pymc_dp.gradients.clipping import clipped
from pymc_dp.gradients.left_out import RowCounts
from pymc_dp.gradients.misfit import Residuals
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.weighted import WeightedParts
from tests.gradients.sums import Sums

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
N, EPSILON, DELTA = 80, 1.0, 1e-5
RNG = np.random.default_rng(3)
TABLE = {
    "x": np.clip(0.2 * RNG.normal(size=(N, 2)), -1, 1),
    "y": RNG.integers(0, 2, N),
    "w": RNG.uniform(0, 4, N),
    "g": RNG.integers(0, 12, N),
    "who": np.arange(N) // 2,
}
for _name, _value in {"x": 1.0, "y": 1, "w": 4.0, "g": 0}.items():
    TABLE[_name][0] = _value
HOSTILE = (
    {"x": (-1.0, -1.0), "y": 1, "w": 4.0, "g": 11},
    {"x": (1.0, -1.0), "y": 0, "w": 0.0, "g": 11},
    {"x": (np.nan, np.nan), "y": -7, "w": np.nan, "g": -1},
    {"x": (np.inf, -np.inf), "y": 2**40, "w": np.inf, "g": 99},
    {"x": (1e308, -1e308), "y": 0, "w": -1e308, "g": 0},
    {"x": (5e-324, -0.0), "y": 1, "w": 5e-324, "g": 3},
)


def logistic(x, y, **others):
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        for name, column in others.items():
            pm.Data(name, column)
        pm.Bernoulli("y", logit_p=eta, observed=y)
    return model


def normal(x, y):
    with pm.Model() as model:
        mean = pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Normal("y", mean, pm.LogNormal("scale"), observed=y.astype(float))
    return model


def counts(x, y):
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)), observed=y)
    return model


def grouped(x, y, g):
    with pm.Model() as model:
        level = pm.Normal("level", shape=12)
        pm.Bernoulli("y", logit_p=pm.Data("x", x)[:, 0] * pm.Normal("b") + level[pm.Data("g", g)], observed=y)
    return model


BOUNDS = {logistic: {}, normal: {"y": (-1, 1)}, counts: {"y": (0, 9)}, grouped: {"g": (0, 11)}}


def released(build, table, relation, choice, **declared):
    """The private model of a table, of which the model has dummies, unless ε is for persons, and the ledger."""
    bounds = {"x": (-1, 1), **BOUNDS[build], **({"w": (0, 4)} if "weights" in declared else {})}
    n_max = 2 * N if relation == "add_remove" else None
    domain = dp.Domain(bounds=bounds, neighbours=relation, n_max=n_max, **declared)
    names = [*dict.fromkeys([*bounds, "y"]), *(["who"] if "unit" in declared else [])]
    table = {name: table[name] for name in names}
    unit = "who" if "unit" in declared else None
    beside = {"rows": table} if unit is None else {}
    inside = table if unit is not None else {name: column[:3] for name, column in TABLE.items() if name in names}
    ledger = dp.Ledger(EPSILON, DELTA, neighbours=relation, unit=unit)
    given = {"epsilon": EPSILON, "delta": DELTA, "domain": domain, "statistics": dp.Gradients(steps=10, **choice)}
    return dp.privatize(build(**inside), **given, ledger=ledger, progressbar=False, **beside), ledger


def sums_of(build, relation, choice, declared):
    return Sums(lambda table: released(build, table, relation, choice, **declared))


def squares(sums):
    return sum(int(one) ** 2 for one in np.ravel(sums))


def replaced(row):
    return {name: np.concatenate([np.array([row[name]], column.dtype), column[1:]]) if name in row else column
            for name, column in TABLE.items()}  # fmt: skip


def without(count=1):
    return {name: column[count:] for name, column in TABLE.items()}


def appended(row, count=1):
    rows = {**row, "who": 10**6}
    return {name: np.concatenate([column, np.array([rows[name]] * count, column.dtype)])
            for name, column in TABLE.items()}  # fmt: skip


def neighbours(relation, declared):
    if "unit" in declared:
        row = {"x": (1.0, 1.0), "y": 1, "w": 0.0, "g": 0}
        return [without(2), appended(row), appended(row, 2), appended(row, 1000)]
    if relation == "replace":
        return [replaced(row) for row in HOSTILE]
    return [without(), *map(appended, HOSTILE)]


ONE, MATRIX = 2**48, 2**59
"""Squares of what a row may add: a vector, and a matrix in the units of events."""
WEIGHED, PERSONS = {"weights": {"y": "w"}}, {"unit": dp.Unit("who", max_rows=2)}
CASES = {
    "rows": (logistic, "replace", {}, {}),
    "rows that come and go, robust": (logistic, "add_remove", {"robust": True}, {}),
    "counts, robust": (counts, "replace", {"robust": True}, {}),
    "normal": (normal, "replace", {}, {}),
    "trust": (counts, "add_remove", {"trust_model": True}, {}),
    "momentum": (logistic, "replace", {"momentum_steps": 20}, {}),
    "weighted": (logistic, "replace", {}, WEIGHED),
    "weighted rows that come and go": (logistic, "add_remove", {}, WEIGHED),
    "persons, robust": (logistic, "add_remove", {"robust": True}, PERSONS),
    "many levels": (grouped, "replace", {}, {}),
}
NAMES = {(1, False): "weights", (4, False): "left out", (5, False): "moments", (16, False): "norms", (9, False): "fit"}
REACHED = {"scores": 0.3, "norms": 0.6, "weights": 0.99, "left out": 0.8, "moments": 0.35, "matrix": 0.3, "fit": 0.05}
"""At least so much of what is charged is reached: twice the bound would be four times as much."""


def charged(name, relation, levels):
    both = relation == "replace"
    if name == "matrix":
        return MATRIX * (4 if both and levels else 2 if both else 1)
    return ONE * {"weights": 1, "norms": 1 + both}.get(name, 4 if both else 1)


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_moves_a_sum_by_more_than_is_charged_and_some_by_as_much(case, monkeypatch):
    """And noise is drawn at the scales of the events, for every number that leaves, and nothing else is charged."""
    build, relation, _, declared = CASES[case]
    monkeypatch.setattr(curvature, "MOST_FULL", 10)
    levels = build is grouped
    sums = sums_of(*CASES[case])
    plain = sums(TABLE)
    paid, reached = list(sums.paid()), {}
    assert sums.entry.event.to_dict()["events"] == sums.events
    for table in neighbours(relation, declared):
        moved = [one - other for one, other in zip(sums(table), plain, strict=True)]
        for kind, part, bound in paid:
            name = "matrix" if kind[1] else NAMES.get(kind, "scores")
            assert bound == charged(name, relation, levels)
            *diagonal, last = (squares(moved[k]) for k in part)
            size = sum(diagonal) / 2 + last
            assert size <= bound, name
            reached[name] = max(reached.get(name, 0.0), size / bound)
    for name, most in reached.items():
        assert most > REACHED[name] or (levels and name == "matrix"), name


def test_the_account_of_a_release_is_that_of_its_events():
    """All are Gaussian: by the formula of Balle and Wang."""
    for case in CASES.values():
        sums = sums_of(*case)
        sums(TABLE)
        mu = sqrt(sum(event["l2_squared"] / event["scale"] ** 2 for event in sums.events))
        spent = sums.entry.alone.epsilon
        assert 0.999 * EPSILON < spent <= EPSILON
        delta = norm.cdf(mu / 2 - spent / mu) - exp(spent) * norm.cdf(-mu / 2 - spent / mu)
        assert delta == pytest.approx(DELTA, rel=1e-3)


def three_times(cls, name):
    made = getattr(cls, name)
    return cls, name, lambda self, *given: 3 * made(self, *given)


def unlimited(*given, **limits):
    return clipped(*given, **limits | {"clip_norm": 1e6, "clip_curvature": 1e6})


BROKEN = {
    "moments": (CASES["rows"], three_times(Moments, "rows")),
    "fit": (CASES["rows"], (Residuals, "rows", lambda self, rows, *_: np.full((len(rows[0]), 9), 0.9))),
    "weights": (CASES["weighted"], three_times(WeightedParts, "shares")),
    "left out": (CASES["persons, robust"], three_times(RowCounts, "rows")),
    "scores": (CASES["counts, robust"], (row_parts, "clipped", unlimited)),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_bounds_are_enforced_where_what_comes_before_is_broken(what, monkeypatch):
    """On the whole numbers that are summed."""
    (build, relation, choice, declared), broken = BROKEN[what]
    monkeypatch.setattr(*broken)
    sums = sums_of(build, relation, choice, declared)
    plain = sums(TABLE)
    paid = list(sums.paid())
    for table in neighbours(relation, declared)[:4]:
        moved = [one - other for one, other in zip(sums(table), plain, strict=True)]
        for _, part, bound in paid:
            *diagonal, last = (squares(moved[k]) for k in part)
            assert sum(diagonal) / 2 + last <= bound
