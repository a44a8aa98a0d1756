"""Simulation-based calibration of regressions: rows from the prior, noise by NumPy, posteriors by NUTS."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.model.transform.optimization import freeze_model
from scipy import stats

from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.polynomial import Response
from pymc_dp.transforms.regression import RegressionDensity

Array = np.ndarray
WIDTH, N_SIMULATIONS, N_DRAWS = 5, 60, 300
DELTA_1, DEVIATIONS = 27.4, {0.3: 12.0, 1.0: 4.0}
"""Sensitivity by Laplace noise, and standard deviations of Gaussian noise at delta = 1e-5, by epsilon."""


@dataclass(frozen=True)
class Case:
    """One kind of regression and of release."""

    likelihood: str
    noise: str
    epsilon: float
    n_rows: int

    @property
    def scale(self) -> float:
        return DEVIATIONS[self.epsilon] if self.noise == "gaussian" else DELTA_1 / self.epsilon


CASES = {
    f"{kind}, {noise}, {epsilon}": Case(kind, noise, epsilon, n)
    for kind, n, epsilons in (("normal", 1000, (0.3, 1.0)), ("bernoulli", 5000, (1.0,)))
    for noise in ("gaussian", "laplace")
    for epsilon in epsilons
}


class Posterior:
    """A model compiled once: every call fits another release."""

    def __init__(self, case: Case) -> None:
        linear = case.likelihood == "normal"
        half, centre = (4.0, 0.0) if linear else (0.5, 0.5)
        statistic = GramSums(
            sources=(Source(name="x", centres=(0.0,) * WIDTH, halves=(1.0,) * WIDTH),),
            response=Source(name="y", centres=(centre,), halves=(half,)),
            square=linear,
        )
        self.density = RegressionDensity(
            statistic=statistic,
            response=Response(likelihood=case.likelihood, mean=pt.sigmoid),
            sizes=np.array([case.n_rows]),
            scale=case.scale,
            noise=case.noise,
        )
        self.case, self.linear = case, linear
        value = np.zeros((1, statistic.count))
        self.value = pytensor.shared(value, shape=value.shape)
        self.held = [pytensor.shared(item, shape=item.shape) for item in self.density.coordinates(value)]
        with pm.Model() as model:
            a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1, shape=WIDTH)
            sd = pm.HalfNormal("s", 1) if linear else 1.0
            self.density.observe("y", self.value, a[None], b, sd, coordinates=tuple(self.held))
        self.model = freeze_model(model)

    def simulate(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Parameters from their prior, and a release of rows: normal ones with moments from theirs, clamped."""
        n, (a, *b), s = self.case.n_rows, rng.normal(size=WIDTH + 1), abs(rng.normal())
        covariates = self.density.covariates
        size = covariates.shapes["covariates"]
        numbers = covariates._draw(np.zeros(size), np.eye(size[0]), rng=rng)
        moments = covariates.moments({"covariates": numbers}, np)
        t = np.clip(rng.multivariate_normal(moments.means[0], moments.within[0], n), -1, 1)
        eta = a + t @ np.array(b)
        if self.linear:
            u = np.clip(eta + s * rng.normal(size=n), -4, 4) / 4
        else:
            u = np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
        i, j = np.triu_indices(WIDTH)
        square = [u @ u] if self.linear else []
        sums = np.array([*t.sum(0), u.sum(), *(t[:, i] * t[:, j]).sum(0), *(u @ t), *square])
        draw = rng.normal if self.case.noise == "gaussian" else rng.laplace
        return np.array([a, *b, *([s] if self.linear else [])]), (sums + draw(size=len(sums)) * self.case.scale)[None]

    def below(self, truth: Array, release: Array, seed: int) -> Array:
        """Posterior probability that each parameter is below its true value."""
        self.value.set_value(release)
        for held, item in zip(self.held, self.density.coordinates(release), strict=True):
            held.set_value(item)
        quiet = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
        # A full mass matrix: intercept and slopes of predictors that hardly vary are nearly one number.
        with self.model:
            found = pm.sample(N_DRAWS, tune=N_DRAWS, chains=1, init="jitter+adapt_full", random_seed=seed, **quiet)
        posterior = found.posterior
        columns = [posterior["a"].values.reshape(-1, 1), posterior["b"].values.reshape(-1, WIDTH)]
        if self.linear:
            columns.append(posterior["s"].values.reshape(-1, 1))
        return (np.concatenate(columns, axis=1) < truth).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_posteriors_of_regressions_are_calibrated(name: str) -> None:
    """The rank of the truth among posterior draws is uniform, and 90% intervals cover."""
    seed = zlib.crc32(name.encode())
    rng, posterior, found = np.random.default_rng(seed), Posterior(CASES[name]), []
    started = time.perf_counter()
    for i in range(N_SIMULATIONS):
        found.append(posterior.below(*posterior.simulate(rng), seed=(seed + i) % 2**31))
    each = (time.perf_counter() - started) / N_SIMULATIONS
    for below in np.array(found).T:
        observed = np.bincount(np.minimum((below * 10).astype(int), 9), minlength=10)
        covered = int(np.sum((below > 0.05) & (below < 0.95)))
        print(f"{name}: coverage {covered / N_SIMULATIONS:.3f}, ranks {observed}, {each:.1f} s a fit")
        assert stats.chisquare(observed).pvalue > 1e-4, observed
        assert stats.binomtest(covered, N_SIMULATIONS, 0.9).pvalue > 1e-4, covered
