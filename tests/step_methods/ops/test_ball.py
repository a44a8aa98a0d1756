"""One posterior sample of coefficients in a ball: the range that its radius proves, exact draws, no loss above ε."""

import math
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import special

import pymc_dp as dp
from pymc_dp.domain import Domain
from tests.step_methods.ops.models import bound

RADIUS, N = 1.2, 24
EPSILON = 1.5


def columns(n, rng):
    x = rng.uniform(-1, 1, (n, 2))
    return x, (rng.random(n) < special.expit(x @ [2.0, -1.0])).astype(int), rng.normal(x @ [0.5, 0.5], 0.7)


def logistic(x, y, _):
    w = pm.Normal("w", 0.0, 1.0, shape=2)
    pm.Bernoulli("y", logit_p=pm.Data("x", x) @ w, observed=y)


def linear(x, _, y):
    w = pm.Normal("w", 0.0, 1.0, shape=2)
    pm.Normal("y", pm.Data("x", x) @ w, 1.0, observed=y)


BUILDS = {"logistic": (logistic, {"x": (-1, 1)}), "linear": (linear, {"x": (-1, 1), "y": (-2, 2)})}


def model_of(name, rows, norm=RADIUS):
    with pm.Model() as model:
        BUILDS[name][0](*rows)
    return dp.truncate(model, norms={"w": norm})


def domain(name, relation="replace"):
    return Domain(bounds=BUILDS[name][1], neighbours=relation, n_max=N if relation == "add_remove" else None)


@cache
def planned(name, relation="replace"):
    rows = columns(N, np.random.default_rng(1))
    return bound(model_of(name, rows), domain(name, relation), EPSILON)[0]


def disc(count=48):
    """Points of the disc and logarithms of their areas."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    r, turns = RADIUS * (nodes + 1) / 2, np.linspace(0, 2 * math.pi, 2 * count, endpoint=False)
    points = np.stack([np.outer(r, np.cos(turns)).ravel(), np.outer(r, np.sin(turns)).ravel()], axis=1)
    return points, np.log(np.repeat(r * weights, len(turns)))


def log_density(step, held, inverse, points):
    """As the mechanism computes it, its bound on rows included."""
    prior, likelihood = step.posterior.density.held_sums(points, held, step.posterior.bound)
    return prior + inverse * likelihood


def normalised(step, held, inverse):
    points, areas = disc()
    logs = log_density(step, held, inverse, points)
    return logs - special.logsumexp(logs + areas)


def clamped(step, rows):
    return [column.clamped(np.asarray(rows[column.name])) for column in step.posterior.density.columns]


def tables(name, n, rng):
    """Rows at corners, on one side or mixed; the last one from corner to corner, or beyond all bounds."""
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    ends = (0, 1) if name == "logistic" else (-2.0, 2.0)
    hostile = [(50.0, np.nan), (-np.inf, np.inf), (1e300, -1e300)]
    kind = int if name == "logistic" else float
    for turn in range(12):
        x = np.tile(corners[rng.integers(4)], (n, 1)) if turn % 2 else corners[rng.integers(4, size=n)]
        y = np.full(n, ends[rng.integers(2)]) if turn % 2 else rng.choice(ends, n)
        two_x, two_y = x.copy(), y.copy()
        two_x[-1] = hostile[turn % 3] if turn % 4 == 0 else corners[rng.integers(4)]
        two_y[-1] = ends[0] + ends[1] - y[-1]
        yield {"x": x, "y": y.astype(kind)}, {"x": two_x, "y": two_y.astype(kind)}


def worst(name, relation, rng, times=1.0):
    step, most = planned(name, relation), 0.0
    inverse = step.temperature.inverse * times
    for n in (1, 2, N):
        for one, two in tables(name, n, rng):
            weights = np.ones(n)
            first, second = clamped(step, one), clamped(step, two)
            last = np.where(np.arange(n) < n - 1, 1.0, 0.0) if relation == "add_remove" else weights
            before = normalised(step, (first, weights), inverse)
            after = normalised(step, (second if relation == "replace" else first, last), inverse)
            most = max(most, float(np.abs(before - after).max()))
    return most


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", BUILDS)
def test_no_row_shows_more_than_epsilon(name, relation, rng):
    assert planned(name, relation).temperature.inverse < 1
    assert worst(name, relation, rng) <= EPSILON
