"""Simulation-based calibration of private regressions, from the rows to the posterior, through the public functions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.plan.posteriors import DRAWS_OF_CHAIN, Chain
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn
from pymc_dp.transforms.covariates import MEAN, MEDIAN
from pymc_dp.transforms.privatize import plan_for, prepare, regression_density
from tests.paid import draw_release

Array = np.ndarray
WIDTH, N_SIMULATIONS, KEPT = 5, 150, 49
DELTA = 1e-5
BINS = 10


@dataclass(frozen=True)
class Case:
    """One kind of regression and of release."""

    likelihood: str
    noise: str
    epsilon: float
    n_rows: int


CASES = {
    "linear, ε = 0.3": Case("normal", "gaussian", 0.3, 1000),
    "linear, ε = 1": Case("normal", "gaussian", 1.0, 1000),
    "logistic, ε = 1": Case("bernoulli", "laplace", 1.0, 5000),
}


class Owner:
    """A table whose rows can be replaced, its release, and a private model that is compiled once."""

    def __init__(self, case: Case) -> None:
        self.case, self.linear = case, case.likelihood == "normal"
        zeros = np.zeros(case.n_rows)
        with pm.Model() as self.model:
            self.x = pm.Data("x", np.zeros((case.n_rows, WIDTH)))
            self.y = pm.Data("y_", zeros if self.linear else zeros.astype(int))
            eta = pm.Normal("a", 0, 1) + self.x @ pm.Normal("b", 0, 1, shape=WIDTH)
            if self.linear:
                pm.Normal("y", eta, pm.HalfNormal("s", 1), observed=self.y)
            else:
                pm.Bernoulli("y", logit_p=eta, observed=self.y)
        bounds = {"x": (-1.0, 1.0), **({"y": (-6.0, 6.0)} if self.linear else {})}
        statistics = Statistics(noise=case.noise)
        inspection, self.plan = plan_for(
            self.model,
            epsilon=case.epsilon,
            delta=DELTA if case.noise == "gaussian" else 0.0,
            domain=Domain(bounds=bounds),
            statistics=statistics,
        )
        self.private, (parameters,) = prepare(inspection, self.plan)
        (table,) = self.plan.tables
        self.density = regression_density(table, noise_aware=True, at_most=False)
        value = np.zeros((1, table.statistic.count))
        centre, root = self.density.coordinates(value)
        with self.private:
            self.centre = pm.Data("centre", centre)
            self.root = pm.Data("root", root)
            self.value = pm.Data("value", value)
            beside = self.density.latents("y", (self.centre, self.root))
            pm.CustomDist(
                "y",
                *parameters,
                table.scales,
                *beside,
                logp=self.density.logp,
                signature=self.density.signature,
                observed=self.value,
            )
        start = self.private.initial_point()
        values = [start[value.name] for value in self.private.value_vars]
        shapes = [np.shape(value) for value in values]
        self.chain = Chain(self.private, np.concatenate([np.ravel(value) for value in values]), shapes)
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        starts = [0, *ends[:-1]]
        self.places = {
            str(value.name): np.arange(start, end)
            for value, start, end in zip(self.private.value_vars, starts, ends, strict=True)
        }

    def simulate(self, rng: np.random.Generator) -> Array:
        """Draw parameters and rows, put the rows into the table; return the parameters."""
        n, (a, *b), s = self.case.n_rows, rng.normal(size=WIDTH + 1), abs(rng.normal())
        x = covariates(rng, n)
        eta = a + x @ np.array(b)
        drawn = eta + s * rng.normal(size=n) if self.linear else (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
        self.x.set_value(x)
        self.y.set_value(drawn.astype(self.y.type.dtype))
        return np.array([a, *b, *([s] if self.linear else [])])

    def posterior(self, seed: int) -> Array:
        """Release the rows, and draw from the posterior: (KEPT, n_parameters) array."""
        released: Drawn = draw_release(self.plan)
        value = released.values["y"]
        self.value.set_value(value)
        centre, root = self.density.coordinates(value)
        self.centre.set_value(centre)
        self.root.set_value(root)
        draws = self.chain.draws(seed)[:: DRAWS_OF_CHAIN // KEPT][:KEPT]
        places = np.concatenate([self.places[name] for name in ("a", "b", *(["s_log__"] if self.linear else []))])
        found = draws[:, places]
        if self.linear:
            found[:, -1] = np.exp(found[:, -1])
        return found


def covariates(rng: np.random.Generator, n: int) -> Array:
    """Rows of normal numbers, clamped: with moments like those that the library expects between bounds."""
    sd = MEDIAN * np.exp(0.4 * rng.normal(size=WIDTH))
    loadings = rng.normal(size=(WIDTH, 2)) * 0.6
    covariance = loadings @ loadings.T + np.eye(WIDTH)
    scale = sd / np.sqrt(np.diag(covariance))
    mean = MEAN * 0.5 * rng.normal(size=WIDTH)
    return np.clip(rng.multivariate_normal(mean, covariance * np.outer(scale, scale), n), -1, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_posteriors_of_private_regressions_are_calibrated(name: str) -> None:
    """The rank of the truth among posterior draws is uniform, and 90% intervals cover."""
    seed = zlib.crc32(name.encode()) % 2**31
    rng, owner, found = np.random.default_rng(seed), Owner(CASES[name]), []
    for i in range(N_SIMULATIONS):
        truth = owner.simulate(rng)
        found.append((owner.posterior(seed + i) < truth).sum(axis=0))
    below = np.array(found)  # 0 to KEPT
    covered = ((below >= 0.05 * (KEPT + 1)) & (below < 0.95 * (KEPT + 1))).sum(axis=0)
    ranks = [np.bincount(item * BINS // (KEPT + 1), minlength=BINS) for item in below.T]
    print(f"{name}: coverage {covered / N_SIMULATIONS}, ranks {[item.tolist() for item in ranks]}")
    for count, observed in zip(covered, ranks, strict=True):
        assert stats.binomtest(int(count), N_SIMULATIONS, 0.9).pvalue > 1e-4, covered
        assert stats.chisquare(observed).pvalue > 1e-4, observed
