"""Intercepts of many groups: more tables on which the intervals of ``dp.Gradients`` are calibrated.

Given the spread of the intercepts all is normal, so that the posterior of a release is a mixture of normal
distributions over a grid of spreads, and needs no sampler.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from _gradient_cells import DELTA, Cell, Fit, clamped, information
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, ndtr, ndtri

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of

Array = np.ndarray
SLOPES = 3
SPREADS = np.geomspace(0.005, 5.0, 60)
SIZES = {"groups 20": (20, 10_000), "groups 500": (500, 50_000)}


@dataclass(frozen=True)
class Groups(Cell):
    """A logistic regression with a hierarchy of intercepts: `design` is a key of `SIZES`."""

    @property
    def parts(self) -> dict[str, slice]:
        """Where parameters of each kind are, in the arrays of a `Fit`."""
        count = SIZES[self.design][0]
        return {
            "slopes": slice(0, SLOPES),
            "intercepts": slice(SLOPES, SLOPES + count),
            "mean": slice(SLOPES + count, SLOPES + count + 1),
            "spread": slice(SLOPES + count + 1, SLOPES + count + 2),
        }


def _table(rng: np.random.Generator, count: int, n_rows: int) -> tuple[Array, dict[str, Array]]:
    mean, spread = rng.normal(), abs(rng.normal())
    slopes, intercepts = rng.normal(size=SLOPES), mean + spread * rng.normal(size=count)
    shares = np.exp(0.6 * rng.normal(size=count))
    group = rng.choice(count, n_rows, p=shares / shares.sum())
    x = np.clip(rng.normal(size=(n_rows, SLOPES)), -4, 4)
    y = (rng.random(n_rows) < expit(x @ slopes + intercepts[group])).astype(int)
    return np.concatenate([slopes, intercepts, [mean, spread]]), {"x": x, "g": group, "y": y}


@functools.cache
def planned_groups(cell: Groups) -> tuple[Planned, float]:
    """Return what is public of a release in a cell, and the CPU seconds that took."""
    count, n_rows = SIZES[cell.design]
    _, table = _table(np.random.default_rng(0), count, n_rows)
    with pm.Model() as model:
        slopes = pm.Normal("slopes", shape=SLOPES)
        mean, spread = pm.Normal("mean"), pm.HalfNormal("spread")
        intercepts = pm.Normal("intercepts", mean, spread, shape=count)
        predictor = pm.Data("x", table["x"]) @ slopes + intercepts[pm.Data("g", table["g"])]
        pm.Bernoulli("y", logit_p=predictor, observed=table["y"])
    n_max = n_rows if cell.neighbours == "add_remove" else None
    domain = dp.Domain(bounds={"x": (-4, 4)}, neighbours=cell.neighbours, n_max=n_max)
    interface = interface_of(model, domain)
    assert [part.name for part in interface.parts] == ["slopes", "intercepts"]
    began = time.process_time()
    plan = Planned.of(dp.Gradients(steps=cell.steps), interface, Budget(cell.epsilon, DELTA))
    return plan, time.process_time() - began


@dataclass(frozen=True)
class Mixture:
    """Posterior of slopes, intercepts and their mean given each spread, and the probability of each."""

    weights: Array
    means: Array
    deviations: Array

    @classmethod
    def of(cls, precision: Array, weighted: Array) -> Mixture:
        """Combine the hierarchy with ``weighted = precision @ parameters + noise``, of that covariance."""
        size = len(precision) + 1
        known, shift = np.zeros((size, size)), np.append(weighted, 0.0)
        known[:-1, :-1] = precision
        found = []
        for spread in SPREADS:
            prior = np.diag([1.0] * SLOPES + [spread**-2] * (size - 1 - SLOPES) + [1 + (size - 1 - SLOPES) / spread**2])
            prior[SLOPES:-1, -1] = prior[-1, SLOPES:-1] = -(spread**-2)
            root = cho_factor(known + prior, lower=True)
            mean = cho_solve(root, shift)
            half = -(size - 1 - SLOPES) * np.log(spread) - np.log(np.diag(root[0])).sum()
            log = half + shift @ mean / 2 - spread**2 / 2 + np.log(spread)  # a grid of logarithms
            found.append((log, mean, np.sqrt(np.diag(cho_solve(root, np.eye(size))))))
        logs = np.array([one[0] for one in found])
        weights = np.exp(logs - logs.max())
        return cls(weights / weights.sum(), np.array([one[1] for one in found]), np.array([one[2] for one in found]))

    def levels(self, truth: Array) -> Array:
        """Return the posterior probability that each parameter is below a value; the spread is the last one."""
        own = self.weights @ ndtr((truth[:-1] - self.means) / self.deviations)
        edges = np.append(0.0, np.cumsum(self.weights))
        middles = np.sqrt(SPREADS[1:] * SPREADS[:-1])
        bounds = np.concatenate([[SPREADS[0]], middles, [SPREADS[-1]]])
        return np.append(own, np.interp(truth[-1], bounds, edges))

    @property
    def widths(self) -> Array:
        """Standard deviations."""
        middle = self.weights @ self.means
        own = np.sqrt(self.weights @ (self.deviations**2 + (self.means - middle) ** 2))
        mean = self.weights @ SPREADS
        return np.append(own, np.sqrt(self.weights @ (SPREADS - mean) ** 2))


def fit_groups(cell: Groups, rng: np.random.Generator) -> Fit:
    """Release one table, and compare with the truth."""
    plan, seconds = planned_groups(cell)
    truth, table = _table(rng, *SIZES[cell.design])
    return fit_mixture(Mixture.of, plan, truth, truth[:-2], table, seconds)


def fit_mixture(
    posterior_of: Callable[[Array, Array], Any],
    plan: Planned,
    truth: Array,
    own: Array,
    table: dict[str, Array],
    seconds: float = 0.0,
) -> Fit:
    """Release one table, and compare with the truth by mixtures; `own` are the parameters of rows."""
    columns = clamped(plan.interface.inspection, table)
    began = time.process_time()
    found = plan.walk(columns)
    quadratic = plan.quadratic(found)
    seconds += time.process_time() - began
    bent = quadratic.curvature / quadratic.scale
    weight = np.linalg.solve(quadratic.covariance, bent)
    posterior = posterior_of(bent.T @ weight, weight.T @ quadratic.slope)
    limit, plain = (posterior_of(one, one @ own) for one in information(plan, own, columns))
    return Fit(
        z=ndtri(np.clip(posterior.levels(truth), 1e-9, 1 - 1e-9)),
        limit=posterior.widths / limit.widths,
        plain=posterior.widths / plain.widths,
        chi_squared=found.chi_squared,
        seconds=seconds,
    )


GROUPS = [Groups("hierarchy", design, 1.0) for design in SIZES]


__all__ = ["GROUPS", "Groups", "Mixture", "fit_groups", "fit_mixture", "planned_groups"]
