"""Error by ε of every private sampler, on normal and logistic targets in 2 to 10 dimensions: which one for what.

One table: root mean squared error of the estimate (mean of the draws after tuning) against the parameters that made
the rows, in posterior standard deviations of the model without privacy, so that 1 is what the rows leave open.
Neighbours differ in one row (replace), δ = 1e-5, n = 1000 rows; noise is fresh in every run, without seed. Settings are
defaults of the library, or follow from public bounds; none was chosen by looking at these tables.

`python benchmarks/bench_samplers.py 10` makes ten tables for each cell in place of two.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import xarray as xr
from _logistic import Table, minimum
from _measure import Report

import pymc_dp as dp
from pymc_dp.errors import PrivacyError

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DIMENSIONS = (2, 5, 10)
DELTA, N_ROWS = 1e-5, 1000
DEVIATION, BOUND, BOX = 0.5, 2.0, 1.0
"""Of normal rows: standard deviation, public bounds of the values, and of the means where a sampler needs some."""
LOGISTIC_BOX = 6.0


@dataclass(frozen=True)
class Target:
    """A model, and what is known of its rows.

    Attributes
    ----------
    model : callable
        Builds it anew: samplers change models.
    domain : Domain
    box : dict
        Bounds of the parameters for samplers by which one row could move the log-likelihood by any amount.
    gradient : float
        Public bound of the gradient norm of a row's log-likelihood, near the middle of the prior.
    truth, centre, spread : (d,) arrays
        Parameters that made the rows; mean and standard deviation of the posterior that is not private.
    """

    model: Callable[[], pm.Model]
    domain: dp.Domain
    box: dict[str, tuple[float, float]]
    gradient: float
    truth: np.ndarray
    centre: np.ndarray
    spread: np.ndarray

    def error(self, estimate: np.ndarray) -> float:
        return float(np.sqrt(np.mean(((estimate - self.truth) / self.spread) ** 2)))


def normal(rng: np.random.Generator, dimension: int) -> Target:
    """Means of independent columns, one row a vector of all."""
    truth = rng.uniform(-0.7, 0.7, dimension)
    rows = np.clip(rng.normal(truth, DEVIATION, (N_ROWS, dimension)), -BOUND, BOUND)

    def model() -> pm.Model:
        with pm.Model() as built:
            theta = pm.Normal("theta", 0, 1, shape=dimension)
            for column in range(dimension):
                pm.Normal(f"y{column}", theta[column], DEVIATION, observed=rows[:, column])
        return built

    precision = N_ROWS / DEVIATION**2 + 1
    return Target(
        model=model,
        domain=dp.Domain(bounds={f"y{column}": (-BOUND, BOUND) for column in range(dimension)}),
        box={"theta": (-BOX, BOX)},
        gradient=np.sqrt(dimension) * BOUND / DEVIATION**2,
        truth=truth,
        centre=rows.sum(axis=0) / DEVIATION**2 / precision,
        spread=np.full(dimension, precision**-0.5),
    )


def logistic(rng: np.random.Generator, dimension: int) -> Target:
    """Coefficients of a logistic regression on rows within the unit ball."""
    truth = rng.normal(0, 2, dimension).clip(-4, 4)
    x = rng.normal(size=(N_ROWS, dimension))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-x @ truth))).astype(int)
    centre = minimum(Table(x, y), 1 / 4)
    p = 1 / (1 + np.exp(-x @ centre))
    hessian = (x * (p * (1 - p))[:, None]).T @ x + np.eye(dimension) / 4

    def model() -> pm.Model:
        with pm.Model() as built:
            theta = pm.Normal("theta", 0, 2, shape=dimension)
            pm.Bernoulli("y", logit_p=pm.Data("x", x) @ theta, observed=y)
        return built

    return Target(
        model=model,
        domain=dp.Domain(norms={"x": 1.0}),
        box={"theta": (-LOGISTIC_BOX, LOGISTIC_BOX)},
        gradient=1.0,
        truth=truth,
        centre=centre,
        spread=np.sqrt(np.diag(np.linalg.inv(hessian))),
    )


TARGETS = {"normal": normal, "logistic": logistic}


def _draws(target: Target, epsilon: float, *, bounded: bool = False, **settings) -> np.ndarray:
    model = dp.truncate(target.model(), target.box) if bounded else target.model()
    with model:
        found: xr.DataTree = dp.sample(
            epsilon=epsilon,
            delta=DELTA,
            domain=target.domain,
            ledger=dp.Ledger(epsilon, DELTA),
            progressbar=False,
            **settings,
        )
    return found["posterior"]["theta"].values.reshape(-1, len(target.truth))


def one_release(target: Target, epsilon: float) -> np.ndarray:
    kwargs = {"chains": 2, "cores": 1, "tune": 500, "draws": 500}
    return _draws(target, epsilon, **kwargs)


def gibbs(target: Target, epsilon: float) -> np.ndarray:
    return _draws(target, epsilon, bounded=True, draws=80, tune=20, step=dp.TemperedGibbs())


def one_posterior_sample(target: Target, epsilon: float) -> np.ndarray:
    return _draws(target, epsilon, bounded=True, step=dp.OPS(assume_converged=True))


def barker(target: Target, epsilon: float) -> np.ndarray:
    return _draws(target, epsilon, step=dp.BarkerMetropolis())


def penalty(target: Target, epsilon: float) -> np.ndarray:
    return _draws(target, epsilon, step=dp.PenaltyMetropolis())


def langevin(target: Target, epsilon: float) -> np.ndarray:
    step = dp.SGLD(batch_size=N_ROWS // 4, clip_norm=target.gradient, steps_per_draw=5)
    return _draws(target, epsilon, draws=100, tune=50, step=step)


def hamiltonian(target: Target, epsilon: float) -> np.ndarray:
    return _draws(target, epsilon, step=dp.PrivateHMC(clip_norm=target.gradient))


METHODS: dict[str, Callable[[Target, float], np.ndarray]] = {
    "no step: sums or gradients": one_release,
    "TemperedGibbs": gibbs,
    "OPS, one draw": one_posterior_sample,
    "BarkerMetropolis": barker,
    "PenaltyMetropolis": penalty,
    "PrivateHMC": hamiltonian,
    "SGLD": langevin,
}


def shown(errors: list[float]) -> str:
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
    return f"{np.mean(errors):8.2f} ± {spread:.2f}"


def errors_of(method: Callable[[Target, float], np.ndarray], targets: list[Target], epsilon: float) -> str:
    found = []
    for target in targets:
        try:
            found.append(target.error(method(target, epsilon).mean(axis=0)))
        except PrivacyError as error:
            return f"refused ({type(error).__name__})"
    return shown(found)


def table(kind: str, dimension: int, n_tables: int) -> bool:
    targets = [TARGETS[kind](np.random.default_rng([seed, dimension]), dimension) for seed in range(n_tables)]
    report = Report(f"{kind} target, d = {dimension}: error in posterior sds at ε = {', '.join(map(str, EPSILONS))}")
    report.add("not private", shown([target.error(target.centre) for target in targets]))
    for name, method in METHODS.items():
        report.add(name, "  ".join(errors_of(method, targets, epsilon) for epsilon in EPSILONS))
    return report.finish()


def main(n_tables: int = 2) -> bool:
    found = [table(kind, dimension, n_tables) for kind in TARGETS for dimension in DIMENSIONS]
    return all(found)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.exit(not main(*(int(item) for item in sys.argv[1:])))
