"""Correlated intercepts and slopes of groups: tables on which the intervals of ``dp.Gradients`` are calibrated.

Given the spreads and their correlation all is normal, so that the posterior of a release is a mixture of normal
distributions over a grid of these, and needs no sampler.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
from _gradient_cells import DELTA, Cell, Fit
from _group_cells import fit_mixture
from scipy.special import expit, ndtr

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of

Array = np.ndarray
COUNT, N_ROWS, BOUND = 20, 10_000, 2.5
ETA = 2.0
"""Of the prior of the correlation r: (1 - r²) to the power η - 1."""
SPREADS = np.geomspace(0.03, 4.0, 22)
CORRELATIONS = np.tanh(np.linspace(-2.4, 2.4, 15))


@dataclass(frozen=True)
class Slopes(Cell):
    """A logistic regression in which intercepts and slopes of groups have an LKJ prior; `design` says nothing."""

    @property
    def parts(self) -> dict[str, slice]:
        """Where parameters of each kind are, in the arrays of a `Fit`."""
        size = 2 * COUNT
        return {
            "intercepts": slice(0, size, 2),
            "slopes": slice(1, size, 2),
            "means": slice(size, size + 2),
            "spreads": slice(size + 2, size + 4),
            "correlation": slice(size + 4, size + 5),
        }


def _table(rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
    means, spreads = rng.normal(size=2), abs(rng.normal(size=2))
    correlation = 2 * rng.beta(ETA, ETA) - 1
    root = np.linalg.cholesky(_covariance(*spreads, correlation))
    levels = means + rng.normal(size=(COUNT, 2)) @ root.T
    shares = np.exp(0.6 * rng.normal(size=COUNT))
    group = rng.choice(COUNT, N_ROWS, p=shares / shares.sum())
    x = np.clip(rng.normal(size=N_ROWS), -BOUND, BOUND)
    y = (rng.random(N_ROWS) < expit(levels[group, 0] + levels[group, 1] * x)).astype(int)
    return np.concatenate([levels.ravel(), means, spreads, [correlation]]), {"x": x, "g": group, "y": y}


def _covariance(first: float, second: float, correlation: float) -> Array:
    off = first * second * correlation
    return np.array([[first**2, off], [off, second**2]])


@functools.cache
def planned_slopes(cell: Slopes) -> Planned:
    """Return what is public of a release in a cell."""
    _, table = _table(np.random.default_rng(0))
    with pm.Model() as model:
        means = pm.Normal("means", shape=2)
        spread = pm.HalfNormal.dist(1.0, shape=2)
        root, _, _ = pm.LKJCholeskyCov("root", n=2, eta=ETA, sd_dist=spread)
        levels = pm.MvNormal("levels", means, chol=root, shape=(COUNT, 2))
        group = pm.Data("g", table["g"])
        predictor = levels[group, 0] + levels[group, 1] * pm.Data("x", table["x"])
        pm.Bernoulli("y", logit_p=predictor, observed=table["y"])
    domain = dp.Domain(bounds={"x": (-BOUND, BOUND)}, neighbours=cell.neighbours)
    interface = interface_of(model, domain)
    assert [part.name for part in interface.parts] == ["levels"]
    return Planned.of(dp.Gradients(steps=cell.steps), interface, Budget(cell.epsilon, DELTA))


@dataclass(frozen=True)
class Mixture:
    """Posterior of levels and their means given spreads and correlation, and the probability of each of these."""

    weights: Array
    means: Array
    deviations: Array
    grid: Array

    @classmethod
    def of(cls, precision: Array, weighted: Array) -> Mixture:
        """Combine the hierarchy with ``weighted = precision @ levels + noise``, of that covariance."""
        size = 2 * COUNT
        known, shift = np.zeros((size + 2, size + 2)), np.concatenate([weighted, np.zeros(2)])
        known[:size, :size] = precision
        grid = np.array([(a, b, r) for a in SPREADS for b in SPREADS for r in CORRELATIONS])
        logs, means, deviations = [], [], []
        for first, second, correlation in grid:
            own = np.linalg.inv(_covariance(first, second, correlation))
            prior = np.zeros_like(known)
            prior[:size, :size] = np.kron(np.eye(COUNT), own)
            prior[:size, size:] = -np.tile(own, (COUNT, 1))
            prior[size:, :size] = prior[:size, size:].T
            prior[size:, size:] = np.eye(2) + COUNT * own
            root = np.linalg.cholesky(known + prior)
            back = np.linalg.inv(root)
            covariance = back.T @ back
            mean = covariance @ shift
            log = COUNT / 2 * np.linalg.slogdet(own)[1] - np.log(np.diag(root)).sum() + shift @ mean / 2
            log += -(first**2 + second**2) / 2 + np.log(first * second)  # a grid of logarithms
            log += ETA * np.log1p(-(correlation**2))  # of η - 1, and of a grid of inverse hyperbolic tangents
            logs.append(log)
            means.append(mean)
            deviations.append(np.sqrt(np.diag(covariance)))
        weights = np.exp(np.array(logs) - max(logs))
        return cls(weights / weights.sum(), np.array(means), np.array(deviations), grid)

    def levels(self, truth: Array) -> Array:
        """Return the posterior probability that each parameter is below a value."""
        own = self.weights @ ndtr((truth[:-3] - self.means) / self.deviations)
        axes: Sequence[Array] = (np.log(SPREADS), np.log(SPREADS), np.arctanh(CORRELATIONS))
        sought = (*np.log(truth[-3:-1]), np.arctanh(truth[-1]))
        shaped = self.weights.reshape([len(one) for one in axes])
        below = list[float]()
        for place, (axis, value) in enumerate(zip(axes, sought, strict=True)):
            share = shaped.sum(axis=tuple(other for other in range(3) if other != place))
            half = (axis[1] - axis[0]) / 2
            edges = np.concatenate([axis - half, [axis[-1] + half]])
            below.append(float(np.interp(value, edges, np.append(0.0, np.cumsum(share)))))
        return np.append(own, below)

    @property
    def widths(self) -> Array:
        """Standard deviations."""
        middle = self.weights @ self.means
        own = np.sqrt(self.weights @ (self.deviations**2 + (self.means - middle) ** 2))
        mean = self.weights @ self.grid
        return np.append(own, np.sqrt(self.weights @ (self.grid - mean) ** 2))


def fit_slopes(cell: Slopes, rng: np.random.Generator) -> Fit:
    """Release one table, and compare with the truth."""
    truth, table = _table(rng)
    return fit_mixture(Mixture.of, planned_slopes(cell), truth, truth[: 2 * COUNT], table)


SLOPES = [Slopes("correlated slopes", "groups 20", epsilon) for epsilon in (1.0, 3.0)]


__all__ = ["SLOPES", "Slopes", "fit_slopes", "planned_slopes"]
