"""Draws from log-concave densities in a ball: against quadrature, inside of it and pressed to its surface."""

import math

import numpy as np
import pytest
from scipy import special, stats

from pymc_dp.draws import log_concave_ball
from pymc_dp.draws.kernels import squared_length
from pymc_dp.draws.log_concave import LogConcave
from pymc_dp.draws.log_concave_ball import draw_in_ball, log_gamma_share

RADIUS = 1.3
ALPHA = 1e-3


def logistic(rows, signs, times=1.0, strong=0.8):
    """Posterior of a logistic regression, normal prior: the likelihood to the power `times`."""

    def value(points):
        likelihood = special.log_expit(points @ (rows * signs[:, None]).T).sum(axis=1)
        return times * likelihood - strong * (points**2).sum(axis=1) / 2

    def gradient(point):
        return times * (rows * signs[:, None]).T @ special.expit(-signs * (rows @ point)) - strong * point

    def hessian(point):
        share = special.expit(rows @ point)
        return -times * (rows * (share * (1 - share))[:, None]).T @ rows

    return LogConcave(
        dimension=rows.shape[1],
        value=value,
        gradient=gradient,
        hessian=hessian,
        strong=np.full(rows.shape[1], strong),
        self_concordance=float(np.linalg.norm(rows, axis=1).max(initial=0.0)),
    )


def target_of(kind):
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (40, 2))
    mixed = np.where(rng.random(40) < special.expit(rows @ [1.0, -0.5]), 1.0, -1.0)
    if kind == "inside":
        return logistic(rows, mixed)
    if kind == "prior":
        return logistic(rows[:0], mixed[:0])
    if kind == "leaning":
        return logistic(rows, mixed, times=8.0)
    away = np.abs(rows) * [1.0, 0.4]
    return logistic(away, np.ones(40), times={"pressed": 1.0, "nailed": 30.0}[kind])


def cells(target, radius=RADIUS, rings=12, wedges=16):
    """Mass of the cells of a disc, in polar coordinates, by Gauss and Legendre's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges, turns = radius * np.sqrt(np.linspace(0, 1, rings + 1)), np.linspace(-math.pi, math.pi, wedges + 1)
    r = (edges[1:, None] + edges[:-1, None]) / 2 + np.diff(edges)[:, None] / 2 * nodes
    a = (turns[1:, None] + turns[:-1, None]) / 2 + np.diff(turns)[:, None] / 2 * nodes
    grid_r, grid_a = np.broadcast_arrays(r[:, :, None, None], a[None, None])
    points = np.stack([grid_r * np.cos(grid_a), grid_r * np.sin(grid_a)], axis=-1)
    logs = target.value(points.reshape(-1, 2)).reshape(grid_r.shape)
    density = np.exp(logs - logs.max()) * grid_r * np.diff(edges)[:, None, None, None] / 2 * weights[:, None, None]
    mass = (density * weights).sum(axis=(1, 3))
    return mass / mass.sum(), edges, turns


def counted(draws, edges, turns):
    radius, angle = np.linalg.norm(draws, axis=1), np.arctan2(draws[:, 1], draws[:, 0])
    return np.histogram2d(radius, angle, bins=(edges, turns))[0]


def chi_squared(draws, target):
    """p-value of draws; cells that expect few are taken together."""
    mass, edges, turns = cells(target)
    assert (np.linalg.norm(draws, axis=1) <= RADIUS).all()
    expected, seen = mass.ravel() * len(draws), counted(draws, edges, turns).ravel()
    many = expected >= 8
    expected, seen = (np.append(item[many], item[~many].sum()) for item in (expected, seen))
    kept = expected > 0.5
    return stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", ["prior", "inside", "leaning", "pressed", "nailed"])
def test_draws_have_the_density_that_quadrature_has(kind, rng):
    target = target_of(kind)
    draws = draw_in_ball(rng, target, RADIUS, draws=8000)
    assert chi_squared(draws, target) > ALPHA


@pytest.mark.parametrize("kind", ["prior", "leaning", "pressed"])
def test_all_envelopes_end_at_the_same_surface_and_nothing_gathers_there(kind, rng, monkeypatch):
    """Neighbours may be proposed from different ones: a place that only one of them reaches would tell which."""
    monkeypatch.setattr(log_concave_ball, "WITHIN", 0.8)
    found = np.linalg.norm(draw_in_ball(rng, target_of(kind), RADIUS, draws=3000), axis=1) / RADIUS
    assert found.max() <= 0.8
    assert len(np.unique(found)) == len(found) and (found > 0.8 - 1e-9).sum() == 0
    target = target_of(kind)
    mass, edges, _ = cells(target, 0.8 * RADIUS)
    seen = np.histogram(found * RADIUS, bins=edges)[0]
    assert stats.chisquare(seen, mass.sum(axis=1) * len(found)).pvalue > ALPHA


@pytest.mark.parametrize(
    ("degrees", "most"), [(1, 0.5), (1, 9.0), (2, 1e-6), (2, 5.0), (9, 1.0), (9, 6.9), (9, 30.0), (80, 60.0)]
)
def test_squared_lengths_are_truncated_chi_squared(degrees, most, rng):
    found = np.array([squared_length(rng, float(degrees), most) for _ in range(4000)])
    assert (found <= most).all()
    half = degrees / 2
    share = lambda x: np.exp(log_gamma_share(half, x / 2) - log_gamma_share(half, np.array(most / 2)))  # noqa: E731
    assert stats.kstest(found, share).pvalue > ALPHA
