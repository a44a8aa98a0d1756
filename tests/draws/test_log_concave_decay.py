"""What is said of rows holds in every direction and at every distance."""

import numpy as np
import pytest

from pymc_dp.draws.log_concave import RowCurvatures, bends
from pymc_dp.draws.log_concave_shells import decay
from tests.draws.regressions import HUBER, LOGISTIC, NORMAL, POISSON

X = np.concatenate([-np.geomspace(1e-4, 60, 400)[::-1], np.geomspace(1e-4, 60, 400)])


def spare(family, eta, y, factor=1.0):
    """By how much f falls off more from its tangents than curvatures and bends promise, and the scale of rounding."""
    curvature = family.curvature(eta, y)
    bent = factor * bends(curvature, family.relative_slope(eta, y), *family.slopes_at_ends(eta, y))
    promised = curvature[:, None] * X**2 * decay(bent[:, None] * np.abs(X))
    f, line = family.f(eta, y)[:, None], family.slope(eta, y)[:, None] * X
    with np.errstate(over="ignore"):
        ahead = np.maximum(family.f(eta[:, None] + X, y[:, None]), -1e300)
    return f + line - ahead - promised, 1e-13 * (1 + np.abs(f) + np.abs(line) + np.abs(ahead))


@pytest.mark.parametrize("family", [LOGISTIC, POISSON, NORMAL, HUBER])
def test_rows_fall_off_at_least_as_their_bends_say(rng, family):
    eta = np.concatenate([np.linspace(-12, 12, 97), rng.normal(size=50)])
    for y in (0.0, 1.0, 7.0):
        more, rounding = spare(family, eta, np.full(eta.size, y))
        assert (more >= -rounding).all()


def test_no_smaller_bend_would_do():
    for family in (LOGISTIC, POISSON):
        more, _ = spare(family, np.array([0.0, 2.0, -3.0]), np.ones(3), factor=0.97)
        assert (more.min(axis=1) < -1e-6).all()


def cases(rng):
    plain = rng.standard_normal((300, 5))
    return {
        "random": plain,
        "all equal": np.repeat(plain[:1], 300, axis=0),
        "along axes": np.eye(5)[rng.integers(0, 5, 300)] * rng.exponential(size=(300, 1)),
        "one long": np.concatenate([plain, 30 * plain[:1]]),
        "intercept": np.column_stack([np.ones(300), 0.1 * plain[:, :2]]),
    }


@pytest.mark.parametrize("name", ["random", "all equal", "along axes", "one long", "intercept"])
def test_norms_bound_every_direction(rng, name):
    vectors = cases(rng)[name]
    n, d = vectors.shape
    rows = RowCurvatures(vectors=vectors, curvatures=rng.exponential(size=n), bends=rng.uniform(0, 2, n))
    metric = rows.curvature + np.diag(rng.uniform(0.1, 3, d))
    directions = np.concatenate([rng.standard_normal((500, d)), vectors[:100], np.linalg.inv(metric)])
    for _ in range(30):  # climb, so that the worst direction is about reached
        inner = directions[:250] @ vectors.T
        better = (inner * inner * inner * rows.curvatures * rows.bends**2) @ vectors
        directions[:250] = np.linalg.solve(metric, better.T).T
        directions /= np.linalg.norm(directions, axis=1)[:, None]
    inner = np.abs(directions @ vectors.T)
    square = np.einsum("ki,ij,kj->k", directions, metric, directions)
    longest, fourth = rows.longest(metric), rows.fourth_moment(metric)
    reached = ((rows.bends * inner) ** 2).max(axis=1) / square
    assert reached.max() <= longest
    moments = (rows.curvatures * rows.bends**2 * inner**4).sum(axis=1) / square**2
    assert moments.max() <= fourth
    assert moments.max() > fourth / 4
    means = (rows.curvatures * rows.bends * inner**3).sum(axis=1)
    assert (means <= np.sqrt(fourth) * square * np.sqrt((rows.curvatures * inner**2).sum(axis=1)) * (1 + 1e-9)).all()
