"""Survey weights: tables whose rows are in the sample by chance that depends on the response, and what intervals cover.

The truth is the population's. Beside it stands what the same releases say without the squares of weighted scores, which
take the variance of scores from the curvature, as for rows that count once.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
from _gradient_cells import DELTA, Cell, Fit, clamped
from scipy.special import expit

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.private_model import Quadratic

Array = np.ndarray
SLOPES, N_ROWS, BOUND, LARGEST = 4, 20_000, 2.5, 4.5
BY_RESPONSE, BY_COVARIATE = 0.9, 0.5
"""In the logarithm of a weight: of a response that is the less likely one, and of the first covariate, cut to (-1, 1).

Variances of coefficients are 1.6 to 2.5 times those of as many rows of a plain sample, 2.1 times on average.
"""
MOST = 8
"""People for each of the sample."""


@dataclass(frozen=True)
class Weights(Cell):
    """A logistic regression of weighted rows; `design` says nothing."""

    @property
    def parts(self) -> dict[str, slice]:
        """Where parameters are in the arrays of a `Fit`: with squares of scores, and without."""
        return {"all": slice(0, SLOPES + 1), "without squares": slice(SLOPES + 1, 2 * (SLOPES + 1))}


def _table(rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
    """Draw a population's coefficients, and a sample of it with weights of mean 1: its size over that of the sample."""
    truth = rng.normal(size=SLOPES + 1)
    x = np.clip(rng.normal(size=(MOST * N_ROWS, SLOPES)), -BOUND, BOUND)
    predictor = truth[0] + x @ truth[1:]
    y = (rng.random(len(x)) < expit(predictor)).astype(int)
    weights = np.exp(BY_RESPONSE * (y != (predictor > 0)) + BY_COVARIATE * np.clip(x[:, 0], -1, 1))
    chances = weights.min() / weights
    kept = np.flatnonzero(rng.random(len(x)) < chances)[:N_ROWS]
    if len(kept) < N_ROWS:
        raise ValueError("The population is too small.")
    return truth, {"x": x[kept], "y": y[kept], "w": weights[kept] * (chances.mean() / weights.min())}


@functools.cache
def planned_weights(cell: Weights) -> Planned:
    """Return what is public of a release in a cell."""
    _, table = _table(np.random.default_rng(0))
    with pm.Model() as model:
        pm.Data("w", table["w"])
        a, b = pm.Normal("a"), pm.Normal("b", shape=SLOPES)
        pm.Bernoulli("y", logit_p=a + pm.Data("x", table["x"]) @ b, observed=table["y"])
    n_max = N_ROWS if cell.neighbours == "add_remove" else None
    bounds = {"x": (-BOUND, BOUND), "w": (0.0, LARGEST)}
    domain = dp.Domain(bounds=bounds, neighbours=cell.neighbours, n_max=n_max, weights={"y": "w"})
    return Planned.of(dp.Gradients(steps=cell.steps), interface_of(model, domain), Budget(cell.epsilon, DELTA))


def fit_weights(cell: Weights, rng: np.random.Generator) -> Fit:
    """Release one table, and compare with the truth; widths are over those of the sandwich without privacy."""
    plan = planned_weights(cell)
    truth, table = _table(rng)
    columns = clamped(plan.interface.inspection, table)
    began = time.process_time()
    found = plan.walk(columns)
    prior = np.zeros(len(truth)), np.eye(len(truth))
    mean, covariance = plan.quadratic(found).posterior(*prior)
    seconds = time.process_time() - began
    plain = replace(found, scores=None)
    shares = plan.simulated.shares(found.end * plan.limits.scale)
    other = Quadratic.of(plain, plan.limits.scale, shares).posterior(*prior)
    widths = np.sqrt(np.concatenate([np.diag(covariance), np.diag(other[1])]))
    without = np.tile(_without_privacy(truth, table), 2)
    return Fit(
        z=(np.tile(truth, 2) - np.concatenate([mean, other[0]])) / widths,
        limit=widths / without,
        plain=widths / without,
        chi_squared=found.chi_squared,
        seconds=seconds,
    )


def _without_privacy(truth: Array, table: dict[str, Array]) -> Array:
    """Return standard deviations of the pseudo-posterior with the variance of sampling."""
    x = np.column_stack([np.ones(N_ROWS), table["x"]])
    p, w = expit(x @ truth), np.minimum(table["w"], LARGEST)
    curvature = (x * (w * p * (1 - p))[:, None]).T @ x
    scores = x * (w * (table["y"] - p))[:, None]
    weight = np.linalg.solve(scores.T @ scores, curvature)
    return np.sqrt(np.diag(np.linalg.inv(np.eye(len(truth)) + curvature @ weight)))


WEIGHTS = [Weights("logistic, weighted", "design effect 2", epsilon) for epsilon in (1.0, 3.0)]


__all__ = ["WEIGHTS", "Weights", "fit_weights", "planned_weights"]
