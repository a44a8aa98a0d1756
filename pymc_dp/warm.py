"""Fits of small made-up models, one of each kind: whoever fits such a model later finds its kernels compiled."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pymc as pm

from pymc_dp._compiling import Compiled, heard
from pymc_dp.accounting import Ledger
from pymc_dp.domain import Domain
from pymc_dp.gradients.choice import Gradients
from pymc_dp.sampling import sample
from pymc_dp.step_methods.langevin import SGLD

N_ROWS = 60
SHORT: dict[str, Any] = {
    "draws": 2,
    "tune": 2,
    "chains": 1,
    "progressbar": False,
    "quiet": True,
    "compute_convergence_checks": False,
}
WITH_DELTA: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


class Warmed(NamedTuple):
    """What one fit compiled: functions that no cache held, and the seconds of the whole fit."""

    kind: str
    functions: int
    seconds: float


def warm() -> Iterator[Warmed]:
    """Fit one model of each of `KINDS`, and yield what was compiled. No data but made-up ones is read."""
    for kind, fit in KINDS.items():
        begun = time.perf_counter()
        with warnings.catch_warnings(), heard(Compiled()) as compiled:
            warnings.simplefilter("ignore")  # of few rows and few draws nothing can be learnt
            fit()
        yield Warmed(kind, compiled.functions, time.perf_counter() - begun)


def _fitted(domain: Domain, **options: Any) -> None:
    """Fit the model of the context."""
    epsilon, delta = options.pop("epsilon", 1.0), options.pop("delta", 0.0)
    ledger = Ledger(epsilon=epsilon, delta=delta)
    sample(epsilon=epsilon, delta=delta, domain=domain, ledger=ledger, **SHORT, **options)


def _made_up() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an index of three cells, two covariates and a number for each row."""
    rng = np.random.default_rng(0)
    return np.arange(N_ROWS) % 3, rng.uniform(-1, 1, (N_ROWS, 2)), rng.uniform(-1, 1, N_ROWS)


def _counts() -> None:
    cell, _, number = _made_up()
    with pm.Model():
        p = pm.Beta("p", 1, 1, shape=3)
        pm.Bernoulli("y", p[pm.Data("cell", cell)], observed=(number > 0).astype(int))
        _fitted(Domain())


def _levels() -> None:
    cell, _, _ = _made_up()
    with pm.Model():
        pm.Categorical("y", pm.Dirichlet("share", np.ones(3)), observed=cell)
        _fitted(Domain())


def _sums() -> None:
    cell, _, number = _made_up()
    with pm.Model():
        mean, sd = pm.Normal("mean", 0, 1, shape=3), pm.HalfNormal("sd", 1)
        pm.Normal("y", mean[pm.Data("cell", cell)], sd, observed=number)
        _fitted(Domain(bounds={"y": (-1, 1)}))


def _regression() -> None:
    _, covariates, number = _made_up()
    with pm.Model():
        x, slopes = pm.Data("x", covariates), pm.Normal("slopes", 0, 1, shape=2)
        pm.Normal("y", x @ slopes, pm.HalfNormal("sd", 1), observed=number)
        _fitted(Domain(bounds={"y": (-1, 1), "x": (-1, 1)}))


def _logistic(**options: Any) -> None:
    _, covariates, number = _made_up()
    with pm.Model():
        x, slopes = pm.Data("x", covariates), pm.Normal("slopes", 0, 1, shape=2)
        pm.Bernoulli("y", logit_p=x @ slopes, observed=(number > 0).astype(int))
        _fitted(Domain(bounds={"x": (-1, 1)}), **WITH_DELTA, **options)


def _gradients() -> None:
    _logistic(statistics=Gradients())


def _langevin() -> None:
    _logistic(step=SGLD(batch_size=10))


KINDS: dict[str, Callable[[], None]] = {
    "counts of two levels in cells": _counts,
    "counts of several levels": _levels,
    "sums of numbers in cells": _sums,
    "linear regression": _regression,
    "noised gradients": _gradients,
    "stochastic gradients (SGLD)": _langevin,
}

__all__ = ["KINDS", "Warmed", "warm"]
