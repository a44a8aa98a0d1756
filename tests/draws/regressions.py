"""Posteriors of regressions on linear predictors, as `LogConcave`, and their marginal laws by quadrature."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from pymc_dp.draws.log_concave import LogConcave, RowCurvatures, bends


@dataclass(frozen=True, kw_only=True)
class Family:
    """Log-likelihood of y given eta, its derivative, minus its second one, and what `bends` asks for."""

    f: Callable
    slope: Callable
    curvature: Callable
    relative_slope: Callable
    slopes_at_ends: Callable
    self_concordance: float | None


LOGISTIC = Family(
    f=lambda eta, y: y * eta - np.logaddexp(0, eta),
    slope=lambda eta, y: y - special.expit(eta),
    curvature=lambda eta, y: special.expit(eta) * special.expit(-eta),
    relative_slope=lambda eta, y: np.abs(special.expit(eta) - special.expit(-eta)),
    slopes_at_ends=lambda eta, y: (special.expit(eta), special.expit(-eta)),
    self_concordance=1.0,
)
POISSON = Family(
    f=lambda eta, y: y * eta - np.exp(eta),
    slope=lambda eta, y: y - np.exp(eta),
    curvature=lambda eta, y: np.exp(eta),
    relative_slope=lambda eta, y: np.ones_like(eta),
    slopes_at_ends=lambda eta, y: (np.exp(eta), np.full_like(eta, np.inf)),
    self_concordance=1.0,
)
NORMAL = Family(
    f=lambda eta, y: -((y - eta) ** 2) / 2,
    slope=lambda eta, y: y - eta,
    curvature=lambda eta, y: np.ones_like(eta),
    relative_slope=lambda eta, y: np.zeros_like(eta),
    slopes_at_ends=lambda eta, y: (np.full_like(eta, np.inf), np.full_like(eta, np.inf)),
    self_concordance=0.0,
)
HUBER = Family(
    f=lambda eta, y: -special.huber(1.0, y - eta),
    slope=lambda eta, y: np.clip(y - eta, -1, 1),
    # All of it up to half way to the kinks, then less and less, so that bends are at most 2.
    curvature=lambda eta, y: np.clip(2 * (1 - np.abs(y - eta)), 0, 1),
    relative_slope=lambda eta, y: np.zeros_like(eta),
    slopes_at_ends=lambda eta, y: (1 - np.clip(y - eta, -1, 1), 1 + np.clip(y - eta, -1, 1)),
    self_concordance=None,
)
PROBIT = Family(
    f=lambda eta, y: special.log_ndtr((2 * y - 1) * eta),
    slope=lambda eta, y: (2 * y - 1) * _hazard((2 * y - 1) * eta),
    curvature=lambda eta, y: _hazard((2 * y - 1) * eta) * (_hazard((2 * y - 1) * eta) + (2 * y - 1) * eta),
    relative_slope=lambda eta, y: np.full_like(eta, np.nan),
    slopes_at_ends=lambda eta, y: (np.full_like(eta, np.nan), np.full_like(eta, np.nan)),
    self_concordance=None,
)
LAPLACE = Family(
    f=lambda eta, y: -np.abs(y - eta),
    slope=lambda eta, y: np.sign(y - eta),
    curvature=lambda eta, y: np.zeros_like(eta),
    relative_slope=lambda eta, y: np.zeros_like(eta),
    slopes_at_ends=lambda eta, y: (1 - np.sign(y - eta), 1 + np.sign(y - eta)),
    self_concordance=None,
)


def _hazard(s):
    return np.exp(-(s**2) / 2 - special.log_ndtr(s)) / np.sqrt(2 * np.pi)


def posterior(family, z, y, strong, *, beta=1.0, by_rows=True, **options):
    """Return the posterior under the prior N(0, diag(1 / strong)), with the linear predictors z theta."""
    strong = np.broadcast_to(np.asarray(strong, dtype=float), z.shape[1])
    radius = np.linalg.norm(z, axis=1).max(initial=0.0)

    def rows(point):
        eta = z @ point
        curvature = family.curvature(eta, y)
        bent = bends(curvature, family.relative_slope(eta, y), *family.slopes_at_ends(eta, y))
        return RowCurvatures(vectors=z, curvatures=beta * curvature, bends=bent)

    return LogConcave(
        dimension=z.shape[1],
        value=lambda points: beta * family.f(points @ z.T, y).sum(axis=1) - points**2 @ strong / 2,
        gradient=lambda point: beta * z.T @ family.slope(z @ point, y) - strong * point,
        hessian=lambda point: -beta * (z.T * family.curvature(z @ point, y)) @ z,
        strong=strong,
        self_concordance=None if family.self_concordance is None else family.self_concordance * radius,
        rows=rows if by_rows else None,
        **options,
    )


def simulate(rng, family, n, d, radius=1.5, intercept=False):
    """Return rows of the given length and responses under a parameter of the prior N(0, 1)."""
    z = rng.standard_normal((n, d)) * (np.geomspace(1, 0.2, d) if intercept else 1.0)
    z[:, 0] = 1.0 if intercept else z[:, 0]
    z *= radius / np.linalg.norm(z, axis=1)[:, None]
    eta = z @ rng.standard_normal(d)
    if family in (LOGISTIC, PROBIT):
        return z, (rng.random(n) < special.expit(eta)).astype(float)
    return z, rng.poisson(np.exp(eta)).astype(float) if family is POISSON else eta + rng.standard_normal(n)


def marginals(target, center, reach, points):
    """Return the distribution function of each coordinate, by the trapezoidal rule on a grid of `points` per axis."""
    low, high = target.box
    axes = [
        np.linspace(max(low[i], center[i] - reach[i]), min(high[i], center[i] + reach[i]), points)
        for i in range(target.dimension)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    heights = np.concatenate([target.at(part.reshape(-1, target.dimension)) for part in grid]).reshape(grid.shape[:-1])
    weights = np.exp(heights - heights.max())
    for axis in range(target.dimension):
        np.moveaxis(weights, axis, 0)[[0, -1]] /= 2
    found = []
    for i, axis in enumerate(axes):
        mass = weights.sum(axis=tuple(j for j in range(target.dimension) if j != i))
        mass[[0, -1]] *= 2
        total = np.cumsum(np.append(0.0, (mass[1:] + mass[:-1]) / 2))
        found.append(lambda x, axis=axis, total=total: np.interp(x, axis, total / total[-1]))
    return found
